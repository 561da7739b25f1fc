"""How the flows of a run share their link: shares, fairness, convergence, queueing delay and loss of each; pure.

All flows *compete* from when the last of them has received its first byte until the first of them has received its last
byte. Shares and fairness are those of the new response bytes that arrive at the clients in that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quicsat.model.arrays import Floats, Integers
from quicsat.model.results import FlowResult
from quicsat.model.run import Run
from quicsat.traces.series import Series, window_rate

FAIR = 0.1
"""δ of δ-fair convergence (RFC 5166, section 2.3.2): each of n flows has at least (1 - δ)/n of the goodput."""
SHORTEST_WINDOW, ROUND_TRIPS = 1.0, 4
"""Convergence is judged over windows of one second, or of so many round trips of the link if these are longer."""
STEP = 0.1
"""Seconds between the ends of two windows."""


@dataclass(frozen=True, eq=False)
class FlowTransfer:
    """What the traces tell of one flow."""

    run: Run
    """Its pair and protocol."""
    start: float
    """When its client sent its first packet, seconds after that of the first flow."""
    series: Series
    """Times are seconds since ``start``."""

    @property
    def arrivals(self) -> tuple[Floats, Integers]:
        """When new response bytes arrived, seconds after the first packet of the first flow, and how many."""
        arrived = self.series.arrived
        new = arrived.new > 0
        return arrived.time[new] + self.start, arrived.new[new]


def competition(flows: Sequence[FlowTransfer]) -> tuple[float, float] | None:
    """When all flows compete, seconds after the first packet of the first flow; None if they never do."""
    times = [flow.arrivals[0] for flow in flows]
    if not all(len(each) for each in times):
        return None
    begin, end = float(max(each.min() for each in times)), float(min(each.max() for each in times))
    return (begin, end) if begin < end else None


def flow_results(flows: Sequence[FlowTransfer]) -> tuple[FlowResult, ...]:
    """The numbers of each flow, in their order."""
    bounds = competition(flows)
    rates = _rates(flows, bounds) if bounds else np.full(len(flows), np.nan)
    least = [delays.min() for flow in flows if len(delays := _delays(flow))]
    return tuple(
        _result(flow, float(rate), float(rates.sum()), min(least, default=0.0))
        for flow, rate in zip(flows, rates, strict=True)
    )


def flow_metrics(flows: Sequence[FlowTransfer], round_trip: float) -> Mapping[str, float | None]:
    """The metrics of a run with several flows; ``round_trip`` of the link, seconds. Empty for one flow."""
    if len(flows) < 2:
        return {}
    bounds = competition(flows)
    if bounds is None:
        return {"competing_time": 0.0}
    rates = _rates(flows, bounds)
    return {
        "competing_time": bounds[1] - bounds[0],
        "flow_share": float(rates[0] / rates.sum()) if rates.sum() else None,
        "jain_index": jain_index(rates),
        "competing_goodput": float(rates.sum()),
        "convergence_time": _convergence(flows, bounds, max(SHORTEST_WINDOW, ROUND_TRIPS * round_trip)),
    }


def jain_index(rates: Floats) -> float | None:
    """Jain's fairness index, from 1/n to 1 (R. Jain et al., DEC-TR-301, 1984); None if all rates are 0."""
    squares = len(rates) * float((rates**2).sum())
    return float(rates.sum()) ** 2 / squares if squares else None


def _rates(flows: Sequence[FlowTransfer], bounds: tuple[float, float]) -> Floats:
    """Goodput of each flow while all compete, bit/s."""
    begin, end = bounds
    sums = [int(new[(times > begin) & (times <= end)].sum()) for times, new in (flow.arrivals for flow in flows)]
    return 8 * np.array(sums, dtype=np.float64) / (end - begin)


def _convergence(flows: Sequence[FlowTransfer], bounds: tuple[float, float], window: float) -> float | None:
    """Seconds from when all compete until the end of the first window in which the shares are δ-fair; None if never."""
    begin, end = bounds
    found = [
        window_rate(flow.arrivals[0] - begin, flow.arrivals[1], window=window, step=STEP, until=end - begin)
        for flow in flows
    ]
    moments, rates = found[0].time, np.array([each.value for each in found])
    total = rates.sum(axis=0)
    fair = (rates >= (1 - FAIR) / len(flows) * total).all(axis=0) & (total > 0)
    reached = moments[fair & (moments >= window) & (moments <= end - begin)]
    return float(reached[0]) if len(reached) else None


def _delays(flow: FlowTransfer) -> Floats:
    delay = flow.series.forward.delay
    known: Floats = delay[~np.isnan(delay)]
    return known


def _result(flow: FlowTransfer, rate: float, total: float, least: float) -> FlowResult:
    """``rate`` of the flow and ``total`` of all while they compete, NaN if never; ``least``: the shortest delay."""
    times, new = flow.arrivals
    packets, queueing = flow.series.forward, _delays(flow) - least
    known = packets.lost | ~np.isnan(packets.arrived)
    span = float(times.max() - times.min()) if len(times) else 0.0
    median, high = (float(np.percentile(queueing, each)) if len(queueing) else None for each in (50, 95))
    return FlowResult(
        server=flow.run.server.name,
        client=flow.run.client.name,
        protocol=flow.run.protocol,
        start=flow.start,
        first_byte=float(times.min()) if len(times) else None,
        last_byte=float(times.max()) if len(times) else None,
        size=int(new.sum()),
        goodput=8 * int(new.sum()) / span if span else None,
        competing_goodput=None if np.isnan(rate) else rate,
        share=rate / total if total > 0 else None,
        loss_forward=float(packets.lost[known].mean()) if known.any() else None,
        queueing_delay_median=median,
        queueing_delay_95=high,
    )
