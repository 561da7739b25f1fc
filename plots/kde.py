"""Per test case, the distribution (KDE) of the mean efficiencies of servers (left) and of clients (right)."""

from collections import Counter
from collections.abc import Mapping, Sequence

from quicsat.model.implementation import Role
from quicsat.model.units import PERCENT
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import (
    DENSITY_FROM,
    WIDTH,
    Drawing,
    Group,
    Panel,
    Plot,
    per_campaign,
    sentences,
    single_panel,
    stem,
)
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.overview import Marginal, marginals
from quicsat.statistics.samples import EFFICIENCY, samples

FEWEST = 3
"""Implementations in a role of which marks are drawn."""
ROLES = (Role.SERVER, Role.CLIENT)


def _drawing(request: PlotRequest, campaign: CampaignResults) -> Drawing | None:
    """A violin per test case."""
    rows = list[tuple[str, Marginal]]()
    counted, silent = dict[str, str](), []
    for case in request.measured(campaign.results):
        many = [each for each in marginals(samples(campaign.results, case.name, EFFICIENCY)) if each.mean is not None]
        counts = [sum(each.role is role for each in many) for role in ROLES]
        if min(counts) < FEWEST:
            silent.append(case.abbreviation)
            continue
        counted[case.abbreviation] = f"{counts[0]} servers and {counts[1]} clients"
        rows += [(case.abbreviation, each) for each in many]
    if not counted:
        return None
    caption = sentences(
        f"The figure shows n = {_numbers(counted)}. Each mark is the mean of an implementation over all "
        "implementations with which it succeeded in this role. The role with the greater spread has the larger effect "
        f"on efficiency. Roles with at least {DENSITY_FROM} implementations also have a density",
        f"Not shown: {', '.join(silent)}, with fewer than {FEWEST}" if silent else "",
    )
    size = (max(WIDTH, 1.5 * len(counted) + 1.6), 4.0)
    title = "Mean efficiency of servers and of clients"
    return Drawing(stem(request, campaign), title, caption, single_panel(Panel(rows)), size)


def _numbers(counted: Mapping[str, str]) -> str:
    """``5 servers and 5 clients in each of T, SAT and SATL``, or the numbers of each test case."""
    *others, last = counted
    if others and len({*counted.values()}) == 1:
        return f"{counted[last]} in each of {', '.join(others)} and {last}"
    *parts, end = (f"{numbers} in {case}" for case, numbers in counted.items())
    return f"{', '.join(parts)}, and {end}" if parts else end


def draw(ax: Axes, panel: Panel) -> None:
    """The implementations' own marks, in split violins if there are enough of them."""
    from matplotlib.patches import Patch

    cases = list(dict.fromkeys(case for case, _ in panel.rows))
    counts = Counter((case, each.role) for case, each in panel.rows)
    dense = [(case, each) for case, each in panel.rows if counts[case, each.role] >= DENSITY_FROM]
    ax.set_xticks(range(len(cases)), cases)
    if dense:
        _densities(ax, cases, dense)
    shift = {Role.SERVER: -0.1, Role.CLIENT: 0.1}
    for name in sorted({each.implementation for _, each in panel.rows}):
        style = theme.of_implementation(name)
        rows = [(case, each) for case, each in panel.rows if each.implementation == name]
        ax.plot([cases.index(case) + shift[each.role] for case, each in rows],
                [each.mean / PERCENT for _, each in rows], marker=style.mark, color=style.colour, markersize=4.5,
                markeredgecolor="white", markeredgewidth=0.4, linestyle="none", label=name)  # fmt: skip
    ax.set(xlabel="test case", ylabel="mean efficiency [%]", xlim=(-0.6, len(cases) - 0.4))
    ax.set_ylim(bottom=0)
    ax.grid(axis="x", visible=False)
    marks = ax.get_legend_handles_labels()[0]
    halves = [
        Patch(color=theme.SERVER, alpha=0.45, label="as server (left)"),
        Patch(color=theme.CLIENT, alpha=0.45, label="as client (right)"),
    ]
    ax.legend(handles=[*halves, *marks], loc="center left", bbox_to_anchor=(1.01, 0.5), ncols=1 + (len(marks) > 14))


def _densities(ax: Axes, cases: Sequence[str], rows: Sequence[tuple[str, Marginal]]) -> None:
    """Halves of violins, as wide as each other."""
    import seaborn

    seaborn.violinplot(
        x=[case for case, _ in rows], y=[(each.mean or 0.0) / PERCENT for _, each in rows],
        hue=[each.role.value for _, each in rows],
        order=cases, hue_order=[role.value for role in ROLES], palette=[theme.SERVER, theme.CLIENT], saturation=1,
        split=True, dodge=True, density_norm="width", inner=None, cut=0, width=0.9, linewidth=0.8, gap=0.04, alpha=0.45,
        legend=False, ax=ax,
    )  # fmt: skip


PLOT = Plot(
    "kde", "Mean efficiency of servers and of clients", Group.DISTRIBUTIONS, "results",
    per_campaign(_drawing, f"there are no {FEWEST} implementations with an efficiency in both roles."), draw,
)  # fmt: skip
