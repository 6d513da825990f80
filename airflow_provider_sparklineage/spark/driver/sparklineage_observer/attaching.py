"""Attaches the observer to each SparkContext and SparkSession, and finishes it at exit.

The observer begins with the SparkContext, and not only with a SparkSession: a job without a
SparkSession has events of the listener, too, and the observer may have to deliver them.

The imports of this module delay each start of an interpreter. So the modules of PySpark and py4j
are imported only where they are used. The other modules of the observer are imported while Spark
makes the SparkContext.
"""

import atexit
import functools
import importlib.util
import os
import socket
import sys
import warnings
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder


class Replacements:
    """The replaced attributes of classes, with their originals, so that they can be put back."""

    def __init__(self):
        self._replaced = []

    def replace(self, owner, name, new):
        """Replace an attribute of a class, and remember the original.

        :param owner: the class, which has to define the attribute itself
        :param name: the attribute's name
        :param new: the new value of the attribute
        """
        self._replaced.append((owner, name, vars(owner)[name], new))
        setattr(owner, name, new)

    def undo(self):
        """Put the originals back; do not change an attribute that other code has replaced since.

        That code may still call our replacement.
        """
        while self._replaced:
            owner, name, original, new = self._replaced.pop()
            if vars(owner).get(name) is new:
                setattr(owner, name, original)


# One message of the listener is dropped from the driver's log, because it reads like a fault, but
# is none. A listener in ``--jars`` warns in each application about connectors that extend the
# listener and are on another class path, whether there are such connectors or not. Then the
# listener gives such connectors the classes that they need, and logs another message if that fails.
# A filter at the listener's logger makes Log4j drop the first message. If the user has other Log4j
# settings, nothing is changed.


_WARNING_LOGGER = "io.openlineage.spark.agent.lifecycle.SparkOpenLineageExtensionVisitorWrapper"
_WARNING = "(?s)An illegal reflective access operation will occur.*"
_OF_SPARK = "!/org/apache/spark/log4j2-"
"""A part of the location of Spark's own Log4j settings, which Spark uses if the user has none."""


def drop_warning(client):
    """Make Log4j drop OpenLineage's warning that an illegal reflective access will occur.

    If Log4j does not have Spark's own settings, nothing is changed.

    :param client: the gateway client of py4j, for the driver's JVM
    """
    from py4j.java_gateway import JavaClass

    def of_log4j(name):
        return JavaClass("org.apache.logging.log4j." + name, client)

    # Spark reads its Log4j settings with the first message of any of its classes, and that would
    # remove the filter. So Spark has to read the settings now.
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
    # A logger without a level has the level of the root logger, even if that is changed later.
    logger = of_log4j("core.config.LoggerConfig")(_WARNING_LOGGER, None, True)
    logger.addFilter(dropped)
    configuration.addLogger(_WARNING_LOGGER, logger)
    context.updateLoggers()


# Java calls Python through py4j's callback server, which a job's foreachBatch uses as well.


_TCP_SEGMENT = 1400  # bytes, the usual size in most networks


def start_callback_server(gateway):
    """Start py4j's callback server, and make sure that the job can end it without waiting.

    To end the server, py4j closes files from which the server's threads read, and waits for these
    threads without a limit. So the threads are woken first. Without the observer, a job in which
    Java calls no Python has no such threads, and does not wait.

    :param gateway: the JavaGateway of the SparkContext
    """
    from py4j.java_gateway import pre_server_shutdown
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(gateway)
    server = gateway.get_callback_server()
    pre_server_shutdown.connect(_wake_readers, sender=server)
    _answer_at_once(server.server_socket)


def _answer_at_once(server_socket):
    """Make the TCP segments of Java's future connections smaller than the pieces that Java writes.

    Java writes a long answer in pieces of 8 KB. If a segment can hold more, the kernel sends a
    piece only after the piece before is acknowledged, and Python's side acknowledges only after
    some 40 ms.

    :param server_socket: the socket on which the callback server accepts the connections
    """
    # A system without this option has slow long answers.
    with suppress(AttributeError, OSError):
        server_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _TCP_SEGMENT)


def _wake_readers(server, **_):
    from py4j.java_gateway import quiet_shutdown

    with suppress(Exception):  # the job must never notice
        for connection in list(server.connections):
            quiet_shutdown(connection.socket)


def java_reference(jvm, listener):
    """Give a Java reference to a listener that is a Python object.

    If the Python object were passed to Java instead, py4j would make a new reference in each call.

    :param jvm: the JVM view of py4j
    """
    from sparklineage_observer.jvm import Classes

    held = Classes(jvm).array_list()
    held.add(listener)
    return held.get(0)


