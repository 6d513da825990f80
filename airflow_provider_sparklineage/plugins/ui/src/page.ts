// What Airflow's page imports: small, so that a newer one is noticed; all else is kept by the browser.

// api: where our endpoints are. Gives a function that ends what was begun.
export async function open(host: HTMLElement, api: URL): Promise<() => void> {
  const { mount } = await import("./main");
  return mount(host, api);
}
