"""From interpreter start to listeners on each SparkSession, and to the drain at exit.

The observer itself starts with the SparkContext: the listener also has events of a job without a
SparkSession, and the observer may have to deliver them.

An interpreter that starts waits for the imports of this module. So the modules of PySpark, py4j and
the observer are imported where they are used.
"""

import atexit
import os
import socket
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import PathFinder


class Replacements:
    """Replaced attributes of classes, in the order in which they were replaced."""

    def __init__(self):
        self._replaced = []

    def replace(self, owner, name, new):
        """Replace a class's own attribute, and remember the original."""
        self._replaced.append((owner, name, vars(owner)[name], new))
        setattr(owner, name, new)

    def undo(self):
        """Put the originals back, except where others have replaced ours: theirs may call ours."""
        while self._replaced:
            owner, name, original, new = self._replaced.pop()
            if vars(owner).get(name) is new:
                setattr(owner, name, original)


# One message of the listener is kept out of the driver's log: it reads like a fault, but is not. A
# listener in ``--jars`` warns, in each application, about connectors that extend it and are on
# another class path, whether there are any or not. It then gives them the classes that they need,
# and logs another message if that fails. Log4j drops the first message, at the logger that has it.
# If people have Log4j settings of their own, nothing is changed.


_WARNING_LOGGER = "io.openlineage.spark.agent.lifecycle.SparkOpenLineageExtensionVisitorWrapper"
_WARNING = "(?s)An illegal reflective access operation will occur.*"
_OF_SPARK = "!/org/apache/spark/log4j2-"
"""Part of the location of Log4j settings that Spark takes if people have none."""


def drop_warning(client):
    """Drop the listener's warning, in a JVM whose Log4j has Spark's own settings.

    :param client: the gateway client of py4j, for the driver's JVM
    """
    from py4j.java_gateway import JavaClass

    def of_log4j(name):
        return JavaClass("org.apache.logging.log4j." + name, client)

    # Spark initialises its log with the first message of any of its classes, and would then read
    # the settings anew. So it is made to do so now.
    spark = getattr(JavaClass("org.apache.spark.util.Utils$", client), "MODULE$")
    spark.initializeLogIfNecessary(False)
    context = of_log4j("LogManager").getContext(False)
    configuration = context.getConfiguration()
    if _OF_SPARK not in str(configuration.getConfigurationSource().getLocation()):
        return
    result = of_log4j("core.Filter$Result")
    dropped = of_log4j("core.filter.RegexFilter").createFilter(
        _WARNING, None, False, result.DENY, result.NEUTRAL
    )
    # Without a level, the logger has that of the root logger, also when that is changed later.
    logger = of_log4j("core.config.LoggerConfig")(_WARNING_LOGGER, None, True)
    logger.addFilter(dropped)
    configuration.addLogger(_WARNING_LOGGER, logger)
    context.updateLoggers()


# Java calls Python through py4j's callback server, which foreachBatch uses, too.


_TCP_SEGMENT = 1400  # bytes, as in most networks


def start_callback_server(gateway):
    """Start the callback server in such a way that a job can end it.

    py4j ends the server by closing files from which its own threads read, and waits for the threads
    without limit. A job in which Java calls no Python has no such threads, and would not wait.
    """
    from py4j.java_gateway import pre_server_shutdown
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(gateway)
    server = gateway.get_callback_server()
    pre_server_shutdown.connect(_wake_readers, sender=server)
    _answer_at_once(server.server_socket)


def _answer_at_once(server_socket):
    """Have Java send segments that are smaller than its writes, on the connections it will open.

    Java writes a long answer 8 KB at a time. Where a segment holds more, the kernel keeps a write
    back until the one before it is acknowledged, and our side acknowledges only after some 40 ms.
    """
    try:
        server_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _TCP_SEGMENT)
    except (AttributeError, OSError):  # this system cannot do it: long answers are slow then
        return


def _wake_readers(server, **_):
    from py4j.java_gateway import quiet_shutdown

    try:
        for connection in list(server.connections):
            quiet_shutdown(connection.socket)
    except Exception:  # the job must never notice
        return


def java_reference(jvm, listener):
    """Give Java's reference to a Python object; py4j would make a new one in each call."""
    from sparklineage_observer.jvm import Classes

    held = Classes(jvm).array_list()
    held.add(listener)
    return held.get(0)


_MODULE = "pyspark.sql.session"
_DRAIN_MS = 10000


