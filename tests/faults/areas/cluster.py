"""A driver in a cluster: it delivers to a store, or sends to the worker, and others disturb it."""

from __future__ import annotations

import json

from tests.faults.bench import raising
from tests.faults.registry import Area

AREA = Area(
    "Drivers in a cluster",
    "A driver in a cluster delivers its captured files to a store, or sends its events to the "
    "worker. Everything that is refused on this way, or does not arrive, is counted.",
)
fault = AREA.fault

_EVENTS = """
import contextlib, socket, time, urllib.request
texts = [value for pair in files.values() for value in pair[1:]]
given = dict(conf)
for line in "".join(texts).splitlines():
    key, _, value = line.partition("=" if "=" in line else " ")
    given[key.strip().replace(chr(92), "")] = value.strip().replace(chr(92), "")
url = given.get(prefix + "url", "")
host, port = url.removeprefix("http://").split(":") if url else ("", "0")
held = []
def connect(text=b"P"):
    held.append(socket.create_connection((host, int(port)), timeout=20))
    with contextlib.suppress(OSError):
        held[-1].sendall(text)
def send(event, **headers):
    request = urllib.request.Request(url + given[prefix + "endpoint"], event)
    request.add_header("Authorization", "Bearer " + given[prefix + "auth.apiKey"])
    for name, text in headers.items():
        request.add_header(name.replace("_", "-"), text)
    with contextlib.suppress(OSError):
        urllib.request.urlopen(request, timeout=20).close()
def events():
    run_id = conf["spark.openlineage.applicationRunId"].encode()
    text = pathlib.Path(script["recorded"]).read_bytes()
    return text.replace(script["recorded_as"].encode(), run_id).splitlines()
"""


def _sends(bench, code):
    """Let the job of a driver without Python run code, in which ``send`` and ``connect`` send."""
    extra = json.dumps({"deploy-mode": "cluster"})
    bench.connect("spark_default", conn_type="spark", host="yarn", extra=extra)
    bench.set("capture_endpoint", "127.0.0.1")
    bench.arguments |= {"application": "job.jar", "java_class": "Totals", "durable": False}
    recorded = bench.folder / "recorded.ndjson"
    recorded.write_bytes(bench.events)
    body = "\n".join(f"    {line}" for line in code.splitlines())
    bench.job |= {"code": f"{_EVENTS}\nif url:\n{body}", "recorded": str(recorded)}


_ALL = "[send(event) for event in events()]"

for name, before in {
    "Sixteen programs drip a byte on the worker's port, and never end their requests": (
        "[connect() for _ in range(16)]"
    ),
    "A hundred connections to the worker's port send nothing": "[connect(b'') for _ in range(100)]",
    "A program speaks TLS to the worker's port": (
        "connect(bytes.fromhex('16030100c8010000c40303') + bytes(200) + b'\\r\\n')"
    ),
    "A program asks the worker's port for a page": "connect(b'GET / HTTP/1.1\\r\\n\\r\\n')",
    "A request to the worker's port has a header of a megabyte": (
        "connect(b'POST / HTTP/1.1\\r\\na: ' + bytes(1 << 20) + b'\\r\\n\\r\\n')"
    ),
    "A driver of another try sends its events to the worker": (
        "connect(b'POST /api/v1/lineage HTTP/1.1\\r\\nAuthorization: Bearer another\\r\\n\\r\\n')"
    ),
}.items():
    fault(name, "delivery_incomplete", "observer_unavailable")(
        lambda bench, before=before: _sends(bench, f"{before}\n{_ALL}")
    )


@fault(
    "The connection breaks in the middle of an event", "delivery_incomplete", "observer_unavailable"
)
def _(bench):
    head = (
        "b'POST /api/v1/lineage HTTP/1.1\\r\\nContent-Length: 9999\\r\\nAuthorization: Bearer ' "
        "+ given[prefix + 'auth.apiKey'].encode() + b'\\r\\n\\r\\n{'"
    )
    _sends(bench, f"connect({head})\nheld[-1].close()\n{_ALL}")


@fault("Two events come on one connection", "delivery_incomplete", "observer_unavailable")
def _(bench):
    head = (
        "b'POST /api/v1/lineage HTTP/1.1\\r\\nContent-Length: %d\\r\\nAuthorization: Bearer %s"
        "\\r\\n\\r\\n' % (len(event), given[prefix + 'auth.apiKey'].encode()) + event"
    )
    _sends(
        bench,
        f"connect(b''.join({head} for event in events()[:2]))\n"
        "held[-1].recv(64)\n[send(event) for event in events()[1:]]",
    )


@fault("A connection breaks in its headers", "delivery_incomplete", "observer_unavailable")
def _(bench):
    _sends(
        bench,
        "import struct\nconnect(b'POST /api/v1/lineage HTTP/1.1\\r\\nAuthoriz')\n"
        "time.sleep(0.3)\n"
        "held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))\n"
        f"held[-1].close()\n{_ALL}",
    )