_MODULE = "pyspark.sql.session"
_DRAIN_MS = 10000
_STOP_MS = 60000  # Spark itself waits without a limit


def install():
    """Attach the observer to PySpark as soon as the job imports ``pyspark.sql.session``.

    From then on, each new SparkContext and SparkSession is observed. At exit, the observer is
    finished. This function must not import pyspark itself.
    """
    atexit.register(_at_exit)  # registered first, so it runs last: other functions may still write
    if _MODULE in sys.modules:
        _wrap(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """An import hook for ``pyspark.sql.session``.

    It removes itself when this module is imported.
    """

    def find_spec(self, name, path, target=None):  # noqa: ARG002  (importlib gives them)
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """A wrapper of the real loader, which attaches the observer to the module that it loaded.

    The real loader is not changed, because one zipimporter loads all modules of pyspark.zip.
    """

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self.__dict__["_inner"], name)

    def create_module(self, spec):
        return self._inner.create_module(spec)

    def exec_module(self, module):
        self._inner.exec_module(module)
        with suppress(Exception):  # the job must never notice
            module.__spec__.loader = module.__loader__ = self._inner
            _wrap(module)


def _wrap(module):
    wrap_sessions(module)
    _wrap_jvm(sys.modules["pyspark"].SparkContext)


def wrap_sessions(module):
    """Observe each SparkSession and each SparkContext that is made from now on.

    :param module: the imported module that defines SparkSession
    """
    _wrap_init(module.SparkSession, attach)
    # SparkContext is imported by now, except with Spark Connect.
    _wrap_init(sys.modules["pyspark"].SparkContext, observe)
    _wrap_stop(sys.modules["pyspark"].SparkContext)


def _wrap_init(of, act):
    """Call ``act`` with each new instance of the class ``of``, after its ``__init__``.

    :param act: a function that is called with the new instance
    """
    original = of.__init__

    def __init__(self, *args, **kwargs):  # noqa: N807  (replaces the original)
        original(self, *args, **kwargs)
        act(self)

    __init__.__wrapped__ = original
    __init__.__doc__ = original.__doc__
    attached.replacements.replace(of, "__init__", __init__)


def _wrap_stop(of):
    """Let the listeners of a SparkContext finish before it is stopped.

    While it stops, Spark runs no jobs any more, and waits for the listeners. OpenLineage's listener
    runs a Spark job to count the files of a Delta table. So if a job with such a table stops its
    context while the listener lags behind, both wait for ever.

    :param of: the class SparkContext
    """
    original = of.stop

    @functools.wraps(original)
    def stop(self):
        with suppress(Exception):  # the job must never notice
            if _is_observed():
                attached.observer.drain(_STOP_MS)
        original(self)

    attached.replacements.replace(of, "stop", stop)


def _wrap_jvm(of):
    """Replace the method of SparkContext that starts the JVM by one that also prepares the JVM.

    After the JVM has started, and before Spark makes OpenLineage's listener, the listener's warning
    is dropped (:func:`drop_warning`), the delivery of the observer's file is prepared if the
    configuration asks for it, and the import of the observer is begun.

    :param of: the class SparkContext
    """
    original = of._ensure_initialized.__func__

    def _ensure_initialized(cls, *args, **kwargs):
        original(cls, *args, **kwargs)
        of._ensure_initialized = classmethod(original)
        for prepare in (
            drop_warning,
            _ignore_path_warning,
            _prepare_delivery,
            _import_observer,
        ):
            with suppress(Exception):  # for example, a Spark without Log4j 2
                prepare(cls._jvm._gateway_client)

    of._ensure_initialized = classmethod(_ensure_initialized)


_PATH_WARNING = r"Failed to add file \[[^]\n]*sparklineage_observer\.zip\] specified in "


def _ignore_path_warning(_client):
    """Ignore PySpark's warning that it cannot add our zip to Python's path, where it is already.

    On YARN, PySpark looks for the zip at its place on the machine that submitted the job. The user
    may have made warnings errors, and then the warning about a file of ours would end the job.

    :param _client: not used; the other steps of :func:`_wrap_jvm` take the gateway client
    """
    warnings.filterwarnings("ignore", _PATH_WARNING)


def _prepare_delivery(client):
    from py4j.java_gateway import JavaClass

    if JavaClass("java.lang.System", client).getProperty("spark.sparklineage.deliver"):
        from sparklineage_observer import delivery

        attached.delivered_from = delivery.prepare(client)


