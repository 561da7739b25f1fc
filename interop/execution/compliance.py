"""Compliance check: an image must answer an unknown test name with exit status 127, in each of its roles."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack
from queue import SimpleQueue

from interop.execution.daemon import Container, Event, StartFailure
from interop.execution.transfer import Surroundings, endpoint_spec, next_event
from interop.model import Compliance, EmulatedLink, Implementation, Role, Run, TestCase
from interop.units import MBPS, MS

TIMEOUT = 30.0
"""Seconds until an endpoint must have ended; clients of the contract wait that long for the simulator."""
UNSUPPORTED = 127


def check_compliance(
    implementation: Implementation, roles: tuple[Role, ...], around: Surroundings
) -> tuple[Compliance, ...]:
    """Run ``implementation`` in ``roles``, side by side, with a test name that nobody knows.

    Raises :class:`HarnessFault`, or ``Interrupted``, and says nothing about the image then.
    """
    run = _unknown_test(implementation)
    events: SimpleQueue[Event] = SimpleQueue()
    around.testbed.reset()
    with ExitStack() as stack:
        link = stack.enter_context(around.testbed.link(run, wait_for_server=False))
        endpoints = {
            role: stack.enter_context(
                around.testbed.daemon(role).container(endpoint_spec(role, run, around, ("file",)))
            )
            for role in roles
        }
        link.start(events)
        failures = {role: _start(container, events) for role, container in endpoints.items()}
        deadline = time.monotonic() + TIMEOUT
        while any(endpoints[role].running() for role in roles if not failures[role]) and time.monotonic() < deadline:
            next_event(events, deadline, around.stop)
        image = around.images[implementation.name]
        reasons = {role: failures[role] or _judge(container) for role, container in endpoints.items()}
        link.running()  # raises if it does not: a daemon that was started anew has ended the endpoints too
    return tuple(Compliance(implementation.name, role, not reason, reason, image) for role, reason in reasons.items())


def _unknown_test(implementation: Implementation) -> Run:
    name = "".join(secrets.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(10))
    link = EmulatedLink("simple-p2p", 15 * MS, 15 * MS, 10 * MBPS, 10 * MBPS, 25, 25)
    case = TestCase("compliance", "", "", link, (), 1, TIMEOUT, client_test=name, server_test=name)
    return Run(implementation, implementation, case, 1, 1)


def _start(container: Container, events: SimpleQueue[Event]) -> str:
    try:
        container.start()
    except StartFailure as failure:
        return f"the image cannot be started: {failure}"
    container.watch(events)
    return ""


def _judge(container: Container) -> str:
    """Why the endpoint is not compliant; empty if it is."""
    if container.running():
        return f"it still ran {TIMEOUT:.0f} s after an unknown test name"
    status = container.exit().status
    return "" if status == UNSUPPORTED else f"it answered an unknown test name with exit status {status}"
