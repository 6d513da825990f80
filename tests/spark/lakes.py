"""A lake after all cases of an application (`tests/applications/planted.py`)."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from tests import record_events


class Lake:
    """The lake after all cases: what was observed in each, and what is true."""

    def __init__(self, work: Path, root: Path) -> None:
        self.root = root
        self.size = (work / "observations.ndjson").stat().st_size
        self.records = lines(work / "observations.ndjson")
        self.cases = {case["name"]: case for case in lines(work / "cases.ndjson")}

    def during(self, case):
        return [
            r
            for r in self.records
            if r.get("kind") == "query" and case["begin"] - 1 <= r["started"] <= case["end"] + 1
        ]

    def reads(self, case):
        found: dict[str, list] = {}
        for record in self.during(case):
            for read in record["reads"]:
                assert "cut" not in read
                self._add(found, () if read.get("not_data") else read["layouts"])
        return {folder: distinct(partitions) for folder, partitions in found.items()}

    def writes(self, case):
        for record in self.records:
            for write in record.get("writes", ()):
                at = write.get("time", record.get("started"))
                if case["begin"] - 1 <= at <= case["end"] + 1:
                    yield self._folder(write["path"])[0], write

    def written(self, case, key="layouts"):
        found: dict[str, list] = {}
        for folder, write in self.writes(case):
            found.setdefault(folder, [])
            self._add(found, write.get(key, ()))
        return {folder: distinct(partitions) for folder, partitions in found.items()}

    def _add(self, found, layouts):
        for layout in layouts:
            folder, above = self._folder(layout["base"])
            partitions = found.setdefault(folder, [])
            labels = [d.get("name", d["field"]) for d in layout["dimensions"]]
            partitions += [
                {**above, **dict(zip(labels, values, strict=True))}
                for values in layout["partitions"]
            ]

    def _folder(self, uri):
        path = Path("/" + uri.removeprefix("file:").lstrip("/"))
        above = {}
        while "=" in path.name:
            above = {path.name.partition("=")[0]: path.name.partition("=")[2], **above}
            path = path.parent
        return str(path.relative_to(self.root)), above


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def distinct(partitions):
    return [json.loads(p) for p in sorted({json.dumps(p, sort_keys=True) for p in partitions})]


def planned_cases(application):
    """Read the cases off the application, which cannot be imported without a Spark.

    Each name is given with the connector that the case needs, or None.
    """
    tree = ast.parse((record_events.APPLICATIONS / application).read_text())
    found = {}
    for function in tree.body:
        for call in getattr(function, "decorator_list", ()):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "case":
                needs = [k.value.value for k in call.keywords if k.arg == "needs"]
                found[function.name] = needs[0] if needs else None
    return found
