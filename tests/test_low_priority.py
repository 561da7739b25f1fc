"""What yields to other tests: priority, exit status, signals."""

import os
import signal
import subprocess
import sys
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "tests.low_priority", *words], stdout=subprocess.PIPE, text=True)


def test_the_command_has_the_lowest_priority_and_its_exit_status_is_kept() -> None:
    process = start("sh", "-c", "nice; cat /proc/self/autogroup; exit 7")
    out, _ = process.communicate(timeout=60)
    nice, *group = out.split()
    assert nice == "19"
    if AUTOGROUP.exists() and os.geteuid() == 0:
        assert group[-1] == "19"
    assert process.returncode == 7


def test_the_end_is_passed_on() -> None:
    process = start("sh", "-c", "trap 'echo ended; exit 3' TERM; echo begun; while :; do sleep 0.1; done")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == "ended\n"
    assert process.returncode == 3


def test_a_signal_that_comes_while_the_command_starts_is_passed_on() -> None:
    """The command sends it itself, before its parent can have done anything else."""
    words = "trap 'echo ended; exit 3' TERM; kill -TERM $PPID; while :; do sleep 0.1; done"
    for _ in range(5):
        process = start("sh", "-c", words)
        assert process.communicate(timeout=60)[0] == "ended\n"
        assert process.returncode == 3
