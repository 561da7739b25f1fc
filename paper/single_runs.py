"""What packets and qlogs of single runs show: receive windows, bursts at the start, and two figures of the paper."""

from typing import Any

import numpy as np

from paper.clocks import both_clocks
from paper.data_set import DataSet
from paper.endpoints import FULL, RAISED, UNLIMITED, smaller_window
from paper.numbers import Numbers, Unit
from quicsat.traces.series import Series

BURST_GAP, PAUSE = 0.001, 0.002
"""Seconds without a packet that end a burst: a packet of 1,500 bytes takes 0.6 ms on the link."""
LOWER = 0.95
"""A congestion window below this part of the previous one has been reduced."""
SLOW, FAST = ("kwik", "lsquic"), "picoquic"
"""Clients with which quic-go's server is slow over sat, and one with which it is fast."""
OF_THE_PAPER = (("picoquic", "picoquic", "satloss"), ("kwik", "msquic", "sat"))
"""Server, client and link of the paper's Figures 7 and 8."""


def windows(data: DataSet, numbers: Numbers) -> None:
    """Goodput over sat by the client's receive windows, and why picoquic is slow with quic-go."""
    runs = data.part("windows")
    fill = (runs.in_flight_max / smaller_window(runs)).groupby(runs.client).max()
    rows = []
    for client, each in runs.groupby("client", sort=False):
        connection, stream = each.initial_max_data.max(), each.initial_max_stream_data_bidi_local.max()
        flight = each[each.server == "picoquic"].in_flight_max.max()
        rows.append({
            "client": client, "connection window [B]": "no limit" if connection >= UNLIMITED else connection,
            "stream window [B]": stream, "maximum in flight of picoquic [B]": flight, "timed out": each.timed_out.sum(),
            **{f"goodput, {run.server} [bit/s]": run.goodput_so_far for run in each.itertuples()},
            "window": "raised" if fill[client] > RAISED else "filled" if fill[client] >= FULL else "not filled",
        })  # fmt: skip
    numbers.table("windows", rows)
    goodput = runs.set_index(["server", "client"]).goodput_so_far
    for server in dict.fromkeys(runs.server):
        for client in ("ngtcp2", "ngtcp2:window-768k", "quic-go", "openssl"):
            numbers.add(f"windows.{server}.{client}", goodput[server, client], Unit.RATE)
    small = runs[(runs.client == "ngtcp2:window-768k")]
    limit = 8 * smaller_window(small).min() / small.round_trip.iloc[0]
    numbers.add("windows.limit", limit, Unit.RATE)
    wider = data.part("quic-go-windows").set_index("server").goodput
    for server, value in wider.items():
        numbers.add(f"windows.{server}.quic-go.large", value, Unit.RATE)
    first = runs[runs.server == "picoquic"].set_index("client").time_to_first_byte
    for client in ("quic-go", "openssl"):
        numbers.add(f"windows.first_byte.{client}", first[client], Unit.SECONDS)
    numbers.span("windows.first_byte.others", first.drop(["quic-go", "openssl"]).dropna(), Unit.SECONDS)
    real = both_clocks(data, "sat").set_index(["server", "client"]).loc["picoquic", "ngtcp2"]
    numbers.span("windows.real", (real["min"], real["max"]), Unit.RATE)
    _burst(data.series("picoquic", "quic-go", "sat"), numbers)
    values = data.series("picoquic", "quic-go", "sat", qlog=True).cwnd
    place = int(np.argmax(values.value[1:] / values.value[:-1]))
    low = place + 1 + int(np.argmin(values.value[place + 1 :]))
    numbers.add("windows.cwnd.before", values.value[place], Unit.BYTES)
    numbers.add("windows.cwnd.peak", values.value[place + 1], Unit.BYTES)
    numbers.add("windows.cwnd.least", values.value[low], Unit.BYTES)


