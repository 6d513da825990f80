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
        self.url = url.rstrip("/")
        self._is_whole = url.partition(":")[0].lower() in _PUTS_WHOLE_FILES
        self._file_system = None

    def make(self):
        """Make the folder, where a file does not make it."""
        if not self._is_whole:
            self._connected().mkdirs(self._classes.path(self.url))

    def has(self, name):
        """Whether there is such a file."""
        return self._connected().exists(self._path(name))

    def put(self, name, content):
        """Write a file."""
        file_system = self._connected()
        aside = name if self._is_whole else f"{name}.part"
        stream = file_system.create(self._path(aside), True)
        for begin in range(0, len(content), _BLOCK):
            stream.write(content[begin : begin + _BLOCK])
        # Not after an error: a store would take what it has got for the whole file.
        stream.close()
        if aside != name and not file_system.rename(self._path(aside), self._path(name)):
            message = f"{name}.part cannot be renamed"
            raise OSError(message)

    def disconnect(self):
        """Take another instance the next time: this one may be what has failed."""
        file_system, self._file_system = self._file_system, None
        if file_system is not None:
            file_system.close()

    def _connected(self):
        if self._file_system is None:
            uri = self._classes.path(self.url).toUri()
            conf = self._classes.configuration(self._conf)  # as it is now: a job may change it
            conf.set("fs.permissions.umask-mode", _MASK)
            file_system = self._classes.file_system.newInstance(uri, conf)
            file_system.setWriteChecksum(False)  # or a local one has a second file of each
            self._file_system = file_system
        return self._file_system

    def _path(self, name):
        return self._classes.path(f"{self.url}/{name}")
