"""Cross traffic: a TCP flow of the host's own kernel between the namespaces of a testbed, beside the transfer.

It shares the endpoints' addresses and has routes of its own, chosen by its port alone: the endpoints' routes and names
are as without it. The simulator tells what became of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue

from interop.errors import HarnessFault
from interop.execution.daemon import WEIGHT, Container, ContainerSpec, Daemon, Event
from interop.links.simulator import CROSS_PORT
from interop.model import CrossTraffic, ErrorCode, Role

TABLE = CROSS_PORT
"""Of the flow's routes."""
ROUTE = (
    f"ip rule add pref 100 ipproto 6 dport {CROSS_PORT} lookup {TABLE} && "
    f"ip rule add pref 100 ipproto 6 sport {CROSS_PORT} lookup {TABLE} && "
    f'ip route replace default via "$0" dev eth0 onlink table {TABLE} && exec "$@"'
)
"""Shell words that send the packets of the flow, and no others, to the simulator; ``$0`` is its address."""


def event_name(line: str | None) -> str:
    """What a program of the simulator's image says has happened; empty if the line does not say such a thing."""
    try:
        return str(json.loads(line or "")["event"])
    except (ValueError, KeyError, TypeError):
        return ""


class CrossFlow:
    """Receiver and sender, created and not yet started."""

    def __init__(self, receiver: Container, sender: Container) -> None:
        self._ends = {"receiver": receiver, "sender": sender}
        self._connected = False

    def listen(self) -> None:
        """Start the receiver."""
        self._ends["receiver"].start()

    def connect(self, events: SimpleQueue[Event]) -> None:
        """Start the sender, once packets are carried; it tries until the receiver listens."""
        self._ends["sender"].start()
        self._ends["sender"].watch(events, lines=True)

    def connected(self, event: Event) -> bool:
        """Whether the flow has begun."""
        self._connected |= event.container is self._ends["sender"] and event_name(event.line) == "connected"
        return self._connected

    def check(self) -> None:
        """Raise :class:`HarnessFault` (simulator-failed) if the flow has ended."""
        if ended := self.ended():
            raise HarnessFault(ErrorCode.SIMULATOR_FAILED, ended)

    def ended(self) -> str:
        """Which end of the flow has ended early, with its last words; empty if both run."""
        for name, end in self._ends.items():
            if end.exit().status is not None and not end.running():
                words = end.output().decode(errors="replace").strip()[-300:]
                return f"the {name} of the cross traffic has ended: {words}"
        return ""

    def stop(self) -> None:
        """End both."""
        for end in self._ends.values():
            end.stop(grace=0)


@contextmanager
def cross_flow(
    daemon: Daemon, image: str, name: str, networks: Mapping[Role, str], addresses: Mapping[Role, tuple[str, str]],
    traffic: CrossTraffic,
) -> Iterator[CrossFlow]:  # fmt: skip
    """The flow of one run: ``networks`` are modes of containers, ``addresses`` those of an endpoint and its gateway."""

    def spec(role: Role, *words: str) -> ContainerSpec:
        return ContainerSpec(
            name=f"{name}-{words[0]}",
            image=image,
            command=("sh", "-c", ROUTE, addresses[role][1], "tcp-stream", *words, f"--port={CROSS_PORT}"),
            network=networks[role],
            capabilities=("NET_ADMIN",),
            without=("ALL",),
            weight=WEIGHT,
        )

    send = (f"--host={addresses[Role.CLIENT][0]}", f"--congestion-control={traffic.congestion_control}")
    with ExitStack() as stack:
        receiver = stack.enter_context(daemon.container(spec(Role.CLIENT, "receive")))
        sender = stack.enter_context(daemon.container(spec(Role.SERVER, "send", *send)))
        yield CrossFlow(receiver, sender)