def _burst(series: Series, numbers: Numbers) -> None:
    """The largest burst of a server, what the queue dropped of it, and the pause after it."""
    forward, sent = series.forward, series.sent
    bursts = np.split(np.arange(len(forward.sent)), np.flatnonzero(np.diff(forward.sent) > BURST_GAP) + 1)
    largest = max(bursts, key=len)
    end = float(forward.sent[largest[-1]])
    later = sent.time[(sent.time > end) & (sent.new > 0)]
    numbers.add("windows.burst", len(largest))
    numbers.add("windows.burst.lost", int(forward.lost[largest].sum()))
    numbers.add("windows.burst.at", float(forward.sent[largest[0]]), Unit.SECONDS)
    numbers.add("windows.burst.offset", int((sent.offset + sent.length)[sent.time <= end].max()), Unit.BYTES)
    numbers.add("windows.burst.pause", float(later.min()) - end, Unit.SECONDS)
    numbers.add("windows.request", float(np.nanmin(series.requests.arrived)), Unit.SECONDS)
    numbers.add("windows.first_byte.sent", float(sent.time.min()), Unit.SECONDS)


def unpaced_starts(data: DataSet, numbers: Numbers) -> None:
    """Why quic-go's server is slow over sat with two clients: it sends its first window in one burst."""
    matrix, longer = data.part("matrix"), data.part("queues")
    short, long = (each[(each.server == "quic-go") & (each.link == "sat")].set_index("client")
                   for each in (matrix, longer))  # fmt: skip
    for client in SLOW:
        numbers.add(f"start.{client}", short.goodput[client], Unit.RATE)
        numbers.add(f"start.{client}.paper_queue", long.goodput[client], Unit.RATE)
        numbers.add(f"start.{client}.longest_burst", short.longest_burst[client])
    others = short.drop(list(SLOW))
    numbers.span("start.others", others.goodput, Unit.RATE)
    numbers.span("start.others.longest_burst", others.longest_burst, Unit.COUNT)
    numbers.span("start.others.paper_queue", (long.goodput / short.goodput).drop(list(SLOW)), Unit.RATIO)
    near = matrix[(matrix.server == "quic-go") & (matrix.link == "terrestrial")].set_index("client").goodput
    numbers.span("start.terrestrial", near[list(SLOW)], Unit.RATE)
    rates = data.part("quic-go-start").set_index("client").goodput
    rows = []
    for client in (*SLOW, FAST):
        start = _start(data.series("quic-go", client, "sat", qlog=True))
        rows.append({"server": "quic-go", "client": client, "goodput [bit/s]": rates[client], **start})
        if client in SLOW:
            numbers.add(f"start.{client}.burst", start["packets of the first burst"])
            numbers.add(f"start.{client}.lost", start["dropped of the first burst"])
    numbers.table("first-bursts", rows)


def _start(series: Series) -> dict[str, Any]:
    """The first burst of a response, and the congestion window at its first reduction and at the end."""
    table = series.forward
    after = table.sent >= series.sent.time[0]
    pauses = np.flatnonzero(np.diff(table.sent[after]) > PAUSE)
    burst = int(pauses[0]) + 1
    values = series.cwnd.value
    place = int(np.flatnonzero(values[1:] < LOWER * values[:-1])[0])
    return {
        "packets of the first burst": burst, "dropped of the first burst": int(table.lost[after][:burst].sum()),
        "dropped in all": int(table.lost.sum()), "initial congestion window [B]": float(values[0]),
        "window before its first reduction [B]": float(values[place]),
        "window after it [B]": float(values[place + 1]), "time of it [s]": float(series.cwnd.time[place + 1]),
        "window at the end [B]": float(values[-1]),
    }  # fmt: skip


def figures_of_the_paper(data: DataSet, numbers: Numbers) -> None:
    """The pairs of the paper's Figures 7 and 8."""
    matrix = data.part("matrix")
    for server, client, link in OF_THE_PAPER:
        runs = matrix[(matrix.server == server) & (matrix.client == client) & (matrix.link == link)]
        first, name = runs[runs.seed == 1].iloc[0], f"single.{server}"
        numbers.add(f"{name}.time", first.completion_time, Unit.SECONDS)
        numbers.span(f"{name}.times", runs.completion_time, Unit.SECONDS)
        numbers.add(f"{name}.goodput", first.goodput, Unit.RATE)
    queue = data.part("queues")
    same = queue[(queue.server == "picoquic") & (queue.client == "picoquic") & (queue.link == "satloss")]
    numbers.add("single.picoquic.paper_queue", same.completion_time.iloc[0], Unit.SECONDS)