def _import_observer(_client):
    """Import the observer in a thread; the job waits for its SparkContext meanwhile.

    The zip has sources only, so the import compiles them, which takes some 60 ms.

    :param _client: not used; the other steps of :func:`_wrap_jvm` take the gateway client
    """
    import threading

    def load():
        # If it fails, the import is repeated where it is needed, and reported there.
        with suppress(Exception):
            importlib.import_module("sparklineage_observer.observer")

    threading.Thread(target=load, name="sparklineage-import", daemon=True).start()


class _Attached:
    """The observer of this process, and the changes that it made to the process.

    observer: None until a SparkContext with our configuration is made; settings: the properties
    ``spark.sparklineage.…`` in a process that also does other work (:mod:`.in_process`), else
    empty, because then Spark's configuration has them; listeners: in such a process, pairs
    ``(function, listener)``, where the function removes the listener at the end of the application.
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
        """Remember a listener, and the function that removes it at the end of the application.

        In a process that is only a driver, nothing is remembered, because no listener is removed.

        :param remove: a function that takes the listener
        :param listener: the listener, a Java object
        """
        if self.settings:
            self.listeners.append((remove, listener))


attached = _Attached()


def observe(context):
    """Observe a SparkContext; make the observer first, if this process has none yet.

    :param context: a SparkContext of PySpark
    :return: the observer of this process; None if the configuration asks for no observer
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
    conf = attached.settings or context._jsc.getConf()  # PySpark's own copy takes 200 calls
    file = conf.get("spark.sparklineage.observations", "")
    if not file:
        return
    from sparklineage_observer.observer import Observer

    file = attached.delivered_from or file
    tag = conf.get("spark.sparklineage.tag", "")
    limits = conf.get("spark.sparklineage.limits", "")
    observer = attached.observer = Observer(file, tag, limits)
    _wrap_streams(observer)
    _wrap_saves(observer)
    if attached.delivered_from:
        from sparklineage_observer import delivery

        url = conf.get("spark.sparklineage.deliver", "")
        run = conf.get("spark.sparklineage.run", "")
        attached.delivery = delivery.begun(context, url, run, file, observer)


def attach(session):
    """Register a listener for ended queries with a SparkSession, unless it has ours already.

    :param session: a SparkSession of PySpark; nothing is done for one of Spark Connect
    """
    observer = None
    try:
        java_session = getattr(session, "_jsparkSession", None)
        if java_session is None:  # a session of Spark Connect has no JVM here
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
    """Register a listener for streams with a session as soon as the session makes a stream.

    So a job without streams gets no listener for streams.

    :param observer: the :class:`.observer.Observer` that records the streams
    """
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    def listen(writer):
        try:
            observer.streams.listen_to(writer._spark, attached.registered)
        except Exception as error:  # the job must never notice
            observer.failed("stream", error)

    _wrap_init(DataStreamWriter, listen)


def _wrap_saves(observer):
    """Record what RDD code saves; see :mod:`.saves`.

    :param observer: the :class:`.observer.Observer` that records the writes
    """
    from sparklineage_observer import saves

    saves.wrap(sys.modules["pyspark"].RDD, attached.replacements.replace, observer)


class _Listener:
    """The Python side of a QueryExecutionListener, which Spark calls on its listener bus thread."""

    class Java:
        """Names the Java interface that the listener implements, for py4j."""

        implements = ["org.apache.spark.sql.util.QueryExecutionListener"]  # noqa: RUF012  (py4j)

    def __init__(self, observer):
        self._observer = observer

    def onSuccess(self, function, execution, duration_ns):  # noqa: N802  (Java's name)
        self._observer.finished(function, execution, duration_ns)

    def onFailure(self, function, execution, exception):  # noqa: N802  (Java's name)
        self._observer.finished(function, execution, 0, exception)

    def equals(self, _other):
        """Give False: Java calls this method only with other objects, which are not equal."""
        return False

    def toString(self):  # noqa: N802  (Java's name)
        return "sparklineage_observer"


def _is_observed():
    # A child process that the job has forked would disturb the connection to the JVM, which it
    # shares with the driver.
    return attached.observer is not None and os.getpid() == attached.process


def _at_exit():
    if not _is_observed():
        return
    try:
        attached.observer.finish(_DRAIN_MS)
    except Exception as error:  # the job must never notice
        attached.observer.failed("exit", error)
    if attached.delivery is not None:
        with suppress(Exception):  # for example, the JVM is gone
            attached.delivery.finish()
