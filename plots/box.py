"""Box plots of all test cases: goodput with the rate of the link, and efficiency; or another number."""

from quicsat.model.test_case import constant_rate
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import WIDTH, Drawing, Group, Panel, Plot, failures_in_words, per_campaign, sentences, stem
from quicsat.plots.metric_axis import metric_axis
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import EFFICIENCY, GOODPUT, left_out, samples

USUAL = (GOODPUT, EFFICIENCY)


def _drawing(request: PlotRequest, campaign: CampaignResults) -> Drawing | None:
    """One panel per metric."""
    panels, notes, counts = [], list[str](), list[int]()
    main_one = metric_axis(request, GOODPUT)
    for usual in USUAL[:1] if request.metric else USUAL:
        shown = metric_axis(request, usual)
        rows = list[tuple[str, list[float], float | None]]()
        for case in request.measured(campaign.results):
            many = samples(campaign.results, case.name, shown.name)
            if not any(sample.values for sample in many):
                continue
            values = [v for sample in many for v in shown.values(request, sample)]
            rate = constant_rate(case.link) if shown.name == GOODPUT else None
            rows.append((f"{case.abbreviation}\nn = {len(values)}", values, rate))
            if usual == GOODPUT:
                counts.append(sum(sample.conclusive - sample.succeeded for sample in many))
                notes += [f"Not shown in {case.abbreviation}: {lost}"] if (lost := left_out(many)) else []
        if rows:
            panels.append(Panel(rows, {"label": shown.label, "unit": shown.size}))
    if not panels:
        return None
    caption = sentences(
        "The figure includes all repetitions of all pairs; "
        f"{failures_in_words(sum(counts), without=not main_one.zeros(request))}",
        "Boxes show the quartiles, lines the medians, diamonds the means, and whiskers the 5th and 95th percentiles",
        "Dashed lines show the rate of the link" if any(rate for *_, rate in panels[0].rows) else "",
        *notes,
    )
    title = f"{main_one.words.capitalize()} per test case" if request.metric else PLOT.title
    return Drawing(
        stem(request, campaign, request.metric), title, caption, (tuple(panels),), (max(WIDTH, 1.6 * len(counts)), 3.6)
    )


def draw(ax: Axes, panel: Panel) -> None:
    """Boxes with whiskers at 5 and 95 %, and the links' rates."""
    unit = panel.facts["unit"]
    ax.boxplot(
        [[value / unit for value in values] for _, values, _ in panel.rows],
        whis=(5, 95), showfliers=False, showmeans=True, patch_artist=True, widths=0.55,
        boxprops={"facecolor": theme.SKY, "alpha": 0.6}, medianprops={"color": theme.BLACK, "linewidth": 1.4},
        meanprops={"marker": "D", "markerfacecolor": theme.VERMILION, "markeredgecolor": "white", "markersize": 5},
    )  # fmt: skip
    for place, (*_, rate) in enumerate(panel.rows, start=1):
        if rate:
            ax.hlines(rate / unit, place - 0.42, place + 0.42, color=theme.VERMILION, linestyle="--")
    ax.set_xticks(range(1, len(panel.rows) + 1), [case for case, *_ in panel.rows])
    ax.set(xlabel="test case", ylabel=panel.facts["label"])
    ax.set_ylim(bottom=0)
    ax.grid(axis="x", visible=False)


PLOT = Plot(
    "box", "Goodput and efficiency per test case", Group.DISTRIBUTIONS, "results",
    per_campaign(_drawing, "no repetition has such a number."), draw,
)  # fmt: skip