for name, headers in {
    "Events are sent in chunks": "Transfer_Encoding='chunked'",
    "Events are sent compressed": "Content_Encoding='gzip'",
}.items():
    fault(name, "delivery_incomplete", "observer_unavailable")(
        lambda bench, headers=headers: _sends(bench, f"send(b'{{}}', {headers})\n{_ALL}")
    )


# --- files that are delivered ---------------------------------------------------------------------


def _delivers(bench, after="", before="", **how):
    """Let the job of a Python driver deliver; code may change what is there before and after."""
    extra = json.dumps({"deploy-mode": "cluster"})
    bench.connect("spark_default", conn_type="spark", host="yarn", extra=extra)
    bench.set("capture_location", f"file://{bench.captures}")
    bench.arguments |= {"durable": False}
    given = ", ".join(f"{key}={value!r}" for key, value in how.items())
    code = (
        "from tests.remote_driver import RemoteDriver, deliver",
        'remote = pathlib.Path(conf["spark.sparklineage.deliver"].removeprefix("file://"))',
        *before.splitlines(),
        f"deliver(conf, {given})",
        "own = next(d for d in remote.iterdir() if (d / 'end.json').exists())",
        *after.splitlines(),
    )
    body = "\n".join(f"    {line}" for line in code)
    bench.job["code"] = f"if 'spark.sparklineage.deliver' in conf:\n{body}"


_OTHERS = "[RemoteDriver(remote, 'another', n).starts() for n in range({first}, {last})]"


@fault("A driver in a cluster delivers each line by itself")
def _(bench):
    _delivers(bench, lines_each=1)


@fault("A driver has joined its segments, and could not delete those that it has joined")
def _(bench):
    _delivers(
        bench,
        "names = sorted(own.glob('events-*'))\n"
        "whole = b''.join(n.read_bytes() for n in names)\n"
        "(own / f'events-00001-{len(names):05d}.ndjson').write_bytes(whole)",
    )


@fault("A segment of a driver is missing", "delivery_incomplete")
def _(bench):
    bench.set("collect_timeout", 4)
    _delivers(bench, "(own / 'observations-00001.ndjson').unlink()", lines_each=1)


@fault("A segment of a driver has a name that no driver gives", "delivery_incomplete")
def _(bench):
    bench.set("collect_timeout", 4)
    _delivers(bench, "(own / 'events-00001.ndjson').rename(own / 'events-00001-00001.ndjson')")


@fault("Another application delivers to the folder of the try", "foreign_events")
def _(bench):
    _delivers(bench, before=_OTHERS.format(first=2, last=3))


@fault(
    "Thirty other applications have delivered to the folder of the try since",
    "delivery_incomplete",
    "driver_elsewhere",
    "foreign_events",
)
def _(bench):
    _delivers(bench, before=_OTHERS.format(first=2, last=32))
    bench.set("collect_timeout", 4)


@fault("The driver is killed before it has reported its end", "delivery_incomplete")
def _(bench):
    _delivers(bench, "(own / 'end.json').unlink()")
    bench.set("collect_timeout", 4)


@fault("The file with which a driver begins is garbage", "delivery_incomplete", "driver_elsewhere")
def _(bench):
    _delivers(bench, "(own / 'start.json').write_text('{')")
    bench.set("collect_timeout", 4)


_RUN = "conf['spark.sparklineage.run']"


@fault(
    "The cluster starts a driver again, which had died before its first event",
    "delivery_incomplete",
)
def _(bench):
    _delivers(bench, before=f"RemoteDriver(remote, {_RUN}, 1, '00000000').starts()")


@fault("The cluster starts a driver twenty times")
def _(bench):
    earlier = f"RemoteDriver(remote, {_RUN}, 1, f'{{n:08x}}').starts().ends()"
    _delivers(bench, before=f"[{earlier} for n in range(19)]")


@fault("The observer in the drivers' image is of another version", "observer_outdated")
def _(bench):
    changed = 'file.read_text().replace(\'"observer":"\', \'"observer":"0\')'
    _delivers(bench, f"[file.write_text({changed}) for file in own.glob('observations-*')]")


_LATER = (
    "import subprocess, sys\n"
    "late = remote.parent / '.late'\n"
    "{}\n"
    "moves = 'import os, sys, time; time.sleep(1); os.replace(*sys.argv[1:])'\n"
    "subprocess.Popen([sys.executable, '-c', moves, late, place])"
)

for name, late in {
    "The store lists the newest segment of a driver a second too late": (
        "place = max(own.glob('events-*'))\nplace.rename(late)"
    ),
    "The store lists the end of a driver a second too late": (
        "place = own / 'end.json'\nplace.rename(late)"
    ),
    "A segment is listed a second before it is whole": (
        "place = max(own.glob('events-*'))\nwhole = place.read_bytes()\n"
        "late.write_bytes(whole)\nplace.write_bytes(whole[: len(whole) // 2])"
    ),
    "The end of a driver is listed a second before it is whole": (
        "place = own / 'end.json'\nlate.write_bytes(place.read_bytes())\nplace.write_text('{')"
    ),
}.items():
    fault(name)(lambda bench, late=late: _delivers(bench, _LATER.format(late)))

