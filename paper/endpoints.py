"""Conditions: links, programs, what clients announce, and how servers send."""

from typing import Any

from paper.data_set import DataSet, Frame
from paper.numbers import Numbers, Unit
from paper.theory import INITIAL_WINDOW, IP_AND_UDP, MTU
from quicsat.model.emulated_link import loss_share
from quicsat.model.units import KIB
from quicsat.statistics.overview import family

OWN_PROGRAMS = ("quic-go", "picoquic", "tquic", "ngtcp2", "neqo", "nginx", "haproxy")
"""Implementations whose own client and server we use; for the others we wrote both around their library."""
SETTINGS = {
    "quiche": "receive windows of 16 MiB for a stream and 24 MiB for the connection",
    "quinn": "receive window of 16 MiB for a stream, send window of 32 MiB",
    "s2n-quic": "receive windows and send buffer of 16 MiB",
    "msquic": "receive windows of 16 MiB for a stream and 32 MiB for the connection",
    "go-x-net": "receive and send buffers of 16 MiB, UDP socket buffers of 4 MiB",
    "kwik": "receive buffers of 32 MiB",
    "lsquic": "receive windows of 32 MiB",
    "nginx": "http3_stream_buffer_size of 16 MiB",
    "haproxy": "congestion window of up to 16 MiB, 1,024 send buffers, idle timeout of 60 s",
}
"""What our programs and files of settings change that can limit a transfer."""
FULL, RAISED = 0.85, 1.1
"""Shares of a window in flight from which on flow control may be the limit, and above which it was raised."""
UNLIMITED = 2**50
"""Bytes from which on a limit is none."""


def controls(data: DataSet) -> dict[str, str]:
    """The default congestion control of each implementation: Reno, CUBIC or BBR; NewReno is Reno."""
    return {each.name: family(each).replace("NewReno", "Reno") for each in data.manifest().implementations}


def smaller_window(runs: Frame) -> Frame:
    """The smaller of the two windows that the client announces, bytes."""
    return runs[["initial_max_data", "initial_max_stream_data_bidi_local"]].min(axis=1)


def payload(runs: Frame) -> Frame:
    """Bytes of UDP payload per packet of the server."""
    return runs.sent_per_useful_byte * runs.file_size / runs.forward_packets


def conditions(data: DataSet, numbers: Numbers) -> None:
    """Tables of links, campaigns, programs, clients and servers."""
    matrix = data.part("matrix")
    sat = matrix[(matrix.link == "sat") & matrix.succeeded]
    numbers.table("links", _links(data))
    numbers.table("campaigns", _campaigns(data))
    programs = _programs(data)
    numbers.table("programs", programs)
    numbers.add("programs.ours", sum(row["client and server"] == "ours" for row in programs
                                     if row["implementation"] in data.manifest().servers))  # fmt: skip
    numbers.names("cost.measured", (row["implementation"] for row in programs if row["CPU cost"] == "measured"))
    numbers.table("clients-announce", _clients(data, sat))
    servers = _servers(data, sat)
    numbers.table("servers-send", servers)
    first = INITIAL_WINDOW * (MTU - IP_AND_UDP) / KIB
    numbers.add("servers.larger_start", sum(row["first round trip [KiB]"] > first for row in servers))
    fill = sat.in_flight_max / smaller_window(sat)
    numbers.add("windows.raised", int((fill > RAISED).sum()))
    numbers.add("windows.known", int(fill.notna().sum()))
    full = sat[(fill >= FULL) & (fill <= RAISED)]
    numbers.names("windows.full", (f"{run.server} with {run.client}" for run in full.itertuples()))
    _campaign(data, numbers)


def _links(data: DataSet) -> list[dict[str, Any]]:
    found = []
    for case in data.manifest().test_cases:
        link = case.emulated
        found.append({
            "link": case.name, "round-trip time [s]": link.round_trip_delay, "forward rate [bit/s]": link.forward.rate,
            "return rate [bit/s]": link.back.rate, "forward queue [packets]": link.forward.queue,
            "return queue [packets]": link.back.queue, "loss, each way": loss_share(link.forward.loss),
            "time limit [s]": case.timeout, "file [B]": sum(case.file_sizes),
        })  # fmt: skip
    return found


