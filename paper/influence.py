"""How much of the spread of goodput is the server's, the client's, and of both together."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from paper.data_set import DataSet, Frame
from paper.endpoints import controls, smaller_window
from paper.goodput import always
from paper.numbers import Numbers, Unit
from paper.samples import correlation, geometric, resampled, shares

FAR = 3
"""A client is far below the median of a server's clients if it has less than this part of it."""
SLOWEST = 5
FEWEST = 4
"""Clients that a correlation takes."""
FIXED = "msquic-counter"
"""Runs of msquic whose counter of acknowledged bytes does not underflow."""


def by_speed(runs: Frame) -> list[str]:
    """Servers with a success, the slowest first, by the mean of their successful runs."""
    return list(runs.groupby("server").goodput.mean().dropna().sort_values().index)


def selections(data: DataSet, link: str, queue: str) -> Iterator[tuple[str, Frame, str]]:
    """Name, runs and metric of each choice of runs over a link with a queue (``25`` or ``paper``)."""
    part = data.part("matrix" if queue == "25" else "queues")
    runs, own = part[part.link == link], controls(data)
    slow = by_speed(runs)
    with_bbr = runs.server.map(own) == "BBR"
    yield "all", runs, "goodput"
    yield f"without {slow[0]} (slowest)", runs[runs.server != slow[0]], "goodput"
    yield f"without the {SLOWEST} slowest", runs[~runs.server.isin(slow[:SLOWEST])], "goodput"
    if queue == "25":
        yield "with runs that timed out", runs[runs.succeeded | runs.timed_out], "goodput_so_far"
        yield "first to last byte", runs, "stream_goodput"
        if link == "satloss":
            yield "servers with BBR", runs[with_bbr], "goodput"
            yield "other servers", runs[~with_bbr], "goodput"
        if link == "sat":
            large, small = clients_by_window(data)
            yield "clients with large windows", runs[runs.client.isin(large)], "goodput"
            yield "clients with small windows", runs[runs.client.isin(small)], "goodput"


def clients_by_window(data: DataSet) -> tuple[list[str], list[str]]:
    """Clients whose smaller window is at least the bandwidth-delay product of sat, and the others."""
    matrix = data.part("matrix")
    sat = matrix[matrix.link == "sat"]
    window = smaller_window(sat).groupby(sat.client).min()
    enough = window >= sat.rate.iloc[0] * sat.round_trip.iloc[0] / 8
    return [name for name in data.manifest().clients if enough[name]], [
        name for name in data.manifest().clients if not enough[name]
    ]


def influence(data: DataSet, numbers: Numbers) -> None:
    """Shares of the variance of the logarithm of goodput."""
    rows = []
    for queue, links in (("25", ("terrestrial", "sat", "satloss")), ("paper", ("sat", "satloss"))):
        for link in links:
            for name, runs, metric in selections(data, link, queue):
                low, high = resampled(runs, metric) if name == "all" else (None, None)
                for source, share in shares(runs, metric).items():
                    ends = {"bootstrap low": low, "bootstrap high": high} if source == "server" else {}
                    rows.append({"link": link, "queue": queue, "runs": name, "source": source, "share": share.share,
                                 "low": share.low, "high": share.high, **ends})  # fmt: skip
    table = pd.DataFrame(rows)
    numbers.table("shares", table)
    for row in table[table["runs"].isin(["all", f"without the {SLOWEST} slowest", "servers with BBR"])].itertuples():
        if row.source not in ("server", "client", "interaction"):
            continue
        key = {"all": "", "servers with BBR": ".bbr"}.get(row.runs, ".without_slowest")
        name = f"share.{row.source}.{row.link}{'' if row.queue == '25' else '.paper_queue'}{key}"
        numbers.add(name, row.share, Unit.SHARE)
        numbers.ends(name, row.low, row.high, Unit.SHARE)
    for row in table[(table["runs"] == "all") & (table.source == "server")].itertuples(index=False):
        name = f"share.server.{row.link}{'' if row.queue == '25' else '.paper_queue'}.bootstrap"
        numbers.ends(name, row[7], row[8], Unit.SHARE)
    numbers.names("clients.large_windows", clients_by_window(data)[0])
    matrix = data.part("matrix")
    for link, runs in matrix.groupby("link"):
        numbers.names(f"slowest.{link}", by_speed(runs)[:SLOWEST])
    _effects(data, numbers)
    _slowest_clients(data, numbers)


