"""The folder for capture bundles: missing, refused, full, or gone while the job runs."""

from __future__ import annotations

import os

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


@fault("The capture location is a link that leads nowhere", "capture_unavailable")
def _(bench):
    bench.captures.symlink_to("/nowhere/at/all")


@fault("The bundle is deleted while the job runs", "no_events")
def _(bench):
    bench.meanwhile("import shutil; shutil.rmtree(bundle)")
