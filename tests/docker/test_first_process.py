"""Whether a signal reaches the first process of a container, from the masks of real processes."""

import subprocess
import sys
from pathlib import Path
from signal import SIGTERM

import pytest

from quicsat.docker import resource_use
from quicsat.docker.first_process import takes_signal


@pytest.mark.parametrize(
    ("preparation", "takes"),
    [
        ("pass", False),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", False),
        ("signal.signal(signal.SIGTERM, lambda *_: None)", True),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])", True),
    ],
)
def test_a_signal_needs_a_handler(preparation: str, takes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_use, "control_group", lambda _pid, _identity: Path())
    script = f"import signal, sys; {preparation}; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert takes_signal(process.pid, "container", SIGTERM) is takes
        process.communicate(b"")
    assert takes_signal(process.pid, "container", SIGTERM)  # it has ended


def test_a_process_elsewhere_may_take_it() -> None:
    assert takes_signal(1, "a container of another machine", SIGTERM)