def _effects(data: DataSet, numbers: Numbers) -> None:
    """How far means of servers and of clients differ."""
    matrix = data.part("matrix")
    rows = []
    for case in data.manifest().test_cases:
        runs = always(matrix[matrix.link == case.name])
        for role in ("server", "client"):
            means = runs.groupby(role).goodput.mean()
            ratio = means.quantile(0.9) / means.quantile(0.1)
            rows.append({"link": case.name, "role": role, "implementations": len(means), "90th / 10th": ratio})
            numbers.add(f"effect.{role}.{case.name}", ratio, Unit.RATIO)
    numbers.table("effects", rows)


def _slowest_clients(data: DataSet, numbers: Numbers) -> None:
    """The slowest and the fastest client of each server over sat."""
    matrix = data.part("matrix")
    rows, far = [], []
    for server, runs in matrix[matrix.link == "sat"].groupby("server", sort=False):
        means = runs.groupby("client").goodput_so_far.mean()
        least, most = means.idxmin(), means.idxmax()
        rows.append({"server": server, "slowest client": least, "goodput, slowest [bit/s]": means[least],
                     "fastest client": most, "goodput, fastest [bit/s]": means[most],
                     "fastest / slowest": means[most] / means[least]})  # fmt: skip
        far += [f"{server} with {client}" for client in means[means < means.median() / FAR].index]
    numbers.table("slowest-clients", rows)
    numbers.names("far_below.sat", far)


def acknowledgements(data: DataSet, numbers: Numbers) -> None:
    """Whether servers are faster over satloss with clients that acknowledge more often; the underflow of msquic."""
    matrix = data.part("matrix")
    sat, lossy = (matrix[matrix.link == link] for link in ("sat", "satloss"))
    usual = sat.groupby("client").return_packets.median()
    servers = {server: by_client(runs) for server, runs in lossy.groupby("server", sort=False)}
    servers = {server: means for server, means in servers.items() if len(means) >= FEWEST}
    rows, faster, slower = list[dict[str, Any]](), list[str](), list[str]()
    for server, means in servers.items():
        both = correlation(means.returned, means.goodput)
        corrected = correlation(means.returned, means.goodput, len(servers))
        reference = correlation(list(usual[means.index]), means.goodput)
        (faster if corrected.low > 0 else slower if corrected.high < 0 else []).append(server)
        rows.append({
            "server": server, "clients": len(means), "correlation": both.value, "low": both.low, "high": both.high,
            "low, corrected": corrected.low, "high, corrected": corrected.high,
            "packets returned, least": means.returned.min(), "packets returned, most": means.returned.max(),
            "fastest / slowest client": means.goodput.max() / means.goodput.min(),
            "correlation with packets returned over sat": reference.value, "low, sat": reference.low,
            "high, sat": reference.high,
        })  # fmt: skip
    numbers.table("acknowledgements", rows)
    numbers.names("acknowledgements.faster", faster)
    numbers.names("acknowledgements.slower", slower)
    fixed = data.part(FIXED)
    key = ["client", "test_case", "loss_seed"]
    same = fixed.merge(matrix[matrix.server == "msquic"], on=key, suffixes=("", "_before"))
    same = same[same.succeeded & same.succeeded_before]
    numbers.add("underflow.runs", len(same))
    for name, suffix in (("with", "_before"), ("without", "")):
        runs = same[["client", f"goodput{suffix}", f"return_packets{suffix}"]].set_axis(
            ["client", "goodput", "return_packets"], axis=1
        )
        both = correlation(list(runs.return_packets), list(runs.goodput))
        numbers.add(f"underflow.{name}", runs.goodput.mean(), Unit.RATE)
        numbers.span(f"underflow.{name}", runs.goodput, Unit.RATE)
        numbers.add(f"underflow.{name}.correlation", both.value, Unit.RATIO)
        numbers.ends(f"underflow.{name}.correlation", both.low, both.high, Unit.RATIO)


def by_client(runs: Frame) -> Frame:
    """Packets that each client returns per packet (mean), and geometric mean goodput with it, bit/s."""
    groups = runs[runs.goodput_so_far > 0].groupby("client")
    means = pd.DataFrame({"returned": groups.return_packets.mean(), "goodput": groups.goodput_so_far.agg(geometric)})
    return means.dropna()
