"""Commands that hang, print without end, or leave others behind: none is waited for."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress

import pytest

from airflow_provider_sparklineage.spark.submit import commands

LONG = 60  # far beyond what any of these tests takes


def run(script, timeout_s, take=lambda _: None):
    return commands.run(["sh", "-c", script], os.environ, timeout_s, take)[1]


def is_alive(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    return False


def ended(pid):
    for _ in range(100):
        if not is_alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_what_a_command_prints_is_given_line_by_line_and_as_a_whole():
    lines = []
    assert run("echo one; echo two >&2; printf three", LONG, lines.append) == "one\ntwo\nthree"
    assert lines == ["one\n", "two\n", "three"]


def test_credentials_in_urls_are_not_passed_on():
    assert run("echo https://ci:hidden-word@nexus/maven", LONG) == "https://nexus/maven\n"


def test_bytes_that_are_no_text_are_replaced():
    assert run(r"printf '\377x'", LONG) == "\ufffdx"


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path):
    pid = tmp_path / "pid"
    script = f"echo asked; sleep {LONG} & echo $! > {pid}; wait"
    with pytest.raises(subprocess.TimeoutExpired) as late:
        run(script, 0.5)
    assert late.value.output == "asked\n"
    assert ended(int(pid.read_text()))


def test_who_interrupts_the_caller_ends_the_command(tmp_path):
    pid = tmp_path / "pid"

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            run(f"sleep {LONG} & echo $! > {pid}; wait", LONG)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended(int(pid.read_text()))


def test_what_a_command_leaves_in_the_background_is_not_waited_for(tmp_path):
    pid = tmp_path / "pid"
    started = time.monotonic()
    try:
        printed = run(f"echo done; setsid sleep {LONG} & echo $! > {pid}", LONG)
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    assert printed == "done\n"
    assert time.monotonic() - started < LONG / 2


def test_a_command_that_closes_its_output_and_goes_on_is_ended():
    with pytest.raises(subprocess.TimeoutExpired):
        run(f"echo x; exec >&- 2>&-; sleep {LONG}", 0.5)


def test_of_a_command_that_prints_without_end_little_is_kept():
    with pytest.raises(subprocess.TimeoutExpired) as late:
        run("yes", 0.5)
    assert len(late.value.output) < 2 * (1 << 20)


def test_a_command_that_is_not_there_is_an_os_error():
    with pytest.raises(FileNotFoundError):
        commands.run(["/nowhere/java"], os.environ, LONG)
