"""Compliance check: an image must answer an unknown test name with exit status 127, in each of its roles."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack
from queue import SimpleQueue

from interop.docker.containers import Container, ContainerEvent, StartFailure, create_container
from interop.execution.transfer import RunContext, endpoint_spec, next_event
from interop.model.emulated_link import EmulatedLink
from interop.model.implementation import Implementation, Role
from interop.model.results import Compliance
from interop.model.run import Run
from interop.model.test_case import TestCase
from interop.model.units import MBPS, MS

TIMEOUT = 30.0
"""Seconds within which an endpoint must have ended; clients may wait that long for the simulator."""
UNSUPPORTED = 127


def check_compliance(
    implementation: Implementation, roles: tuple[Role, ...], context: RunContext
) -> tuple[Compliance, ...]:
    """Run ``implementation`` in all ``roles`` at once, with a random test name.

    Raises :class:`HarnessFault` or ``Interrupted`` if the check itself fails.
    """
    run = _unknown_test(implementation)
    events: SimpleQueue[ContainerEvent] = SimpleQueue()
    context.testbed.reset()
    with ExitStack() as stack:
        link = stack.enter_context(context.testbed.link(run, wait_for_server=False))
        endpoints = {
            role: stack.enter_context(
                create_container(context.testbed.daemon(role), endpoint_spec(role, run, context, ("file",)))
            )
            for role in roles
        }
        link.start(events)
        failures = {role: _start(container, events) for role, container in endpoints.items()}
        deadline = time.monotonic() + TIMEOUT
        while (
            any(endpoints[role].running() for role in roles if failures[role] is None) and time.monotonic() < deadline
        ):
            next_event(events, deadline, context.stop)
        image = context.images[implementation.name]
        reasons = {role: failures[role] or _non_compliance(container) for role, container in endpoints.items()}
        link.running()  # raises if it is not: a restarted daemon has ended the endpoints as well
    return tuple(
        Compliance(implementation.name, role, reason is None, reason or "", image) for role, reason in reasons.items()
    )


def _unknown_test(implementation: Implementation) -> Run:
    name = "".join(secrets.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(10))
    link = EmulatedLink("simple-p2p", 15 * MS, 15 * MS, 10 * MBPS, 10 * MBPS, 25, 25)
    case = TestCase("compliance", "", "", link, (), 1, TIMEOUT, client_test=name, server_test=name)
    return Run(implementation, implementation, case, 1, 1)


def _start(container: Container, events: SimpleQueue[ContainerEvent]) -> str | None:
    """Why the image cannot be started; None if it was."""
    try:
        container.start()
    except StartFailure as failure:
        return f"the image cannot be started: {failure}"
    container.watch(events)
    return None


def _non_compliance(container: Container) -> str | None:
    """Why the endpoint is not compliant; None if it is."""
    if container.running():
        return f"it still ran {TIMEOUT:.0f} s after an unknown test name"
    status = container.exit().status
    return None if status == UNSUPPORTED else f"it answered an unknown test name with exit status {status}"