def install():
    """Wait for the module with SparkSession; pyspark itself must not be imported early."""
    atexit.register(_at_exit)  # the first of all, so it runs last: others may still write
    if _MODULE in sys.modules:
        _wrap(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the one module that it waits for, and removes itself from ``sys.meta_path`` then."""

    def find_spec(self, name, path, target=None):
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                break
        else:
            spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Wraps the real loader for one module: one zipimporter serves all modules of pyspark.zip."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self.__dict__["_inner"], name)

    def create_module(self, spec):
        return self._inner.create_module(spec)

    def exec_module(self, module):
        self._inner.exec_module(module)
        try:
            module.__spec__.loader = module.__loader__ = self._inner
            _wrap(module)
        except Exception:  # the job must never notice
            return


def _wrap(module):
    wrap_sessions(module)
    _wrap_jvm(sys.modules["pyspark"].SparkContext)


def wrap_sessions(module):
    """Observe each SparkSession and each SparkContext that is made from now on.

    :param module: the imported module that has SparkSession
    """
    _wrap_init(module.SparkSession, attach)
    # The class is imported by now, except with Spark Connect.
    _wrap_init(sys.modules["pyspark"].SparkContext, observe)


def _wrap_init(of, act):
    """Call a function with each instance of a class, once the instance is made."""
    original = of.__init__

    def __init__(self, *args, **kwargs):  # noqa: N807  (replaces the original)
        original(self, *args, **kwargs)
        act(self)

    __init__.__wrapped__ = original
    __init__.__doc__ = original.__doc__
    attached.replacements.replace(of, "__init__", __init__)


def _wrap_jvm(of):
    """Prepare the JVM as soon as there is one, because the listener is made soon after."""
    original = of._ensure_initialized.__func__

    def _ensure_initialized(cls, *args, **kwargs):
        original(cls, *args, **kwargs)
        of._ensure_initialized = classmethod(original)
        for prepare in (drop_warning, _prepare_delivery):
            try:
                prepare(cls._jvm._gateway_client)
            except Exception:  # noqa: S112  (a Spark with another log than Log4j 2, for one)
                continue

    of._ensure_initialized = classmethod(_ensure_initialized)


def _prepare_delivery(client):
    from sparklineage_observer import delivery  # which an interpreter at start need not import

    attached.delivered_from = delivery.prepare(client)


class _Attached:
    """The observer of this process, and the changes that it made to the process.

    observer: None until a context with our configuration is made; settings: these stand for that
    configuration in a process with other work, which removes the listeners at the end.
    """

    def __init__(self):
        self.replacements = Replacements()
        self.begin({})

    def begin(self, settings):
        self.settings = settings
        self.observer = None
        self.delivered_from = None
        self.delivery = None
        self.sessions = set()
        self.listeners = []
        self.process = os.getpid()

    def registered(self, remove, listener):
        """Remember how to remove a listener, if this process will do so."""
        if self.settings:
            self.listeners.append((remove, listener))


attached = _Attached()


def observe(context):
    """Observe the queries of a SparkContext, and deliver the records if that is configured.

    :return: the observer; None if the configuration asks for none
    """
    try:
        if attached.observer is None:
            _begin(context)
        if attached.observer is not None:
            attached.observer.context_is(context._jvm, context._jsc)
    except Exception as error:  # the job must never notice
        if attached.observer is not None:
            attached.observer.failed("attach", error)
    return attached.observer


def _begin(context):
    conf = attached.settings or context.getConf()
    file = conf.get("spark.sparklineage.observations")
    if not file:
        return
    from sparklineage_observer import delivery
    from sparklineage_observer.observer import Observer

    file = attached.delivered_from or file
    tag = conf.get("spark.sparklineage.tag", "")
    limits = conf.get("spark.sparklineage.limits", "")
    observer = attached.observer = Observer(file, tag, limits)
    _wrap_streams(observer)
    if attached.delivered_from:
        url = conf.get("spark.sparklineage.deliver")
        run = conf.get("spark.sparklineage.run", "")
        attached.delivery = delivery.begun(context, url, run, file, observer)


def attach(session):
    """Register a listener with a session; a session that has one is left alone."""
    observer = None
    try:
        java_session = getattr(session, "_jsparkSession", None)
        if java_session is None:  # Spark Connect: no driver JVM to listen to
            return
        context = session.sparkContext
        observer = observe(context)
        if observer is None:
            return
        key = java_session.hashCode()  # Java's default hash, so no other session has it
        if key in attached.sessions:
            return
        attached.sessions.add(key)
        start_callback_server(context._gateway)
        manager = java_session.listenerManager()
        listener = java_reference(context._jvm, _Listener(observer))
        attached.registered(manager.unregister, listener)
        manager.register(listener)
    except Exception as error:  # the job must never notice
        if observer is not None:
            observer.failed("attach", error)


def _wrap_streams(observer):
    """Listen to a session's streams from its first stream on: a job without any has no listener."""
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    def listen(writer):
        try:
            for listener in observer.streams.listen_to(writer._spark):
                attached.registered(*listener)
        except Exception as error:  # the job must never notice
            observer.failed("stream", error)

    _wrap_init(DataStreamWriter, listen)


class _Listener:
    """org.apache.spark.sql.util.QueryExecutionListener; called on Spark's listener bus thread."""

    class Java:
        """Names the Java interface for py4j."""

        implements = ["org.apache.spark.sql.util.QueryExecutionListener"]  # noqa: RUF012  (py4j)

    def __init__(self, observer):
        self._observer = observer

    def onSuccess(self, function, execution, duration_ns):  # noqa: N802  (Java's name)
        self._observer.finished(function, execution, duration_ns)

    def onFailure(self, function, execution, exception):  # noqa: N802  (Java's name)
        self._observer.finished(function, execution, 0, exception)

    def equals(self, _other):
        """Answer Java, which does not compare an object with itself: no other object is equal."""
        return False

    def toString(self):  # noqa: N802  (Java's name)
        return "sparklineage_observer"


def _at_exit():
    # A child that the job has forked shares the connection to the JVM, and would disturb it.
    if attached.observer is None or os.getpid() != attached.process:
        return
    try:
        attached.observer.finish(_DRAIN_MS)
    except Exception as error:  # the job must never notice
        attached.observer.failed("exit", error)
    try:
        if attached.delivery is not None:
            attached.delivery.finish()
    except Exception:  # the JVM is gone, for one
        return
