"""A folder of any file system that Spark knows, with Spark's own credentials for it."""

from sparklineage_observer.jvm import Classes

_MASK = "007"  # the worker, who collects and removes it, may be another user of the group
_BLOCK = 1024 * 1024  # of one call: py4j makes a text of it, which both sides keep in memory
_PUTS_WHOLE_FILES = ("s3a", "s3", "s3n", "gs")
"""Schemes of stores in which a file is not there before it is closed, and renaming is copying."""


class RemoteFolder:
    """Puts files into the folder; each appears whole or not at all.

    The file system is an instance of its own: a job may close the one that Spark shares.
    """

    def __init__(self, jvm, hadoop_conf, url):
        self._classes = Classes(jvm)
        self._conf = hadoop_conf
        self._is_whole = url.partition(":")[0].lower() in _PUTS_WHOLE_FILES
        self._file_system = None
        self._tried = None
        self._thread = None
        self.url = url
        self.has_worked = False
        """Whether the instance that there is has put a file."""

    def make(self):
        """Make the folder, where a file does not make it."""
        if not self._is_whole:
            self._connected().mkdirs(self._classes.path(self.url))

    def put(self, name, content):
        """Write a file; after a failure, with the same content."""
        file_system = self._connected()
        final = aside = self._path(name)
        # After a failure it may be there nevertheless: the answer was what did not arrive.
        if self._tried != name or not file_system.exists(final):
            self._tried = name
            if not self._is_whole:
                aside = self._path(f"{name}.part")
            self._write(file_system, aside, content)
            if aside is not final and not file_system.rename(aside, final):
                message = f"{name}.part cannot be renamed"
                raise OSError(message)
        self.has_worked = True

    @staticmethod
    def _write(file_system, path, content):
        stream = file_system.create(path, True)
        for begin in range(0, len(content), _BLOCK):
            stream.write(content[begin : begin + _BLOCK])
        # Not after an error: a store would take what it has got for the whole file.
        stream.close()

    def disconnect(self):
        """Take another instance the next time: this one may be what has failed."""
        file_system, self._file_system = self._file_system, None
        self.has_worked = False
        if file_system is not None:
            file_system.close()

    def interrupt(self):
        """End a call that hangs: its thread of the JVM can keep the JVM from ending."""
        if self._thread is not None:
            self._thread.interrupt()

    def _connected(self):
        if self._file_system is None:
            self._thread = self._classes.thread.currentThread()  # one for each of Python's
            uri = self._classes.path(self.url).toUri()
            conf = self._classes.configuration(self._conf)  # as it is now: a job may change it
            conf.set("fs.permissions.umask-mode", _MASK)
            file_system = self._classes.file_system.newInstance(uri, conf)
            file_system.setWriteChecksum(False)  # or a local one has a second file of each
            self._file_system = file_system
        return self._file_system

    def _path(self, name):
        return self._classes.path(f"{self.url}/{name}")
