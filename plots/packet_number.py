"""Packet numbers over time (slides on quicly over satellite): what the server sends, and what the client sends."""

from quicsat.model.text import counted
from quicsat.plots.time_series_base import Picked, over_time, packet_numbers
from quicsat.report.pair_series import PairSeries
from quicsat.report.plot_request import PlotRequest

NOTE = (
    "Packet numbers are relative to the first response and the first request, because some implementations begin with "
    "a random number"
)


def _pick(_: PlotRequest, pair: PairSeries, alone: bool) -> Picked:
    """Packets without a readable number are left out and counted."""
    series = pair.middle.series
    if not alone:
        return Picked([packet_numbers(series.forward, series.sent.time, "")], NOTE)
    others = [packet_numbers(run.series.forward, run.series.sent.time, "other") for run in pair.others]
    forward = packet_numbers(series.forward, series.sent.time, "first", "from the server")
    back = packet_numbers(series.back, series.requests.sent, "back", "from the client")
    lost = len(series.forward) + len(series.back) - len(forward.x) - len(back.x)
    left_out = (
        f"The figure omits {counted(lost, 'packet that was', 'packets that were')} sent before the first "
        "response or request, or whose number could not be decrypted"
        if lost
        else ""
    )
    return Picked([*others, forward, back], f"{NOTE}. {left_out}".rstrip(". "))


PLOT = over_time("packet-number", "Packet number over time", "packet number", _pick)
