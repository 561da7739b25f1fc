"""The metric that a figure over results shows, with label and unit of its axis."""

from dataclasses import dataclass

from quicsat.analysis.metrics import METRICS
from quicsat.model.errors import InputError
from quicsat.model.names import did_you_mean
from quicsat.model.text import quoted
from quicsat.model.units import KIB, MBPS, MIB, PERCENT
from quicsat.report.plot_request import PlotRequest
from quicsat.statistics.samples import Sample, with_zeros

_UNITS = {"bit/s": ("Mbit/s", MBPS), "1": ("%", PERCENT), "s": ("s", 1.0), "B": ("KiB", KIB)}
_OWN_UNITS = {
    **dict.fromkeys(("server_cpu_per_mib", "client_cpu_per_mib"), ("ms", 1e-3)),
    **dict.fromkeys(("server_memory_peak", "client_memory_peak"), ("MiB", float(MIB))),
}
_FACTORS = ("sent_per_useful_byte", "return_packets", "rtt_inflation")
"""Ratios that are not shares, so not shown in per cent."""


@dataclass(frozen=True)
class MetricAxis:
    """A metric of a run, as an axis shows it."""

    name: str
    """A name in ``quicsat.analysis.metrics.METRICS``."""
    words: str
    unit: str
    size: float
    """One ``unit`` in the SI base unit: 1e6 for Mbit/s."""
    higher: bool
    """Whether more is better: then a failed repetition counts as 0; otherwise it has no value."""

    @property
    def label(self) -> str:
        """``goodput [Mbit/s]``."""
        return f"{self.words} [{self.unit}]"

    def values(self, request: PlotRequest, sample: Sample) -> tuple[float, ...]:
        """Values of the repetitions, in SI base units; failed ones as the request says."""
        return with_zeros(sample) if self.zeros(request) else sample.values

    def zeros(self, request: PlotRequest) -> bool:
        """Whether failed repetitions count as 0."""
        return self.higher and not request.without_failed


def metric_axis(request: PlotRequest, usual: str) -> MetricAxis:
    """The requested metric, or ``usual``, the figure's own; raises InputError for an unknown name."""
    known = {metric.name: metric for metric in METRICS}
    name = request.metric or usual
    if name not in known:
        raise InputError(f"There is no metric {quoted(name)}.{did_you_mean(name, known)} Known: {', '.join(known)}.")
    metric = known[name]
    usual_unit = ("1", 1.0) if name in _FACTORS else _UNITS.get(metric.unit, (metric.unit, 1.0))
    unit, size = _OWN_UNITS.get(name, usual_unit)
    words = metric.label if metric.label[:2].isupper() else metric.label[0].lower() + metric.label[1:]  # CPU
    return MetricAxis(name, words, unit, size, metric.better == "higher")
