"""Distribution of the efficiency (Fig. 3 of arXiv 2202.08228): one line per test case, failed repetitions as 0 %."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from interop.pictures import Campaign, Wish
from interop.statistics.samples import EFFICIENCY, left_out, samples, with_zeros
from interop.units import PERCENT
from plots import theme
from plots.base import Drawing, Panel, Plot, found, one, sentences, stem, told_of_failures

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def table(wish: Wish) -> Sequence[Drawing]:
    """A drawing per campaign."""
    drawings = [drawing for campaign in wish.campaigns if (drawing := _drawing(wish, campaign)) is not None]
    return found(drawings, "no repetition has an efficiency.")


def _drawing(wish: Wish, campaign: Campaign) -> Drawing | None:
    columns: dict[str, list[object]] = {"case": [], "efficiency": [], "n": [], "failed": []}
    notes = []
    for case in wish.measured(campaign.results):
        many = samples(campaign.results, case.name, EFFICIENCY)
        values = [v for sample in many for v in (sample.values if wish.without_failed else with_zeros(sample))]
        failed = sum(sample.told - sample.succeeded for sample in many)
        if not any(sample.values for sample in many):
            continue
        columns["case"].append(case.abbreviation)
        columns["efficiency"].append(sorted(values))
        columns["n"].append(len(values))
        columns["failed"].append(failed)
        notes.append(f"Left out in {case.abbreviation}: {lost}" if (lost := left_out(many)) else "")
    if not columns["case"]:
        return None
    total = sum(int(str(count)) for count in columns["failed"])
    caption = sentences(
        f"All repetitions of all pairs; {told_of_failures(total, without=wish.without_failed)}",
        *notes,
    )
    facts = {"without_failed": wish.without_failed}
    title = "Distribution of the efficiency"
    return Drawing(stem(wish, campaign), title, caption, one(Panel(columns, facts)))


def draw(ax: Axes, panel: Panel) -> None:
    """A step line per test case, told apart by colour and dash."""
    columns = panel.columns
    failed = panel.facts["without_failed"]
    for number, case in enumerate(columns["case"]):
        style = theme.of_position(number)
        values = [value / PERCENT for value in columns["efficiency"][number]]
        told = "" if failed else f", {columns['failed'][number]} failed"
        label = f"{case} (n = {columns['n'][number]}{told})"
        shares = [100 * (rank + 1) / len(values) for rank in range(len(values))]
        ax.step([0, *values, 100], [0, *shares, 100], where="post", color=style.colour, linestyle=style.dash,
                label=label)  # fmt: skip
    ax.set(xlabel="efficiency [%]", ylabel="share of repetitions [%]", xlim=(0, 100), ylim=(0, 101))
    ax.legend(loc="lower right")


PLOT = Plot("cdf", "Distribution of the efficiency", "results", table, draw)
