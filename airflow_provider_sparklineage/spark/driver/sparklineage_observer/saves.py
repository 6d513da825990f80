"""Records the folders that RDD code writes by Hadoop's output formats.

Such a write is no query, so Spark does not report it to a QueryExecutionListener. OpenLineage's
listener reports some of these writes, but not those by the newer of Hadoop's two interfaces. The
methods of PySpark's RDD are the only place at which the folder of all of them is known.
"""

import time

from sparklineage_observer import jvm, records

_BY_PATH = (
    "saveAsHadoopFile",
    "saveAsNewAPIHadoopFile",
    "saveAsPickleFile",
    "saveAsSequenceFile",
    "saveAsTextFile",
)
_BY_CONF = ("saveAsHadoopDataset", "saveAsNewAPIHadoopDataset")
_FOLDER = ("mapreduce.output.fileoutputformat.outputdir", "mapred.output.dir")
_FORMAT = ("mapreduce.job.outputformat.class", "mapred.output.format.class")
# An output format of this name, such as ``MultipleTextOutputFormat``, chooses the files by the
# rows, and may write them into folders of their own.
_MULTIPLE = "Multiple"
_CUT = "its output format may have written into several folders"


def wrap(rdd, replace, observer):
    """Replace the methods of RDD that write files by ones that record each write that succeeded.

    :param rdd: PySpark's class RDD
    :param replace: a function that replaces an attribute of a class: ``replace(class, name, new)``
    :param observer: the :class:`.observer.Observer` that records the writes
    """
    for name in (*_BY_PATH, *_BY_CONF):
        if name in vars(rdd):
            replace(rdd, name, _recording(name, vars(rdd)[name], observer))


def _recording(name, original, observer):
    def save(self, *args, **kwargs):
        started = int(time.time() * 1000)
        result = original(self, *args, **kwargs)
        observer.observe("save", lambda: _records(name, self, started, args, kwargs, observer))
        return result

    save.__wrapped__ = original
    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(save, attribute, getattr(original, attribute))
    return save


def _records(name, rdd, started, args, kwargs, observer):
    """Give the records of one write that has ended: one, or none if nothing is known of it.

    :param name: the method's name
    :param rdd: the RDD that was saved
    :param started: the time in ms when the method was called
    :param args: the method's arguments after the RDD
    :param kwargs: the method's keyword arguments
    """
    if name in _BY_CONF:
        conf = kwargs["conf"] if "conf" in kwargs else args[0]
        path, kind = _first(conf, _FOLDER), _first(conf, _FORMAT)
    else:
        path = kwargs["path"] if "path" in kwargs else args[0]
        kind = "".join(str(value) for value in (*args[1:2], kwargs.get("outputFormatClass", "")))
    record = records.query_record(-1, name, started, int(time.time() * 1000))
    if not path:
        record["cut"] = [records.shortened(f"what {name} writes by {kind or 'an output format'}")]
        return [record]
    path = jvm.qualified(observer.classes, observer.conf, path)
    # Hadoop refuses a folder that is there already, unless this property switches that off.
    refuses = rdd.ctx._jsc.getConf().get("spark.hadoop.validateOutputSpecs", "true")
    mode = "create" if refuses == "true" else "append"
    layout = records.layout_of(path, [], [()])
    write = records.write_record("RDD", "files", path, mode, [layout], table=None)
    if _MULTIPLE in kind:
        write.update(how="unknown", cut=_CUT, layouts=[])
    record["writes"].append(write)
    return [record]


def _first(conf, keys):
    return next((conf[key] for key in keys if conf.get(key)), "")
