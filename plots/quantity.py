"""What figures over results show of each run: one of its numbers, as people read it on an axis."""

from __future__ import annotations

from dataclasses import dataclass

from interop.analysis.metrics import METRICS
from interop.errors import InputError
from interop.names import did_you_mean, quoted
from interop.pictures import Wish
from interop.statistics.samples import Sample, with_zeros
from interop.units import KIB, MBPS, PERCENT

_UNITS = {"bit/s": ("Mbit/s", MBPS), "1": ("%", PERCENT), "s": ("s", 1.0), "B": ("KiB", KIB)}
_FACTORS = ("sent_per_useful_byte", "return_packets")
"""Ratios that are no shares."""


@dataclass(frozen=True)
class Quantity:
    """A number of a run."""

    name: str
    """Of ``interop.analysis.metrics.METRICS``."""
    words: str
    unit: str
    size: float
    """Of the unit, in the SI base unit."""
    higher: bool
    """Whether more is better: then a repetition that failed counts as 0; otherwise it has no such number."""

    @property
    def label(self) -> str:
        """``goodput [Mbit/s]``."""
        return f"{self.words} [{self.unit}]"

    def values(self, wish: Wish, sample: Sample) -> tuple[float, ...]:
        """Of the repetitions, those that failed as wished."""
        return with_zeros(sample) if self.zeros(wish) else sample.values

    def zeros(self, wish: Wish) -> bool:
        """Whether repetitions that failed count as 0."""
        return self.higher and not wish.without_failed


def quantity(wish: Wish, usual: str) -> Quantity:
    """The one that is wished for, else the figure's own; InputError if there is none of that name."""
    known = {metric.name: metric for metric in METRICS}
    name = wish.metric or usual
    if name not in known:
        raise InputError(f"There is no number {quoted(name)}.{did_you_mean(name, known)} Known: {', '.join(known)}.")
    metric = known[name]
    unit, size = ("1", 1.0) if name in _FACTORS else _UNITS.get(metric.unit, (metric.unit, 1.0))
    words = metric.label[0].lower() + metric.label[1:]
    return Quantity(name, words, unit, size, metric.better == "higher")
