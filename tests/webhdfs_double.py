"""A WebHDFS on the loopback whose files are in memory: name node and data node in one.

Only what is asked of it here, and as Hadoop 3.4 answers; tests/cluster has the real one.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.loopback import Handler, serving


class WebHDFSHandler(Handler):
    """Answers by the server's ``files``, a dict of contents, and ``folders``, a set."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else headers and body are 40 ms apart

    def operate(self):
        parts = urlsplit(self.path)
        self.parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
        operation, at_data_node = self.parameters["op"], "datanode" in self.parameters
        place = "/" + unquote(parts.path.removeprefix("/webhdfs/v1")).strip("/")
        self.content = self.body()
        self.server.asked.append((operation, self.parameters, dict(self.headers)))
        refusal = self.server.refusals.get("data node" if at_data_node else operation)
        if refusal:
            self.refuse(*refusal)
            return
        try:
            getattr(self, operation.lower())(place)
        except KeyError:
            self.refuse(404, "FileNotFoundException", f"File {place} does not exist.")

    do_PUT = do_DELETE = get = post = operate  # noqa: N815 -- names of http.server

    def refuse(self, status, kind, message):
        self.as_json(status, RemoteException={"exception": kind, "message": message})

    def as_json(self, status=200, **document):
        self.answer(status, json.dumps(document, separators=(",", ":")))

    def to_data_node(self):
        # The same server by another name: who asks takes it for another one.
        self.answer(
            307, Location=f"http://localhost:{self.server.server_port}{self.path}&datanode=1"
        )

    def mkdirs(self, place):
        while place != "/":
            self.server.folders.add(place)
            place = place.rpartition("/")[0] or "/"
        self.as_json(boolean=True)

    def create(self, place):
        if "datanode" not in self.parameters:
            self.to_data_node()
            return
        self.server.files[place] = self.content
        self.answer(201)

    def append(self, place):
        if "datanode" not in self.parameters:
            self.to_data_node()
            return
        self.server.files[place] += self.content
        self.answer(200)

    def open(self, place):
        content = self.server.files[place]
        if "datanode" not in self.parameters:
            self.to_data_node()
            return
        start = int(self.parameters.get("offset", 0))
        end = start + int(self.parameters.get("length", len(content)))
        part = content[start:end]
        self.send_response(200)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def rename(self, place):
        files, target = self.server.files, self.parameters["destination"]
        overwrites = self.server.has_options and "renameoptions" in self.parameters
        if not overwrites and (place not in files or target in files):
            self.as_json(boolean=False)
            return
        files[target] = files.pop(place)
        self.answer(200) if overwrites else self.as_json(boolean=True)

    def delete(self, place):
        files, folders = self.server.files, self.server.folders
        below = {one for one in (*files, *folders) if one == place or one.startswith(f"{place}/")}
        for one in below:
            files.pop(one, None)
            folders.discard(one)
        self.as_json(boolean=bool(below))

    def getfilestatus(self, place):
        self.as_json(FileStatus=self.status(place))

    def liststatus(self, place):
        if place in self.server.files:
            found = [self.status(place)]
        elif place not in self.server.folders:
            raise KeyError(place)
        else:
            names = [*self.server.files, *self.server.folders]
            within = [one for one in names if one.rpartition("/")[0] == place.rstrip("/")]
            found = [self.status(one, one.rpartition("/")[2]) for one in within if one != "/"]
        self.as_json(FileStatuses={"FileStatus": found})

    def status(self, place, name=""):
        is_file = place in self.server.files
        if not is_file and place not in self.server.folders:
            raise KeyError(place)
        return {
            "pathSuffix": name,
            "type": "FILE" if is_file else "DIRECTORY",
            "length": len(self.server.files[place]) if is_file else 0,
            "modificationTime": self.server.now_ms,
        }


@contextmanager
def webhdfs(*, has_options=True):
    """Serve WebHDFS.

    :param has_options: whether a rename can take the place of a file; HttpFS has no such option
    """
    with serving(
        WebHDFSHandler,
        files={},
        folders={"/"},
        asked=[],
        refusals={},
        has_options=has_options,
        now_ms=int(time.time() * 1000),
    ) as server:
        yield server
