"""Conditions of the endpoints: what they announce in the handshake, and how they send."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from interop.model.implementation import CongestionControl, CpuCost, Implementation
from interop.model.results import ResultSet, RunResult
from interop.model.units import KIB, byte_size
from interop.report.table import Column, Table, Unit
from interop.statistics.facts import fact_of
from interop.statistics.samples import GOODPUT, find, value_of
from scripts.paper.failures import named
from scripts.paper.goodput import STREAM_GOODPUT, of_case
from scripts.paper.lines import rendered
from scripts.paper.theory import INITIAL_BYTES, payload_of
from scripts.paper.words import counted

UNLIMITED = 2**50
"""Bytes from which on a limit is none."""
WINDOWS = ("initial_max_data", "initial_max_stream_data_bidi_local")
FULL, RAISED = 0.85, 1.1
"""Shares of a window in flight from which on flow control may be the limit, and above which it was raised."""
YES_NO = {True: "yes", False: "no", None: "unknown"}


OWN_PROGRAMS = ("quic-go", "picoquic", "tquic", "ngtcp2", "neqo", "nginx", "haproxy")
"""Implementations whose own client and server, or server, we use; for the others we wrote both around their library."""


SETTINGS = {
    "quiche": "receive windows of 16 MiB for a stream and 24 MiB for the connection",
    "quinn": "receive window of 16 MiB for a stream, send window of 32 MiB",
    "s2n-quic": "receive windows and send buffer of 16 MiB",
    "msquic": "receive windows of 16 MiB for a stream and 32 MiB for the connection",
    "go-x-net": "receive and send buffers of 16 MiB, UDP socket buffers of 4 MiB",
    "kwik": "receive buffers of 32 MiB",
    "lsquic": "receive windows of 32 MiB",
    "nginx": "`http3_stream_buffer_size` of 16 MiB",
    "haproxy": "congestion window of up to 16 MiB, 1,024 send buffers, idle timeout of 60 s",
}
"""What our programs and files of settings change that can limit a transfer, by implementation."""


def programs(results: ResultSet) -> Table:
    """Where each implementation comes from, and who wrote its client and server."""
    columns = (
        Column("implementation"), Column("version"), Column("source"), Column("client and server"),
        Column("CPU cost"), Column("changes"), Column("settings"),
    )  # fmt: skip
    names = dict.fromkeys((*results.manifest.servers, *results.manifest.clients))
    measured = {each.name for each in results.manifest.implementations if has_measured_cost(each)}
    images = {name: image for name in names if (image := results.manifest.images.get(name)) is not None}
    rows = tuple(
        (
            name,
            version_in_words(image.version),
            image.provenance.source,
            "its own" if name in OWN_PROGRAMS else "ours",
            "measured" if name in measured else "default",
            image.provenance.changes,
            SETTINGS.get(name, ""),
        )
        for name, image in images.items()
    )
    notes = (
        (
            "*Ours* marks programs that we wrote around the library for these measurements; these programs set the "
            "library's options. *CPU cost* is the time that a system call takes in virtual time: either measured for "
            "this implementation, or the default."
        ),
        (
            "*Settings* lists the options we set that can limit a transfer. The implementations' defaults are meant "
            "for shorter round-trip times: with its defaults, for example, nginx keeps at most 64 KiB of a stream in "
            "flight."
        ),
        "For lsquic, we use the copy bundled with Bun. We do not know the version of this copy.",
    )
    return Table("programs", "Programs", columns, rows, notes)


def has_measured_cost(implementation: Implementation) -> bool:
    """Whether its system calls take a time in virtual time that was measured for it."""
    return implementation.cpu_cost != CpuCost()


def version_in_words(version: str) -> str:
    """``bun-1.4.5`` is the version of the program that the library comes with."""
    return version.replace("bun-", "in Bun ")


def conditions(results: ResultSet) -> Iterator[str]:
    """Two tables, and what they do not show."""
    case = find(results, "sat")
    if case is None:
        return
    runs = of_case(results, case)
    versions, protocols = (sorted({str(each) for run in runs if (each := fact_of(run, name))}) for name in COMMON)
    if versions and protocols:
        yield f"All runs used {' or '.join(versions)} with the application protocol {' or '.join(protocols)}."
        yield ""
    yield from rendered(programs(results))
    yield from rendered(of_servers(results, runs))
    yield (
        "The numbers are medians over the clients in `sat`. *First round trip* is how much of the response the server "
        "sent in the first round trip. It is a lower bound on the initial window, because other packets can take up "
        "part of this window. *Longest burst* is the largest number of packets that the server sent back to back. "
        "*HyStart* shows whether the server uses HyStart to leave slow start before the first loss, according to its "
        "source code or documentation; BBR leaves slow start when the bandwidth no longer grows. *First to last byte* "
        "is the goodput measured from the first to the last byte of the file, divided by the goodput as defined above. "
        "It is above 1 if the server sends 1-RTT packets some time before the first byte."
    )
    yield ""
    if "picoquic" in results.manifest.servers:
        yield (
            "picoquic's BBR (`bbr.c`) starts with a window that is proportional to the round-trip time (15,360 B per "
            "100 ms, up to 610 ms). It uses HyStart if the round-trip time is above 250 ms."
        )
        yield ""
    yield from rendered(of_clients(results, runs))
    yield (
        "The windows are the initial ones, for the connection and for the stream that carries the file; a client can "
        "raise them during the transfer. *Packets returned* is the number of packets (mostly acknowledgements) that "
        "the client sends per 100 packets it receives, as a range over all servers in `sat`. The server can also "
        "influence this number, with the ACK Frequency extension. The other columns show transport parameters, or "
        "their defaults in RFC 9000."
    )
    yield ""
    yield from _grown(runs)


COMMON = ("version", "alpn")


def of_servers(results: ResultSet, runs: Sequence[RunResult]) -> Table:
    """How servers send over ``sat``: medians over the clients."""
    known = {each.name: each.congestion_control for each in results.manifest.implementations}
    columns = (
        Column("server"), Column("HyStart"), Column("first round trip [KiB]", Unit.COUNT),
        Column("UDP payload per packet [B]", Unit.COUNT), Column("longest burst [packets]", Unit.COUNT),
        Column("maximum in flight [KiB]", Unit.COUNT), Column("first to last byte"),
    )  # fmt: skip
    rows = []
    for name in results.manifest.servers:
        mine, control = [run for run in runs if run.server == name], known.get(name)
        payload = payload_of(mine)
        rows.append(
            (
                name,
                hystart_in_words(control),
                _median(mine, "initial_window", KIB),
                None if payload is None else round(payload),
                _median(mine, "longest_burst"),
                _median(mine, "in_flight_max", KIB),
                "" if (factor := factor_of_stream_goodput(mine)) is None else f"{factor:.2f}",
            )
        )
    return Table("server-conditions", "How servers send", columns, tuple(rows))


def hystart_in_words(control: CongestionControl | None) -> str:
    """``yes``, ``no`` or ``unknown``; ``BBR`` if the server uses it without HyStart."""
    if control is not None and not control.hystart and "bbr" in (control.default or "").lower():
        return "BBR"
    return YES_NO[control.hystart if control is not None else None]


def factor_of_stream_goodput(runs: Sequence[RunResult]) -> float | None:
    """How many times as high goodput is without the packets around the file (median); None if it is not known."""
    found = [
        stream / goodput
        for run in runs
        if (stream := value_of(run, STREAM_GOODPUT)) and (goodput := value_of(run, GOODPUT))
    ]
    return statistics.median(found) if found else None


def of_clients(results: ResultSet, runs: Sequence[RunResult]) -> Table:
    """What clients announce, and how often they acknowledge."""
    columns = (
        Column("client"), Column("connection window"), Column("stream window"), Column("largest UDP payload [B]"),
        Column("max ACK delay [ms]"), Column("packets returned per 100"),
    )  # fmt: skip
    rows = []
    for name in results.manifest.clients:
        mine = [run for run in runs if run.client == name]
        returned = [value for run in mine if (value := value_of(run, "return_packets")) is not None]
        rows.append(
            (
                name,
                _announced(mine, "initial_max_data", in_bytes=True),
                _announced(mine, "initial_max_stream_data_bidi_local", in_bytes=True),
                _announced(mine, "max_udp_payload_size"),
                _announced(mine, "max_ack_delay"),
                f"{100 * min(returned):.0f} to {100 * max(returned):.0f}" if returned else "",
            )
        )
    return Table("client-conditions", "What clients announce", columns, tuple(rows))


def _announced(runs: Sequence[RunResult], name: str, *, in_bytes: bool = False) -> str:
    found = sorted({value for run in runs if isinstance(value := fact_of(run, f"client.{name}"), int)})
    return " or ".join(
        ("no limit" if value >= UNLIMITED else byte_size(value)) if in_bytes else str(value) for value in found
    )


def servers_with_larger_starts(results: ResultSet) -> list[str]:
    """Servers that send more than ``INITIAL_BYTES`` in the first round trip over ``sat``, at the median."""
    case = find(results, "sat")
    runs = of_case(results, case) if case else []
    starts = {
        name: _median([run for run in runs if run.server == name], "initial_window")
        for name in results.manifest.servers
    }
    return [name for name, start in starts.items() if start and start > INITIAL_BYTES]


def _median(runs: Sequence[RunResult], metric: str, unit: float = 1.0) -> int | None:
    found = [value for run in runs if (value := value_of(run, metric)) is not None]
    return round(statistics.median(found) / unit) if found else None


def _grown(runs: Sequence[RunResult]) -> Iterator[str]:
    """In how many runs the server had more in flight than the smaller window that the client allowed at first."""
    shares = [share for run in runs if (share := share_of_window(run)) is not None]
    if not shares:
        return
    above = sum(share > RAISED for share in shares)
    full = [run for run in runs if _window_was_full(run)]
    yield (
        f"In {above} of {len(shares)} successful runs over `sat`, the server had more than {100 * RAISED:.0f} % of the "
        "client's smaller initial window in flight at some time, so the client must have raised this window. The "
        "handshake does not show how far clients raise their windows, and we recorded no qlogs of these runs. The data "
        "set therefore does not show for how long congestion control or flow control limited a server."
    )
    if full:
        yield ""
        yield (
            f"In {counted(len(full), 'run')}, the maximum in flight was {100 * FULL:.0f} to {100 * RAISED:.0f} % of "
            "the smaller initial window, so flow control may have limited the server: "
            f"{named([(run.server, run.client) for run in full], ())}. We use this range because the two numbers count "
            "different bytes: bytes in flight include all headers and retransmitted data, whereas windows limit stream "
            "bytes. Data that a client has received behind a gap also counts against its window, but is no longer in "
            "flight. Flow control may therefore have limited more runs than these."
        )


def _window_was_full(run: RunResult) -> bool:
    """Whether about as much was in flight at some time as the client's smaller window, and never more."""
    share = share_of_window(run)
    return share is not None and FULL <= share <= RAISED


def share_of_window(run: RunResult) -> float | None:
    """The most in flight over the client's smaller initial window; None if one of both is not known."""
    flying = value_of(run, "in_flight_max")
    limits = [fact_of(run, f"client.{name}") for name in WINDOWS]
    known = [limit for limit in limits if isinstance(limit, int)]
    return flying / min(known) if flying is not None and known else None
