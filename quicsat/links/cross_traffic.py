"""Cross traffic: a TCP flow of the host's kernel between the namespaces of a testbed, concurrent with the transfer.

It shares the endpoints' addresses and has its own routes, selected by its port: the endpoints' routes and names
do not change. The simulator reports its goodput.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue

from quicsat.docker.client import Daemon
from quicsat.docker.containers import WEIGHT, Container, ContainerEvent, ContainerSpec, create_container
from quicsat.links.link_containers import event_name, last_words
from quicsat.links.simulator_arguments import CROSS_PORT
from quicsat.model.emulated_link import CrossTraffic
from quicsat.model.errors import HarnessFault
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode

TABLE = CROSS_PORT
"""Routing table of the flow."""
ROUTE = (
    f"ip rule add pref 100 ipproto 6 dport {CROSS_PORT} lookup {TABLE} && "
    f"ip rule add pref 100 ipproto 6 sport {CROSS_PORT} lookup {TABLE} && "
    f'ip route replace default via "$0" dev eth0 onlink table {TABLE} && exec "$@"'
)
"""Shell words that send the packets of the flow, and no others, to the simulator; ``$0`` is its address."""


class CrossFlow:
    """Receiver and sender, created and not yet started."""

    def __init__(self, receiver: Container, sender: Container) -> None:
        self._ends = {"receiver": receiver, "sender": sender}
        self._connected = False

    def listen(self) -> None:
        """Start the receiver."""
        self._ends["receiver"].start()

    def connect(self, events: SimpleQueue[ContainerEvent]) -> None:
        """Start the sender, once packets are carried; it retries until the receiver listens."""
        self._ends["sender"].start()
        self._ends["sender"].watch(events, lines=True)

    def connected(self, event: ContainerEvent) -> bool:
        """Whether the flow has begun."""
        self._connected |= event.container is self._ends["sender"] and event_name(event.line) == "connected"
        return self._connected

    def check(self) -> None:
        """Raise :class:`HarnessFault` (simulator-failed) if the flow has ended."""
        if (fault := self.fault()) is not None:
            raise fault

    def fault(self) -> HarnessFault | None:
        """A fault (simulator-failed) if either end of the flow has ended; None if both run."""
        for name, end in self._ends.items():
            if end.exit().status is not None and not end.running():
                reason = f"the {name} of the cross traffic has ended: {last_words(end)}"
                return HarnessFault(ErrorCode.SIMULATOR_FAILED, reason)
        return None

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
            dropped_capabilities=("ALL",),
            weight=WEIGHT,
        )

    send = (f"--host={addresses[Role.CLIENT][0]}", f"--congestion-control={traffic.congestion_control}")
    with ExitStack() as stack:
        receiver = stack.enter_context(create_container(daemon, spec(Role.CLIENT, "receive")))
        sender = stack.enter_context(create_container(daemon, spec(Role.SERVER, "send", *send)))
        yield CrossFlow(receiver, sender)