_SEGMENTS = "for file in own.glob('*.ndjson'): file.write_bytes({})"

for name, after in {
    "The store has all files from a clock of the future": (
        "import os\nfor file in own.iterdir(): os.utime(file, (4_100_000_000,) * 2)"
    ),
    "The driver's clock is a century ahead": (
        "text = (own / 'start.json').read_text()\n"
        "(own / 'start.json').write_text(text.replace(': 1700000000000', ': 4855600000000'))"
    ),
    "The lines of segments end as on Windows": (
        _SEGMENTS.format("file.read_bytes().replace(b'\\n', b'\\r\\n')")
    ),
    "Names that are no UTF-8 are in the folder of the try": (
        "import os\nfor folder in (own, remote):\n"
        "    open(os.fsencode(folder) + b'/\\xff\\n', 'w').close()"
    ),
    "A thousand other files are in the folder of the try": (
        "for n in range(500): (own / f'a{n}').touch(), (remote / f'b{n}').touch()"
    ),
}.items():
    fault(name)(lambda bench, after=after: _delivers(bench, after))


@fault("A driver says that it has delivered a billion segments", "delivery_incomplete")
def _(bench):
    counts = "{'events': 10**9, 'observations': 10**9}"
    _delivers(
        bench,
        "end = {'application_run_id': " + _RUN + ", 'segments': " + counts + "}\n"
        "import json\n(own / 'end.json').write_text(json.dumps(end))",
    )
    bench.set("collect_timeout", 4)


@fault(
    "A segment has a hole of three gigabytes",
    *("delivery_incomplete", "partitions_inexact", "partitions_unknown"),
)
def _(bench):
    _delivers(bench, "import os\nos.truncate(own / 'observations-00001.ndjson', 3 << 30)")
    bench.set("collect_timeout", 4)


for name, after in {
    "The folder of the try is deleted when the job has ended": "shutil.rmtree(remote)",
    "The folder of the try is a file when the job has ended": (
        "shutil.rmtree(remote)\nremote.touch()"
    ),
    "A link to another folder stands for what a driver delivered": (
        "shutil.rmtree(own)\nown.symlink_to('/etc')"
    ),
}.items():

    @fault(name, "driver_elsewhere")
    def _(bench, after=after):
        _delivers(bench, f"import shutil\n{after}")
        bench.set("collect_timeout", 4)


@fault("The library of the store ends the process", "delivery_incomplete")
def _(bench):
    bench.patch(".storage.objects.Objects.read", raising(SystemExit(3)))
    _delivers(bench)
    bench.set("collect_timeout", 4)


for name, put in {
    "a pipe": "os.mkfifo(place)",
    "a link to itself": "place.symlink_to(place)",
    "a device without an end": "place.symlink_to('/dev/zero')",
    "a folder": "place.mkdir()",
}.items():
    gone = "place = own / '{}'\nplace.unlink()\n"

    @fault(
        f"A segment of a driver is {name}",
        *("delivery_incomplete", "partitions_inexact", "partitions_unknown"),
    )
    def _(bench, put=put, gone=gone):
        bench.set("collect_timeout", 4)
        _delivers(bench, f"{gone.format('observations-00001.ndjson')}import os\n{put}")

    @fault(
        f"The file with which a driver begins is {name}", "delivery_incomplete", "driver_elsewhere"
    )
    def _(bench, put=put, gone=gone):
        bench.set("collect_timeout", 4)
        _delivers(bench, f"{gone.format('start.json')}import os\n{put}")


# --- submissions that fail ------------------------------------------------------------------------


FAILS = "AirflowException (exit code 1)"


def _fails(bench, output="", **conf):
    """Let spark-submit fail for a driver in the cluster, after it has printed something."""
    extra = json.dumps({"deploy-mode": "cluster"})
    bench.connect("spark_default", conn_type="spark", host="yarn", extra=extra)
    bench.set("capture_location", f"file://{bench.captures}")
    bench.arguments |= {"durable": False, "conf": conf}
    bench.job |= {"exit": 1, "code": f"print({output!r})"}


_NOT_WAITING = {"spark.yarn.submit.waitAppCompletion": "false"}
_UPLOADING = "Client: Uploading resource file:/a.jar -> /.sparkStaging/application_1_0001/a.jar"


@fault("spark-submit fails for a driver in the cluster", "no_events", ends=FAILS)
def _(bench):
    _fails(bench)


@fault(
    "spark-submit fails for a driver in the cluster, for which it would not have waited",
    "no_events",
    ends=FAILS,
)
def _(bench):
    _fails(bench, **_NOT_WAITING)


@fault("spark-submit cannot upload the files of an application", "no_events", ends=FAILS)
def _(bench):
    _fails(bench, _UPLOADING, **_NOT_WAITING)


@fault(
    "spark-submit fails after it had submitted an application, for which it would not have waited",
    "application_unfinished",
    ends=FAILS,
)
def _(bench):
    _fails(bench, f"{_UPLOADING}\nSubmitted application application_1_0001", **_NOT_WAITING)