def _campaigns(data: DataSet) -> list[dict[str, Any]]:
    found = []
    for part, runs in data.runs.groupby("part", sort=False):
        many = data.of_part(part)
        again = sum(len(each.earlier) for each in many)
        found.append({
            "part": part, "pairs": len(runs[["server", "client"]].drop_duplicates()),
            "seeds": " ".join(map(str, sorted(set(runs.seed)))), "clock": many[0].manifest.clock.value,
            "planned": sum(each.manifest.planned_runs for each in many), "attempts": len(runs) + again,
            "repeated attempts": again, "runs": len(runs), "succeeded": int(runs.succeeded.sum()),
            "timed out": int(runs.timed_out.sum()), "failed": int((runs.outcome == "failed").sum()),
            "processors": "; ".join(sorted(set(runs.processor))),
            "image of the virtual machine": "; ".join(sorted({
                image.reference for each in many if (image := each.manifest.images.get("virtual-time"))})),
            "quicsat": "; ".join(sorted({
                each.manifest.versions.quicsat if each.manifest.versions else "not stored" for each in many})),
        })  # fmt: skip
    return found


def _programs(data: DataSet) -> list[dict[str, Any]]:
    manifest = data.manifest()
    measured = {each.name for each in manifest.implementations if each.cpu_cost.is_own}
    found = []
    for name in dict.fromkeys((*manifest.servers, *manifest.clients)):
        image = manifest.images[name]
        found.append({
            "implementation": name, "version": image.version, "source": image.provenance.source,
            "client and server": "its own" if name in OWN_PROGRAMS else "ours",
            "CPU cost": "measured" if name in measured else "default",
            "changes": image.provenance.changes, "settings": SETTINGS.get(name, ""),
        })  # fmt: skip
    return found


def _clients(data: DataSet, sat: Frame) -> list[dict[str, Any]]:
    found = []
    for name in data.manifest().clients:
        runs = sat[sat.client == name]
        windows = [runs[key].max() for key in ("initial_max_data", "initial_max_stream_data_bidi_local")]
        connection, stream = ("no limit" if value >= UNLIMITED else int(value) for value in windows)
        found.append({
            "client": name, "connection window [B]": connection, "stream window [B]": stream,
            "largest UDP payload [B]": int(runs.max_udp_payload_size.max()),
            "max ACK delay [ms]": " or ".join(str(int(value)) for value in sorted(set(runs.max_ack_delay.dropna()))),
            "packets returned per packet, least": runs.return_packets.min(),
            "packets returned per packet, most": runs.return_packets.max(),
        })  # fmt: skip
    return found


def _servers(data: DataSet, sat: Frame) -> list[dict[str, Any]]:
    known = {each.name: each.congestion_control for each in data.manifest().implementations}
    found = []
    for name in data.manifest().servers:
        runs, control = sat[sat.server == name], known[name]
        start = {True: "HyStart", False: "no", None: "not known"}[control.hystart if control else None]
        bbr = control is not None and not control.hystart and "bbr" in (control.default or "").lower()
        found.append({
            "server": name, "end of slow start before loss": "BBR" if bbr else start,
            "first round trip [KiB]": round(runs.initial_window.median() / KIB),
            "UDP payload per packet [B]": round(payload(runs).median()),
            "longest burst [packets]": round(runs.longest_burst.median()),
            "maximum in flight [KiB]": round(runs.in_flight_max.median() / KIB),
            "first to last byte": (runs.stream_goodput / runs.goodput).median(),
        })  # fmt: skip
    return found


def _campaign(data: DataSet, numbers: Numbers) -> None:
    """What measuring took."""
    matrix = data.part("matrix")
    numbers.add("runs", len(data.runs))
    numbers.add("matrix.runs", len(matrix))
    numbers.add("matrix.succeeded", int(matrix.succeeded.sum()))
    numbers.add("matrix.succeeded.share", matrix.succeeded.mean(), Unit.SHARE)
    numbers.add("servers.count", len(data.manifest().servers))
    numbers.add("clients.count", len(data.manifest().clients))
    numbers.add("matrix.wall.median", matrix.wall.median(), Unit.SECONDS)
    numbers.add("matrix.wall.hours", matrix.wall.sum() / 3600, Unit.RATIO)
    numbers.add("matrix.first", f"{matrix.started.min():%Y-%m-%d %H:%M} UTC", Unit.TEXT)
    numbers.add("matrix.last", f"{matrix.started.max():%Y-%m-%d %H:%M} UTC", Unit.TEXT)
    usual = set(matrix.processor)
    moved = data.runs[~data.runs.processor.isin(usual)]
    for part, runs in moved.groupby("part"):
        numbers.add(f"elsewhere.{part}", len(runs))
