"""Compliance check: an image must answer an unknown test name with exit status 127, in each of its roles."""

from __future__ import annotations

import secrets

from quicsat.execution.run_config import RunConfig
from quicsat.execution.run_inputs import Inputs
from quicsat.execution.transfer import endpoint
from quicsat.links.backend import Testbed
from quicsat.links.session import RunControl, SessionRequest
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.endpoint_contract import UNSUPPORTED_STATUS
from quicsat.model.evidence import Exit
from quicsat.model.implementation import Implementation, Role
from quicsat.model.results import Compliance
from quicsat.model.run import File, Run
from quicsat.model.test_case import TestCase
from quicsat.model.units import MBPS, MS

TIMEOUT = 30.0
"""Seconds within which an endpoint must have ended; clients may wait that long for the simulator."""
FILE = Inputs((File("file", 0, ""),), {}, {})
"""What a client would be asked to fetch."""


def check_compliance(
    implementation: Implementation, roles: tuple[Role, ...], testbed: Testbed, config: RunConfig, control: RunControl
) -> tuple[Compliance, ...]:
    """Run ``implementation`` in all ``roles`` at once, with a random test name.

    Raises :class:`HarnessFault` or ``Interrupted`` if the check itself fails.
    """
    run = _unknown_test(implementation)
    endpoints = {role: endpoint(role, run, config, FILE) for role in roles}
    ends = testbed.exits(SessionRequest(run, endpoints, control), TIMEOUT)
    image = config.images[implementation.name].id
    reasons = {role: _non_compliance(ends[role]) for role in roles}
    return tuple(
        Compliance(implementation.name, role, reason is None, reason or "", image) for role, reason in reasons.items()
    )


def _unknown_test(implementation: Implementation) -> Run:
    name = "".join(secrets.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(10))
    link = EmulatedLink.symmetric("simple-p2p", Direction(15 * MS, 10 * MBPS, 25))
    case = TestCase("compliance", "", "", link, (), 1, TIMEOUT, client_test=name, server_test=name)
    return Run(implementation, implementation, case, 1, 1)


def _non_compliance(end: Exit | str) -> str | None:
    """Why the endpoint is not compliant; None if it is."""
    if isinstance(end, str):
        return f"the image cannot be started: {end}"
    if end.killed:
        return f"it still ran {TIMEOUT:.0f} s after an unknown test name"
    return (
        None if end.status == UNSUPPORTED_STATUS else f"it answered an unknown test name with exit status {end.status}"
    )
