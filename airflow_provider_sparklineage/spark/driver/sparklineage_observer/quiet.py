"""One message of the listener kept out of the driver's log: it reads like a fault, and is none.

A listener in ``--jars`` warns in each application of connectors that extend it and are elsewhere,
whether there are any or not. It then gives them what they need of it, and logs another message if
that fails. Log4j drops this one, at the logger that has it; where people have settings of their
own, nothing is changed.
"""

_LOGGER = "io.openlineage.spark.agent.lifecycle.SparkOpenLineageExtensionVisitorWrapper"
_MESSAGE = "(?s)An illegal reflective access operation will occur.*"
_OF_SPARK = "!/org/apache/spark/log4j2-"
"""In the location of settings that Spark takes where people have none."""


def quiet(client):
    """Drop the message, in a JVM whose log4j has Spark's own settings.

    :param client: py4j's, of the driver's JVM
    """
    from py4j.java_gateway import JavaClass

    def of_log4j(name):
        return JavaClass("org.apache.logging.log4j." + name, client)

    # As the first message of any of Spark's classes does, which would take the settings anew.
    spark = getattr(JavaClass("org.apache.spark.util.Utils$", client), "MODULE$")
    spark.initializeLogIfNecessary(False)
    context = of_log4j("LogManager").getContext(False)
    configuration = context.getConfiguration()
    if _OF_SPARK not in str(configuration.getConfigurationSource().getLocation()):
        return
    result = of_log4j("core.Filter$Result")
    dropped = of_log4j("core.filter.RegexFilter").createFilter(
        _MESSAGE, None, False, result.DENY, result.NEUTRAL
    )
    # Without a level it has that of the root logger, whatever this will be set to.
    logger = of_log4j("core.config.LoggerConfig")(_LOGGER, None, True)
    logger.addFilter(dropped)
    configuration.addLogger(_LOGGER, logger)
    context.updateLoggers()
