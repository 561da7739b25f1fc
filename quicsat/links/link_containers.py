"""Containers that carry packets of links: their names, events, start and output."""

import itertools
import json
import time
from queue import Empty, SimpleQueue

from quicsat.docker.client import Daemon
from quicsat.docker.containers import Container, ContainerEvent
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode

_numbers = itertools.count(1)


def event_name(line: str | None) -> str:
    """The event that a line of a program in the simulator's image reports; empty if it reports none."""
    try:
        return str(json.loads(line or "")["event"])
    except (ValueError, KeyError, TypeError):
        return ""


def container_name(daemon: Daemon, what: str) -> str:
    """A container name that no other campaign uses."""
    return f"quicsat-{daemon.campaign}-{next(_numbers)}-{what}"


def start_until(container: Container, event: str, patience: float) -> None:
    """Start a container and wait until it reports that it is ready; raises :class:`HarnessFault` if it never does."""
    events: SimpleQueue[ContainerEvent] = SimpleQueue()
    container.start()
    container.watch(events, lines=True)
    deadline = time.monotonic() + patience
    while True:
        try:
            seen = events.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            seen = None
        if seen is not None and event_name(seen.line) == event:
            return
        if seen is None or (seen.line is None and not container.running()):
            raise HarnessFault(ErrorCode.DAEMON_FAULT, f"{container.spec.name} is not {event}: {last_words(container)}")


def last_words(container: Container) -> str:
    """The end of what a container printed."""
    return container.output().decode(errors="replace").strip()[-300:] or "without a word"
