"""Runs in which an endpoint crashes at a given moment in a given manner, and whom the verdict names."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution.retries import ATTEMPTS
from quicsat.links.backend import Testbed
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.run import Run
from quicsat.model.run_limits import RunLimits
from quicsat.model.test_case import TestCase
from quicsat.model.units import MBPS, MIB
from tests.engine.bench import make

MOMENTS = ("before ready", "handshake", "transfer", "end", "after the other")
MANNERS = ("panic", "SIGSEGV", "exit 1", "memory", "endless")
CODES = {
    "panic": {ErrorCode.CLIENT_FAILED, ErrorCode.SERVER_EXITED},
    "SIGSEGV": {ErrorCode.CRASHED},
    "exit 1": {ErrorCode.CLIENT_FAILED, ErrorCode.SERVER_EXITED},
    "memory": {ErrorCode.OUT_OF_MEMORY},
    "endless": {ErrorCode.TIMEOUT, ErrorCode.SERVER_NOT_READY},
}
LINK = EmulatedLink.symmetric("simple-p2p", Direction(0.05, 20 * MBPS, 100))
CASE = TestCase("crash", "CR", "", LINK, (1_000_000,), 1, 20.0)
MEMORY = 256 * MIB
"""Of an endpoint in real time."""
TAG = "quicsat/test-crashing:latest"


@dataclass(frozen=True)
class Crash:
    """Who crashes, when and how."""

    role: Role
    moment: str
    manner: str

    @property
    def parameters(self) -> dict[str, str]:
        """Environment variables of both endpoints."""
        words = f"--crash {self.moment.replace(' ', '-')} {self.manner.replace(' ', '-')}"
        if self.role is Role.CLIENT and self.moment == "after the other":
            return {"CLIENT_PARAMS": words, "SERVER_PARAMS": "--crash end leave"}
        return {f"{self.role.upper()}_PARAMS": words}

    def told_by(self, verdict: Verdict) -> bool:
        """Whether the verdict names the endpoint, and nothing else.

        An endpoint that computes when the transfer is over is stopped, as any other that still runs then.
        """
        if self.manner == "endless" and self.moment in MOMENTS[-2:] and verdict.outcome is Outcome.SUCCEEDED:
            return True
        named = f"The {self.role} " in verdict.reason
        if self.manner == "endless":
            return verdict.code in CODES[self.manner] and named
        return verdict.code in CODES[self.manner] and verdict.reason.startswith(f"The {self.role} ")


def image(daemon: Daemon, aioquic: str) -> str:
    """Id of the image of ``crashing_endpoint.py``; ``aioquic``: id of aioquic's image."""
    dockerfile = (
        f"FROM {aioquic}\nCOPY crash.py /endpoint/\n"
        "RUN cd /endpoint && chmod 755 crash.py && ln -sf crash.py client && ln -sf crash.py server\n"
    )
    program = Path(__file__).with_name("crashing_endpoint.py").read_bytes()
    context = pack({"Dockerfile": dockerfile.encode(), "crash.py": program})
    return DaemonImages(daemon).build(context, TAG, {}, lambda _line: None).id


def play(
    crash: Crash | None, testbed: Testbed, images: Mapping[str, str], clock: Clock, directory: Path
) -> tuple[Verdict, Evidence, float]:
    """Verdict, evidence and seconds of a run; repeated if the machine was too busy to emulate the link.

    Without a crash, the endpoints do nothing wrong.
    """
    case = replace(CASE, limits=RunLimits(memory=MEMORY)) if clock is Clock.REAL else CASE
    both = Implementation("crashing", "", "", frozenset(Role))
    run = Run(both, both, case, 1, 1)
    parameters = crash.parameters if crash else {}
    for attempt in range(1, ATTEMPTS + 1):
        played = make(run, testbed, images, directory / str(attempt), parameters=parameters, clock=clock)
        if played[0].code is not ErrorCode.SIMULATOR_LAG:
            break
    return played
