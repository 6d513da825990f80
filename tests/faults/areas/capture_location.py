"""The folder for capture bundles: missing, refused, full, or gone while the job runs."""

from __future__ import annotations

import errno
import glob
import os

from tests.faults.bench import raising
from tests.faults.registry import Area

AREA = Area(
    "The capture location",
    "Without a place for what Spark reports the job runs without lineage. What breaks while it "
    "runs costs what had not been written.",
)
fault = AREA.fault


@fault("The capture location is a file", "capture_unavailable")
def _(bench):
    bench.captures.touch()


@fault("The capture location is below a file", "capture_unavailable")
def _(bench):
    bench.captures.touch()
    bench.set("capture_location", bench.captures / "below")


@fault("The capture location is writable for everybody", "capture_unavailable")
def _(bench):
    bench.captures.mkdir()
    bench.captures.chmod(0o777)


@fault("The capture location belongs to another user", "capture_unavailable")
def _(bench):
    bench.captures.mkdir()
    os.chown(bench.captures, 65534, 65534)


@fault("A folder above the capture location is writable for everybody", "capture_unavailable")
def _(bench):
    (bench.folder / "open" / "captures").mkdir(parents=True)
    (bench.folder / "open").chmod(0o777)
    bench.set("capture_location", bench.folder / "open" / "captures")


@fault("A folder above the capture location belongs to another user", "capture_unavailable")
def _(bench):
    (bench.folder / "theirs" / "captures").mkdir(parents=True)
    os.chown(bench.folder / "theirs", 65534, 65534)
    bench.set("capture_location", bench.folder / "theirs" / "captures")


@fault("The capture location is a pipe", "capture_unavailable")
def _(bench):
    os.mkfifo(bench.captures)


@fault("The capture location is a link that leads nowhere", "capture_unavailable")
def _(bench):
    bench.captures.symlink_to("/nowhere/at/all")


@fault("The bundle is deleted while the job runs", "no_events")
def _(bench):
    bench.meanwhile("import shutil; shutil.rmtree(bundle)")


@fault("The capture location is on a disk that is full", "capture_unavailable")
def _(bench):
    bench.disk(errno.ENOSPC)


@fault("The capture location is on a disk that has become read-only", "capture_unavailable")
def _(bench):
    bench.captures.mkdir(mode=0o700)
    bench.disk(errno.EROFS)


@fault("The capture location may not be written by this user", "capture_unavailable")
def _(bench):
    bench.captures.mkdir(mode=0o700)
    bench.disk(errno.EACCES, "*-try1-*")


@fault("The quota is used up when the bundle's folder is made", "capture_unavailable")
def _(bench):
    bench.disk(errno.EDQUOT, "*-try1-*")


@fault("The disk is full when the first manifest is written", "capture_unavailable")
def _(bench):
    bench.disk(errno.ENOSPC, "*manifest.json")


@fault("The disk gives an I/O error when the first manifest takes its place", "capture_unavailable")
def _(bench):
    bench.disk(errno.EIO, "manifest.json")


@fault("The disk is full when the observer is put into the bundle", "observer_unavailable")
def _(bench):
    bench.disk(errno.ENOSPC, "*.zip")


@fault("The bundle cannot be locked, because its file system has no locks")
def _(bench):
    bench.patch("fcntl.flock", raising(OSError(errno.ENOLCK, "No locks available")))


for number in (2, 3, 4, 5, 6):
    fault(f"The disk is full when the manifest is written for time {number}")(
        lambda bench, number=number: bench.disk(errno.ENOSPC, "*.manifest.json", number)
    )


@fault("There are no more file descriptors when the job has ended", "capture_unavailable")
def _(bench):
    bench.disk(errno.EMFILE, "*.manifest.json", 2)
    bench.disk(errno.EMFILE, "*.ndjson", reading=True)


@fault("The bundle cannot be removed when the job has ended", leaves=("*",))
def _(bench):
    bench.patch("shutil.rmtree", lambda *_, **__: None)


@fault("The capture location is deleted while the job runs", "no_events")
def _(bench):
    bench.meanwhile("import shutil; shutil.rmtree(bundle.parent)")


@fault("The bundle is replaced by a link to another folder while the job runs", "no_events")
def _(bench):
    bench.meanwhile("import shutil; shutil.rmtree(bundle); bundle.symlink_to(bundle.parent.parent)")


@fault("The bundle is replaced by a file while the job runs", "no_events")
def _(bench):
    bench.meanwhile("import shutil; shutil.rmtree(bundle); bundle.touch()")


@fault("The manifest is overwritten with garbage while the job runs")
def _(bench):
    bench.meanwhile("(bundle / 'manifest.json').write_bytes(bytes(range(256)))")


@fault("The bundle becomes read-only while the job runs")
def _(bench):
    bench.meanwhile("bundle.chmod(0o500)")


_LOG = """'{"Event":"SparkListenerLogStart"}'"""


@fault(
    "Spark writes its event log into the capture location",
    leaves=("eventlog_v2_local-1*", "local-2.inprogress"),
)
def _(bench):
    bench.meanwhile(
        "log = bundle.parent / 'eventlog_v2_local-1'; log.mkdir(exist_ok=True); "
        f"(log / 'events_1_local-1').write_text({_LOG}); "
        f"(bundle.parent / 'local-2.inprogress').write_text({_LOG})"
    )


@fault("Spark writes its event log into the bundle")
def _(bench):
    bench.meanwhile(f"(bundle / 'local-1').write_text({_LOG}); (bundle / 'eventlog').mkdir()")


@fault("A thousand bundles of others are in the capture location")
def _(bench):
    for number in range(1000):
        folder = bench.captures / f"shop.other-try1-{number:08}"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{")
    bench.captures.chmod(0o700)


@fault("Sweeping old bundles has a defect")
def _(bench):
    bench.breaks(".spark.capture.bundle.sweep")


@fault("The marker of the last sweep is a folder")
def _(bench):
    bench.captures.mkdir(mode=0o700)
    (bench.captures / f".swept-{os.getuid()}").mkdir()


for text in ("a space", "a%20b", "émile", "a'b", "a,b", "a#b", "a[1]{b}", "a*b", "a?b", "a:b"):
    fault(f"The capture location is called `{text}`", leaves=(glob.escape(text),))(
        lambda bench, text=text: bench.set("capture_location", bench.captures / text)
    )


@fault("The capture location has a line break in its name", leaves=("*",))
def _(bench):
    bench.set("capture_location", bench.captures / "a\nb")


@fault("The capture location is a link to a private folder")
def _(bench):
    private = bench.home / "private"
    private.mkdir(mode=0o700)
    bench.captures.symlink_to(private)


@fault("The name of the capture location has 250 characters", leaves=("*",))
def _(bench):
    bench.set("capture_location", bench.captures / ("x" * 250))
