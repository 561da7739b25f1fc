"""The sentence on the first screen of a campaign: what got worse since the one before; pure."""

from collections.abc import Sequence

from quicsat.model.text import counted
from quicsat.report.comparison_lines import line
from quicsat.site.matrix_cell_text import goodput
from quicsat.statistics.comparison import BETTER, WORSE, Change, Comparison, PairChange

_ORDER = tuple(Change)


def sentence(found: Comparison, before: str) -> str:
    """``12 pairs got worse since 2026-11-20, 1 got better; the largest: …``; ``before``: when the other began."""
    words = [_of_pairs(found, before), *(f"{line(each)}." for each in found.groups)]
    words += ["Some changes could not be found with these results."] if found.undecided else []
    words += ["The two campaigns ran under different conditions."] if found.unlike else []
    return " ".join(f"{each[0].upper()}{each[1:]}" for each in words)


def _of_pairs(found: Comparison, before: str) -> str:
    worse = [pair for pair in found.pairs if pair.change in WORSE]
    perhaps = [pair for pair in found.pairs if pair.perhaps_worse]
    better = sum(pair.change in BETTER for pair in found.pairs)
    told = f"No pair got significantly worse or better since {before}"
    if worse or better:
        told = f"{_pairs(len(worse))} got worse since {before}, {better} got better"
    told += f", {len(perhaps)} may have got worse" if perhaps else ""
    if worse:
        return f"{told}; the largest change for the worse: {_words(_largest(worse))}."
    return f"{told}; the first: {_words(_largest(perhaps))}." if perhaps else f"{told}."


def _pairs(count: int) -> str:
    return "No pair" if not count else counted(count, "pair")


def _largest(worse: Sequence[PairChange]) -> PairChange:
    """New failures first, then the largest loss of speed."""
    return min(worse, key=lambda pair: (_ORDER.index(pair.change), pair.ratio or 0.0))


def _words(pair: PairChange) -> str:
    sample = pair.second
    who = f"{sample.server} to {sample.client} over {sample.test_case}"
    slower = pair.change in (Change.SLOWER, Change.PERHAPS_SLOWER)
    if slower and pair.ratio is not None and pair.first.mean and sample.mean:
        lost = round(-100 * pair.ratio)
        return f"{who}, {goodput(pair.first.mean)} → {goodput(sample.mean)} Mbit/s (−{lost} %)"
    return f"{who}, {pair.change.value}"
