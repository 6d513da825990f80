"""Cases whose partitions are known: what each reads is planted, what it writes is listed.

Each case is one line of `cases.ndjson` next to the lake: its name, begin and end, the partitions
that it reads by folder (planted), and the folders that it really put files into (listed).
Partitions are `{"dt": "2024-05-06", …}`; null is null.
"""

from __future__ import annotations

import json
import time
import urllib.parse

CASES = []


def case(*, reads=None, writes=(), needs="", **truth):
    """Note a case: what it reads by folder, and the folders below which writes are listed.

    :param needs: the connector without which there is no such case
    """

    def noted(function):
        CASES.append((function, needs, reads or {}, writes, truth))
        return function

    return noted


def files_below(root) -> dict[str, int]:
    return {
        str(p.relative_to(root)): p.stat().st_mtime_ns
        for p in root.rglob("*")
        if p.is_file() and not any(s.startswith((".", "_")) for s in p.relative_to(root).parts)
    }


def partition_of(file: str) -> dict[str, str | None]:
    folders = [s for s in file.split("/")[:-1] if "=" in s]
    pairs = (urllib.parse.unquote(s).split("=", 1) for s in folders)
    return {k: None if v == "__HIVE_DEFAULT_PARTITION__" else v for k, v in pairs}


def distinct(partitions):
    return [json.loads(p) for p in sorted({json.dumps(p, sort_keys=True) for p in partitions})]


def run(lake, spark, logged=None) -> None:
    """Go through the cases in their order, without those of connectors that Spark was not given.

    :param logged: gives the truth about a folder from a log of its own; None where it has none
    """
    connectors = spark.conf.get("spark.sql.extensions", "")
    with (lake.parent / "cases.ndjson").open("w") as out:
        for function, needs, reads, writes, truth in CASES:
            if needs not in connectors:
                continue
            drain(spark)  # or the listing of a write may come after the next one
            time.sleep(0.02)
            before = {folder: files_below(lake / folder) for folder in writes}
            begin = time.time() * 1000
            function()
            drain(spark)
            end = time.time() * 1000
            written = {}
            for folder in writes:
                expected = (truth.get("expected") or {}).get(folder)
                expected = expected or (logged(folder) if logged else None)
                now = files_below(lake / folder)
                new = [file for file, at in now.items() if before[folder].get(file) != at]
                written[folder] = expected or {"written": distinct(map(partition_of, new))}
            line = {"name": function.__name__, "begin": begin, "end": end, "reads": reads}
            line |= {"writes": written, **truth}
            out.write(json.dumps(line) + "\n")
            out.flush()
            print(function.__name__, round(end - begin), "ms", flush=True)


def drain(spark):
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60000)
