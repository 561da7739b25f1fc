"""Data rate of the return path over time: acknowledgements and requests of the client."""

from quicsat.model.text import counted
from quicsat.plots.time_series_base import Curve, Picked, over_time
from quicsat.report.pair_series import PairSeries
from quicsat.report.plot_request import PlotRequest
from quicsat.traces.series import Packets, window_rate

KBPS = 1e3


def _pick(_: PlotRequest, pair: PairSeries, alone: bool) -> Picked:
    back = pair.middle.series.back
    if not alone:
        return Picked([_curve(back, "")])
    curves = [*(_curve(run.series.back, "other") for run in pair.others), _curve(back, "first", "sent by the client")]
    packets, size = len(back), int(back.size.sum())
    return Picked(
        curves,
        "Each rate is that of the UDP payload in the preceding second. In total, there are "
        f"{counted(packets, 'packet')} with "
        f"{counted(size, 'byte')}",
    )


def _curve(packets: Packets, role: str, label: str = "") -> Curve:
    return Curve.of(window_rate(packets.sent, packets.size), KBPS, role, label)


PLOT = over_time("return-path", "Return path over time", "rate of the return path [kbit/s]", _pick)
