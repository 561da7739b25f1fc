"""Reads what a run left, both traces with their key logs, and follows each packet from one end to the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from quicsat.model.bounds import LEAST_PACKETS
from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.errors import HarnessFault
from quicsat.model.flow import flow_directory
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import ErrorCode
from quicsat.model.test_case import Link
from quicsat.traces.columns import Form, Trace
from quicsat.traces.congestion import recovery
from quicsat.traces.key_log import key_lines, secrets, upstream_lines
from quicsat.traces.network import TCP, UDP
from quicsat.traces.packet_matching import PacketMatches, match_packets
from quicsat.traces.packets import Dissector
from quicsat.traces.pcap import TraceState, check
from quicsat.traces.qlog_packets import QlogPackets
from quicsat.traces.quic_series import QuicTracePair, series
from quicsat.traces.records import CLIENT_TRACE as CLIENT_TRACE
from quicsat.traces.records import SERVER_TRACE as SERVER_TRACE
from quicsat.traces.records import Condition
from quicsat.traces.series import Samples, Series
from quicsat.traces.tcp import TcpReader, TcpTrace
from quicsat.traces.tcp_events import TcpTracePair, tcp_series
from quicsat.traces.tcp_info import kernel_window
from quicsat.traces.tunnel import tunnel_overhead

EMBEDDED_KEYS = Path("sim", "keys.log")
"""Keys that captures of other runners hold themselves."""
KEY_LOGS = (Path("client", "keys.log"), Path("server", "keys.log"), EMBEDDED_KEYS)
QLOGS = Path("server", "qlog")
CLIENT_TUNNEL = Path("sim", "tunnel_left.pcap")
BEFORE_TUNNEL = Path("sim", "link_left.pcap")
"""The packets between the tunnel and the link at the client's side, if there is one; else ``CLIENT_TRACE`` has them."""
BEHIND_PROXY = Path("sim", "trace_client.pcap")
"""The packets of the clients, if proxies split a connection of one and packets can be lost behind them; then
``CLIENT_TRACE`` has those of the proxy."""
TCP_INFO = Path("sim", "tcp_info.csv")
T = TypeVar("T")


@dataclass(frozen=True)
class TraceStates:
    """The structure of both trace files."""

    client: TraceState
    server: TraceState
    keys: tuple[str, ...]
    """Lines of the key logs."""
    readers: Sequence[Dissector | TcpReader | QlogPackets]
    """They hold the packets of client and server."""
    most: int = LEAST_PACKETS
    """Packets of a trace that are read."""
    matches: tuple[PacketMatches, PacketMatches] | None = None
    """What became of the packets forward and in return; None if their fingerprints tell."""

    @property
    def cut(self) -> int:
        """Records whose end is missing because of the snap length."""
        return self.client.cut + self.server.cut

    @property
    def incomplete(self) -> bool:
        """Whether a damaged file is no reason to read nothing: both have packets."""
        damaged = {self.client.condition, self.server.condition} & {Condition.TRUNCATED, Condition.CORRUPT}
        return bool(damaged) and min(len(self.client.datagrams), len(self.server.datagrams)) > 0


@dataclass(frozen=True, eq=False)
class RunTraces:
    """Both traces of a run, each read once."""

    protocol: Protocol
    trace_pair: QuicTracePair | TcpTracePair
    keys: int
    """Lines of the key logs."""
    cut: int
    qlogs: Path
    """The server's folder of qlogs, which may not be there."""
    tcp_info: Path
    """The kernel's samples of TCP connections, which may not be there."""
    tunnel_overhead: float | None = None
    """Mean bytes that a VPN adds per packet of the server; None without a VPN."""
    read_qlogs: bool = False
    """The packets of the server come from its qlogs, so what cannot be read of them is known."""
    unread: list[str] = field(default_factory=list)
    """A sentence for each kind of optional evidence at which reading failed; see :meth:`optional`."""

    @property
    def payload(self) -> int:
        """Bytes that came from the server to the client: UDP payload, or of TCP segments."""
        arrived = self.trace_pair.at_client
        return int(arrived.size[arrived.from_server].sum())

    @property
    def start(self) -> float:
        """When the client sent its first packet, seconds since 1970 by the client's clock."""
        pair = self.trace_pair
        return pair.at_client.epoch + pair.zeros[0]

    @property
    def readable(self) -> bool:
        """Whether something of the response over QUIC could be decrypted."""
        if isinstance(self.trace_pair, TcpTracePair):
            return False
        client = self.trace_pair.client
        answers = client.from_server & (client.form == Form.ONE_RTT)
        return bool((answers & client.decrypted).any())

    def series(self) -> Series:
        """All events of the run."""
        return self._series[0]

    @property
    def qlog_notes(self) -> tuple[str, ...]:
        """A sentence for each of the server's qlogs that could not be read completely."""
        return self._series[1]

    @cached_property
    def _series(self) -> tuple[Series, tuple[str, ...]]:
        if isinstance(self.trace_pair, TcpTracePair):
            pair = self.trace_pair
            (_, start), epoch = pair.zeros, pair.at_server.epoch
            window = self.optional(
                "samples of TCP", lambda: kernel_window(self.tcp_info, epoch, start, pair.ports()), Samples.of()
            )
            return replace(tcp_series(pair), cwnd=window), ()
        found = series(self.trace_pair, self.protocol)
        came = found.back.arrived[np.isfinite(found.back.arrived)]
        begin = float(came.min()) if len(came) else 0.0
        told = self.optional(
            "qlogs of the server", lambda: recovery(self.qlogs, begin, read_before=self.read_qlogs), None
        )
        return (found, ()) if told is None else (replace(found, cwnd=told.window), told.notes)

    def optional(self, name: str, read: Callable[[], T], otherwise: T) -> T:
        """What ``read`` finds in evidence that a run can do without, or ``otherwise`` if it fails in any way.

        An endpoint wrote what it reads. ``unread`` then names it.
        """
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not decide on the run
            self.unread.append(f"The {name} could not be read ({type(error).__name__}).")
            return otherwise


