"""Goodput (or another metric) by release of an implementation, with significant steps."""

from collections.abc import Iterator, Sequence

from quicsat.model.implementation import Role
from quicsat.model.names import RELEASE_SIGN
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, each_case, nonempty, sentences, single_panel, stem
from quicsat.plots.metric_axis import MetricAxis, metric_axis
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.intervals import FEWEST, of_repetitions
from quicsat.statistics.releases import (
    ReleaseStep,
    implementations_with_releases,
    release_steps,
    releases_in,
)
from quicsat.statistics.samples import GOODPUT, Sample, samples

Line = tuple[Role, str, list[tuple[int, float, float, float]], list[tuple[int, float, float]]]
"""Role, partner, points (place, mean and ends of its interval) and steps (place, means before and after)."""
SPREAD = 0.06
"""Distance of the points of two lines at one release, so that their intervals can be told apart."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing for each implementation and test case."""
    steps = {
        (campaign.label, name): release_steps(campaign.results, name, request.measured(campaign.results))
        for campaign in request.campaigns
        for name in implementations_with_releases(campaign.results)
    }
    found = [
        drawing
        for campaign, case in each_case(request)
        for name in implementations_with_releases(campaign.results)
        if (drawing := _drawing(request, campaign, case, (name, steps[campaign.label, name])))
    ]
    return nonempty(found, "no implementation has goodput of two releases.")


def _drawing(
    request: PlotRequest, campaign: CampaignResults, case: TestCase, history: tuple[str, Sequence[ReleaseStep]]
) -> Drawing | None:
    name, steps = history
    number, releases = metric_axis(request, GOODPUT), releases_in(campaign.results, name)
    lines = [line for line in _lines(campaign, case, number, (name, steps)) if line[2]]
    if not lines:
        return None
    runs = sorted({len(sample.values) for sample in samples(campaign.results, case.name, number.name)} - {0})
    most = counted(runs[-1], "repetition")
    spread = "its 95 % confidence interval" if runs[-1] >= FEWEST else "their range"
    if runs[0] < FEWEST <= runs[-1]:
        spread += f", or their range with fewer than {FEWEST},"
    facts = {"releases": releases, "y": f"mean {number.label}", "size": number.size}
    return Drawing(
        stem(request, campaign, name, request.metric, case.abbreviation),
        f"{case.abbreviation}: {number.words} by release of {name}",
        sentences(
            f"Each point is the mean of the repetitions that succeeded, with {spread} "
            f"(n = {most if len(runs) == 1 else f'{runs[0]} to {most}'})",
            "An arrow marks a significant step from one release to the next, in the same members" if steps else "",
        ),
        single_panel(Panel(lines, facts)),
        (7.0, 3.6),
    )


def _lines(
    campaign: CampaignResults, case: TestCase, number: MetricAxis, history: tuple[str, Sequence[ReleaseStep]]
) -> Iterator[Line]:
    name, steps = history
    releases = releases_in(campaign.results, name)
    places = {f"{name}{RELEASE_SIGN}{release}": place for place, release in enumerate(releases)}
    found: dict[tuple[Role, str], dict[int, Sample]] = {}
    for sample in samples(campaign.results, case.name, number.name):
        if sample.server in places:
            found.setdefault((Role.SERVER, sample.client), {})[places[sample.server]] = sample
        if sample.client in places:
            found.setdefault((Role.CLIENT, sample.server), {})[places[sample.client]] = sample
    for (role, partner), many in sorted(found.items(), reverse=True):
        means = {place: mean for place, each in sorted(many.items()) if (mean := of_repetitions(each.values))}
        points = [(place, mean.value, *(mean.ends or (mean.value, mean.value))) for place, mean in means.items()]
        changed = [
            place
            for place, step in enumerate(steps, start=1)
            if any((each.role, each.partner, each.test_case) == (role, partner, case.name) for each in step.changes)
        ]
        arrows = [(at, means[at - 1].value, means[at].value) for at in changed if {at - 1, at} <= means.keys()]
        yield role, partner, points, arrows


def draw(ax: Axes, panel: Panel) -> None:
    """A line per role and partner, solid for servers, with intervals and arrows."""
    facts, size = panel.facts, panel.facts["size"]
    for turn, (role, partner, points, steps) in enumerate(panel.rows):
        style = theme.of_position(turn)
        shift = SPREAD * (turn - (len(panel.rows) - 1) / 2)
        means = [mean / size for _, mean, _, _ in points]
        errors = [[max(0.0, (mean - low) / size) for _, mean, low, _ in points],
                  [max(0.0, (high - mean) / size) for _, mean, _, high in points]]  # fmt: skip
        ax.errorbar([place + shift for place, *_ in points], means, yerr=errors, color=style.colour,
                    marker=style.mark, markersize=4, linewidth=1.2, elinewidth=0.8, capsize=2,
                    linestyle="-" if role is Role.SERVER else "--", label=f"{role}, with {partner}")  # fmt: skip
        for place, before, after in steps:
            ax.annotate("", xy=(place + shift, after / size), xytext=(place + shift, before / size),
                        arrowprops={"arrowstyle": "-|>", "color": style.colour, "linewidth": 1.5})  # fmt: skip
    ax.set_xticks(range(len(facts["releases"])), facts["releases"], rotation=30, ha="right", rotation_mode="anchor")
    ax.set(xlabel="release", ylabel=facts["y"], xlim=(-0.5, len(facts["releases"]) - 0.5))
    ax.set_ylim(bottom=0)
    ax.legend(title="role of the release", loc="center left", bbox_to_anchor=(1.01, 0.5))


PLOT = Plot("releases", "Goodput by release of an implementation", Group.CAMPAIGNS, "results", table, draw)
