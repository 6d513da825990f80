"""A server on the loopback for as long as a test needs one: other ends of what sends lineage."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Also has what its handler notes, and what it answers."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Prints nothing, and sends what a test answers in one line; extended by get and post."""

    def do_GET(self):
        self.get()

    def do_POST(self):
        self.post()

    def body(self):
        """Read what was sent."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status, body="", **headers):
        """Answer; words of a header's name are joined by underscores."""
        content = body.encode()
        self.send_response(status)
        for name, value in {**headers, "Content_Length": str(len(content))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@contextmanager
def serving(handler, **attributes):
    """Serve by a class of handlers.

    :param attributes: of the server, for its handlers and the test
    """
    server = Server(("127.0.0.1", 0), handler)
    vars(server).update(attributes)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