def check_traces(
    directory: Path, protocol: Protocol, flow: int = 1, most: int = LEAST_PACKETS, *, upstream: bool = False
) -> TraceStates:
    """Walk both trace files of a run, for the packets of a flow; of damaged ones, those before the fault.

    With ``upstream``, decrypted with the one key log that the QUIC Interop Runner takes, the client's if it can.
    Raises HarnessFault (trace-limit) if packets, connections or frames are too many.
    """
    own, paths, tcp = flow_directory(directory, flow), _ends(directory, protocol), protocol is Protocol.TCP
    keys = (upstream_lines if upstream else key_lines)(*(own / key_log for key_log in KEY_LOGS))
    readers = [TcpReader(path.name, keys, most) if tcp else Dissector(secrets(keys), path.name, most) for path in paths]
    client, server = (
        check(path, TCP if tcp else UDP, flow, most, reader.add) for path, reader in zip(paths, readers, strict=True)
    )
    return TraceStates(client, server, keys, readers, most)


def _ends(directory: Path, protocol: Protocol) -> tuple[Path, Path]:
    """The traces with the packets of client and server; beside a flow that proxies split, those of QUIC pass them."""
    behind = directory / BEHIND_PROXY
    passes = protocol is not Protocol.TCP and behind.exists()
    return behind if passes else directory / CLIENT_TRACE, directory / SERVER_TRACE


def _behind_proxy(path: Path, flow: int, most: int, keys: Sequence[str]) -> TcpTrace | None:
    """The client's connection with its proxy; None if the traces of the link have what the client saw.

    Raises HarnessFault: TRACE_CORRUPT if the trace is damaged, TRACE_LIMIT if it has more than ``most`` packets.
    """
    if not path.exists():
        return None
    reader = TcpReader(path.name, keys, most)
    if (state := check(path, TCP, flow, most, reader.add)).condition in (Condition.TRUNCATED, Condition.CORRUPT):
        raise HarnessFault(ErrorCode.TRACE_CORRUPT, f"The trace behind the proxy cannot be used: {state.reason}")
    return reader.trace()


def read_run(directory: Path, protocol: Protocol, link: Link, found: TraceStates, flow: int = 1) -> RunTraces:
    """What both traces of a run have of a flow, which is that of ``found`` and counted from 1.

    Raises HarnessFault(TRACE_CORRUPT) if one counts from the start of a simulation and the other from 1970, although
    one simulator wrote both; and HarnessFault(TRACE_LIMIT) if packets, connections or frames are too many.
    """
    if isinstance(link, EmulatedLink) and found.client.simulated is not found.server.simulated:
        side = "client" if found.client.simulated else "server"
        reason = f"The {side}'s trace counts from the start of a simulation, the other one from 1970."
        raise HarnessFault(ErrorCode.TRACE_CORRUPT, reason)
    at_client, at_server = found.client.datagrams, found.server.datagrams
    matches = found.matches or (
        match_packets(at_server, at_client, forward=True), match_packets(at_client, at_server, forward=False)
    )  # fmt: skip
    one_clock = isinstance(link, EmulatedLink)  # the simulator writes both traces
    datagrams = at_client, at_server, *matches, one_clock
    trace_pair: QuicTracePair | TcpTracePair
    client, server = (reader.trace() for reader in found.readers)
    if isinstance(client, TcpTrace) and isinstance(server, TcpTrace):
        behind = _behind_proxy(directory / BEHIND_PROXY, flow, found.most, found.keys)
        trace_pair = TcpTracePair(client, server, *datagrams, behind)
    else:
        assert isinstance(client, Trace)
        assert isinstance(server, Trace)
        trace_pair = QuicTracePair(client, server, *datagrams)
    overhead = None
    if isinstance(link, EmulatedLink) and link.vpn:
        inside = directory / (BEFORE_TUNNEL if link.client_side else CLIENT_TRACE)
        overhead = tunnel_overhead(inside, directory / CLIENT_TUNNEL, found.most)
    qlogs = flow_directory(directory, flow) / QLOGS
    return RunTraces(protocol, trace_pair, len(found.keys), found.cut, qlogs, directory / TCP_INFO, overhead)
