"""Lines for people in the driver's log, in which there must be no secret."""

import re
import sys

from sparklineage_observer.records import shortened

# ``scheme://user:password@`` and ``?signature=…`` in an URL; ``container@`` of Azure is no secret.
_USER = re.compile(r"(?<=://)(?:[^/\s@]*:[^/\s@]*|(?<!abfs://)(?<!abfss://)[^/\s@]*)@")
_QUERY = re.compile(r"(?<=\?)[^\s?=]+=\S+")
_JAVA = re.compile(r"\n: (?:[\w$]+\.)*([^\n]+)")  # an exception, below py4j's own first line


def reason_of(error):
    """Describe an exception in one line without secrets; of Java's what Java says."""
    text = str(error)
    java = _JAVA.search(text)
    line = java.group(1) if java else f"{type(error).__name__}: {text}".partition("\n")[0]
    return shortened(without_secrets(line))


def without_secrets(text):
    """Leave out what can be a secret in an URL."""
    return _QUERY.sub("…", _USER.sub("", text))


def say(text):
    """Write a line."""
    try:
        sys.__stderr__.write(f"sparklineage: {without_secrets(text)}\n")
        sys.__stderr__.flush()
    except Exception:  # there is none, or nobody reads it
        return
