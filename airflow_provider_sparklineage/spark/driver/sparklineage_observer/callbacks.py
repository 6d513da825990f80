"""The server that Java calls Python by: py4j's, which foreachBatch uses, too."""

import socket

_SEGMENT = 1400  # bytes, as in most networks


def start_callback_server(gateway):
    """Start it, so that a job can end it.

    py4j ends it by closing files from which its own threads read, and waits for them for ever. A
    job in which Java calls no Python has no such threads, and would not wait.
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
    back until the one before it is acknowledged, and we acknowledge only after some 40 ms.
    """
    try:
        server_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT)
    except (AttributeError, OSError):  # not of this system: long answers are slow then
        return


def _wake_readers(server, **_):
    from py4j.java_gateway import quiet_shutdown

    try:
        for connection in list(server.connections):
            quiet_shutdown(connection.socket)
    except Exception:  # the job must never notice
        return


def reference(jvm, listener):
    """Give what Java has of a Python object: of the object itself it makes a new one each time."""
    from sparklineage_observer.jvm import Classes

    held = Classes(jvm).array_list()
    held.add(listener)
    return held.get(0)
