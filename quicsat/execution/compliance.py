"""Compliance check: an image must answer an unknown test name with exit status 127, in each of its roles."""

import secrets

from quicsat.execution.run_config import RunConfig
from quicsat.execution.run_inputs import Inputs
from quicsat.execution.transfer import endpoint
from quicsat.links.backend import Testbed
from quicsat.links.session import EarlyEnd, RunControl, SessionRequest
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.endpoint_contract import UNSUPPORTED_STATUS
from quicsat.model.evidence import Exit
from quicsat.model.implementation import Implementation, Role
from quicsat.model.results import Compliance
from quicsat.model.run import File, Run
from quicsat.model.test_case import TestCase
from quicsat.model.text import printable_lines
from quicsat.model.units import MBPS, MS

TIMEOUT = 30.0
"""Seconds within which an endpoint must have ended; clients may wait that long for the simulator."""
FILE = Inputs((File("file", 0, ""),), {}, {})
"""What a client would be asked to fetch."""
EXPECTED = f"instead of ending with {UNSUPPORTED_STATUS}"
LAST_LINES, LONGEST_LINE = 10, 300
"""Lines, and characters of each, that are kept of what an image wrote that is not compliant."""


def check_compliance(
    implementation: Implementation, roles: tuple[Role, ...], testbed: Testbed, config: RunConfig, control: RunControl
) -> tuple[Compliance, ...]:
    """Run ``implementation`` in all ``roles`` at once, with a random test name.

    Raises :class:`HarnessFault` or ``Interrupted`` if the check itself fails.
    """
    run = _unknown_test(implementation)
    endpoints = {role: endpoint(role, run, config, FILE) for role in roles}
    ends = testbed.exits(SessionRequest(run, endpoints, control), TIMEOUT)
    image = config.image_of(implementation).id
    return tuple(_compliance(implementation.name, role, ends[role], image) for role in roles)


def _compliance(name: str, role: Role, ended: EarlyEnd, image: str) -> Compliance:
    reason = _non_compliance(ended.end)
    return Compliance(name, role, not reason, reason, image, _last_lines(ended.output) if reason else "")


def _last_lines(output: bytes) -> str:
    """The last lines of what a container wrote, without their times."""
    lines = [line.partition(" ")[2] for line in output.decode(errors="replace").splitlines()]
    return printable_lines("\n".join([line for line in lines if line.strip()][-LAST_LINES:]), LONGEST_LINE)


def _unknown_test(implementation: Implementation) -> Run:
    name = "".join(secrets.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(10))
    link = EmulatedLink.symmetric("simple-p2p", Direction(15 * MS, 10 * MBPS, 25))
    case = TestCase("compliance", "", "", link, (), 1, TIMEOUT, client_test=name, server_test=name)
    return Run(implementation, implementation, case, 1, 1)


def _non_compliance(end: Exit | str) -> str:
    """Why the endpoint is not compliant; empty if it is."""
    if isinstance(end, str):
        return f"the image cannot be started: {end}"
    if end.killed:
        return f"it still ran {TIMEOUT:.0f} s after an unknown test name, {EXPECTED}"
    if end.status == UNSUPPORTED_STATUS:
        return ""
    return f"it answered an unknown test name with exit status {end.status}, {EXPECTED}"
