"""Decide how a driver's reports come back: in the bundle, by delivery, or sent to the worker.

The decision depends on the driver's host, on the files that spark-submit brings to that host, and
on the settings. If no report would come back, the job gets no listener, and the error names the
fix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from airflow_provider_sparklineage.model.exceptions import CaptureError, RemoteDriverError
from airflow_provider_sparklineage.model.terms import OBSERVATIONS
from airflow_provider_sparklineage.operators.masking import mask
from airflow_provider_sparklineage.spark.capture.bundle import in_spark
from airflow_provider_sparklineage.spark.submit import deploy_mode, submitted_files
from airflow_provider_sparklineage.spark.submit.deploy_mode import DriverHost
from airflow_provider_sparklineage.spark.submit.injection import Observation, can_observe
from airflow_provider_sparklineage.spark.submit.submitted_files import Links, PropertiesFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.capture.receiver import Receiver
    from airflow_provider_sparklineage.spark.submit.submission import Submission


class DriverFiles(NamedTuple):
    """The places where the driver writes and delivers its reports, and finds its jars.

    :param folder: path, on the driver's host, of the folder in which the driver writes
    :param delivered_to: URL, for Spark, to which the driver delivers that folder; empty if it
        delivers nothing
    :param are_sent: whether the driver writes no files, and the listener sends its events to the
        worker
    :param takes_uploads: whether spark-submit brings files of this worker to the driver
    :param image: URL of a folder on the driver's host that has listener and observer; empty if no
        such folder is known
    """

    host: DriverHost
    folder: str
    delivered_to: str = ""
    are_sent: bool = False
    takes_uploads: bool = True
    image: str = ""

    @property
    def are_on_mount(self) -> bool:
        """Whether a remote driver writes into the bundle."""
        return self.host.is_remote and not (self.delivered_to or self.are_sent)

    def require_carried(self, jar: str) -> None:
        """Refuse a jar of this worker that spark-submit cannot bring to the driver: it would fail.

        :param jar: entry of ``--jars``
        :raise RemoteDriverError: if the jar cannot be brought there; the error names the fix
        """
        if self.takes_uploads or submitted_files.scheme(jar) not in ("", "file"):
            return
        key = deploy_mode.UPLOAD_PATH
        in_pod = self.host is DriverHost.KUBERNETES
        problem = (
            f"The driver runs in {self.host}, to which spark-submit brings no file of this worker"
            f"{f' without {key}' if in_pod else ''}, and so not {jar}."
        )
        fix = (
            "Put the jar where drivers run, in an image for instance, and give its URL there, such "
            "as listener_jar = local:///opt/spark/lineage/openlineage-spark_2.13-1.53.0.jar."
        )
        if in_pod:
            fix += f" Or set {key} to a folder that workers and pods reach."
        raise RemoteDriverError(problem, fix)

    def observation(
        self, submission: Submission, bundle: CaptureBundle, links: Links
    ) -> tuple[Observation | None, str | None]:
        """Put the observer into the bundle, or find it in the driver's image.

        :return: the observation and None, or None and a sentence with the reason
        :raise CaptureError: if the observer cannot be written, and the driver needs it to deliver
        """
        if not can_observe(submission):
            reason = "The application is no Python file"
            if not submission.application:
                reason = "The command does not show its application, nor does submit_args()"
            return None, (
                f"{reason}, so the partitions that it reads and writes could not be observed."
            )
        if self.takes_uploads:
            try:
                observer = links.entry(
                    str(submitted_files.write_observer(cast("Path", bundle.path)))
                )
            except CaptureError as error:
                if self.delivered_to:
                    raise  # nothing else delivers
                return None, str(error)
        else:
            observer = f"{self.image}/{submitted_files.OBSERVER_ZIP}"
        path, tag = f"{self.folder}/{OBSERVATIONS}", bundle.manifest.application_run_id
        return Observation(observer, path, tag, self.delivered_to), None


def driver_files(
    host: DriverHost,
    submission: Submission,
    bundle: CaptureBundle,
    settings: Settings,
    links: Links,
    *,
    is_awaited: bool,
) -> DriverFiles:
    """Decide where the driver writes; forbid links if a remote driver could not follow them.

    :param bundle: a bundle that has a folder
    :param is_awaited: whether the task ends no earlier than its application
    :raise RemoteDriverError: if nothing would come back from the driver's host
    :raise CaptureError: if Spark could not find the bundle
    """
    folder = cast("Path", bundle.path)
    url = settings.capture_location.url
    shared = settings.capture_location_shared
    kept = deploy_mode.container_folder(host, bundle.manifest.application_run_id)
    takes_uploads = deploy_mode.takes_uploads(host, submission)
    if host is DriverHost.ELSEWHERE and not (can_observe(submission) or (shared and not url)):
        problem = (
            f"The driver runs in {host} and its application is not known to be a Python file, so "
            "nothing in the driver could deliver what is captured."
        )
        raise RemoteDriverError(problem, "If it is one, give submit_args(application='job.py').")
    if host.is_remote and not can_observe(submission) and (url or not shared):
        _require_endpoint(host, settings, is_awaited=is_awaited)
        takes_uploads = takes_uploads and host is not DriverHost.STANDALONE
        return DriverFiles(host, kept, are_sent=True, takes_uploads=takes_uploads)
    deploy_mode.require_reachable(host, shared=shared, delivers=bool(url))
    if host.is_remote and url:
        image = "" if takes_uploads else _image(settings)
        _require_delivery(host, settings, has_observer=takes_uploads or bool(image))
        return DriverFiles(
            host,
            kept,
            in_spark(url, settings.capture_location_in_spark, folder.name),
            takes_uploads=takes_uploads,
            image=image,
        )
    if host.is_remote:
        links.forbid(f"The driver runs in {host}, where a link to it would lead nowhere.")
    return DriverFiles(host, str(links.plain(folder)))


def _require_endpoint(host: DriverHost, settings: Settings, *, is_awaited: bool) -> None:
    """Refuse a driver without Python if no worker could take its events.

    :raise RemoteDriverError: if there is no endpoint, or the task does not wait for its
        application; the error names the fix
    """
    if not settings.capture_endpoint:
        problem = (
            f"The driver runs in {host} and the application is no Python file, so nothing in the "
            "driver could deliver what is captured."
        )
        fix = (
            "Set [sparklineage] capture_endpoint to a name by which drivers reach this worker, "
            "such as {hostname}:20000-20100: the listener then sends its events there. Or use "
            "deploy_mode='client' where lineage is wanted."
        )
        raise RemoteDriverError(problem, fix)
    if not is_awaited:
        problem = (
            f"The driver runs in {host} and the task does not wait for its end, so nobody would "
            "take the events that it sends."
        )
        fix = "Leave out waitAppCompletion=false where lineage is wanted."
        raise RemoteDriverError(problem, fix)


def _image(settings: Settings) -> str:
    """Give the ``local:`` URL of the folder that has the listener's jar on the driver's host.

    The URL is empty if ``listener_jar`` is no ``local:`` URL.
    """
    jar = settings.listener_jar
    is_there = isinstance(jar, str) and submitted_files.scheme(jar) == "local"
    return str(jar).rpartition("/")[0] if is_there else ""


def _require_delivery(host: DriverHost, settings: Settings, *, has_observer: bool) -> None:
    """Refuse a driver without an observer: nothing else in it delivers the captured files.

    :raise RemoteDriverError: if there is no observer; the error names the fix
    """
    if not settings.observe:
        problem = (
            f"The driver runs in {host}, and the observer, which delivers what is captured there, "
            "is switched off."
        )
        raise RemoteDriverError(problem, "Leave out observe=False.")
    if not has_observer:
        key = deploy_mode.UPLOAD_PATH
        problem = f"The driver runs in {host}, to which spark-submit brings no file of this worker"
        problem += "." if host is DriverHost.ELSEWHERE else f" without {key}."
        fix = (
            f"Put the listener's jar and {submitted_files.OBSERVER_ZIP}, which `sparklineage "
            "fetch-listener` leaves in the same folder, into one folder of the image, and set "
            "[sparklineage] listener_jar to "
            "local:///opt/spark/lineage/openlineage-spark_2.13-1.53.0.jar, if it is that one."
        )
        if host is not DriverHost.ELSEWHERE:
            fix += f" Or set {key} to a folder that workers and pods reach."
        raise RemoteDriverError(problem, fix)


def listen(endpoint: str, path: Path) -> Receiver:
    """Listen for the events of a driver without Python, and append them to a file.

    :param endpoint: ``[sparklineage] capture_endpoint``
    :raise SettingsError: if the endpoint cannot be understood
    :raise RemoteDriverError: if the worker cannot listen there
    """
    from airflow_provider_sparklineage.spark.capture.receiver import HOSTNAME, Endpoint, Receiver

    hostname = ""
    if HOSTNAME in endpoint:
        from airflow.utils.net import get_hostname

        hostname = str(get_hostname())  # type: ignore[no-untyped-call]
    try:
        receiver = Receiver(Endpoint.of(endpoint, hostname), path)
    except (OSError, RuntimeError) as error:
        msg = f"This worker cannot take what the driver would send: {error}."
        raise RemoteDriverError(msg) from error
    mask(receiver.token)
    return receiver


class OwnFiles:
    """The links, the properties file and the open port of a try, which are removed after the job.

    :param bundle: folder of the try's bundle, if there is one
    """

    def __init__(self, bundle: Path | None) -> None:
        self.links = Links(bundle)
        """Links that give plain paths to files whose own path Spark would misread."""
        self.properties = PropertiesFile()
        self.receiver: Receiver | None = None

    def listen(self, endpoint: str, path: Path) -> Mapping[str, str]:
        """Listen for the events of a driver that can neither write nor deliver them.

        :return: the properties by which the listener sends its events to this worker
        """
        self.receiver = listen(endpoint, path)
        return self.receiver.transport

    def stop_listening(self) -> None:
        """Close the port, so that no more events are taken."""
        if self.receiver is not None:
            self.receiver.close()
            self.receiver = None

    def remove(self) -> None:
        """Remove the links and the properties file, and close the port."""
        self.stop_listening()
        self.links.remove()
        self.properties.remove()
