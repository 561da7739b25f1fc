"""The page: its sections in their order, the introduction and the findings."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from interop.model.results import ResultSet
from interop.report import campaign_tables
from interop.statistics.overview import scenario
from interop.statistics.samples import EFFICIENCY, samples
from interop.statistics.variance import decompose
from scripts.paper.data_set import data_sheet
from scripts.paper.failures import failures
from scripts.paper.figures import FIGURES
from scripts.paper.markdown import moment, rendered
from scripts.paper.matrix import beside_the_paper, clients, clusters, congestion_controls, differences, exceeding
from scripts.paper.method import limitations, links, method
from scripts.paper.variants import algorithm_or_implementation

MATRIX, VARIANTS = "matrix", "variants"


def page(parts: Mapping[str, ResultSet], figures: Sequence[tuple[str, str, str]], size: str) -> str:
    """Markdown of the report; ``figures``: (file name, title, caption); ``size``: of the data set, in words."""
    lines = ["## Figures", ""]
    for file, title, caption in figures:
        lines += [f"### {title}", "", f"![{title}]({FIGURES}/{file})", "", caption, ""]
    if VARIANTS in parts:
        lines = [*algorithm_or_implementation(parts[VARIANTS]), "", *lines]
    return text(parts[MATRIX]) + "\n".join([*lines, *data_sheet(parts, size)]).rstrip() + "\n"


def text(results: ResultSet) -> str:
    """Markdown of the part before the figures."""
    lines = [
        "# arXiv 2202.08228, measured again", "",
        *introduction(results), "",
        "## Findings", "",
        *findings(results), "",
        "## Method", "",
        *method(results),
        *rendered(links(results)),
        "## Goodput per link", "",
        *rendered(beside_the_paper(results)),
        *differences(results), "",
        "## Servers and clients", "",
        *rendered(congestion_controls(results)),
        *rendered(clients(results)),
        *clusters(results), "",
        "## Influence of server and client", "",
        *rendered(campaign_tables.variance(results, results.manifest.test_cases)),
        "## Reasons for failures", "",
        *failures(results), "",
        "## What these measurements do not show", "",
        *limitations(results), "",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def introduction(results: ResultSet) -> Iterator[str]:
    """What was measured, with what, and what it took."""
    manifest = results.manifest
    seeds = max((each.repetition for each in results.results), default=0)
    began = min(each.evidence.started for each in results.results)
    done, planned = len(results.results), manifest.planned_runs
    yield (
        f"This page repeats the measurements of [arXiv 2202.08228](https://arxiv.org/abs/2202.08228), *the paper*, "
        f"with {len(manifest.servers)} servers and {len(manifest.clients)} clients over the links "
        f"{', '.join(f'`{case.name}`' for case in manifest.test_cases)}. The paper measured 14 servers and 13 clients "
        "over the same links, ten times in real time."
    )
    yield ""
    yield (
        f"`make paper` made the measurements from {began[:10]} on in {manifest.time}, with {seeds} "
        f"{'seed' if seeds == 1 else 'seeds'}. Of {planned} planned runs, {done} have a result"
        f"{'' if done == planned else '; the other runs have not been measured yet'}. "
        f"`make paper-report` computed all numbers and drew all figures on this page from the [data set](#data-set)."
    )
    last = max(each.evidence.started for each in results.results)
    phases = [sum(each.evidence.phases.values()) for each in results.results]
    yield ""
    yield (
        f"A run took {statistics.median(phases):.1f} s of wall-clock time at the median. The sum over all runs is "
        f"{sum(phases) / 3600:.1f} h, with two runs at a time on two cores, next to other programs. The first run "
        f"began at {moment(began)} UTC, and the last one at {moment(last)}."
    )


def findings(results: ResultSet) -> Iterator[str]:
    """The paper's conclusions, and whether they hold here, as a list."""
    means = {case.name: scenario(results, case).mean for case in results.manifest.test_cases}
    rates = {case.name: case.emulated.forward_rate for case in results.manifest.test_cases}
    shares = [f"{100 * mean / rates[name]:.0f} % over `{name}`" for name, mean in means.items() if mean is not None]
    if shares:
        yield (
            "- Goodput is far below the rate of a satellite link. The mean efficiency of the successful runs is "
            f"{', '.join(shares)}. See [Table II](#table-ii)."
        )
    parts = []
    for case in results.manifest.test_cases:
        found = decompose(samples(results, case.name, EFFICIENCY))
        server = next((part for part in found.shares if part.source == "server"), None) if found else None
        if server is not None:
            parts.append(
                f"{100 * server.share:.0f} % over `{case.name}` ({100 * server.low:.0f} to {100 * server.high:.0f} %)"
            )
    if parts:
        yield (
            "- The server decides the goodput of a pair. Its share of the variance of the logarithm of goodput is "
            f"{', '.join(parts)}. See [Influence of server and client](#influence-of-server-and-client)."
        )
    fast = {name: len(set(servers)) for name, (servers, _) in exceeding(results).items() if servers}
    if fast:
        yield (
            f"- Over `satloss`, {sum(fast.values())} servers exceed an efficiency of 10 % with at least one client; "
            f"{fast.get('BBR', 0)} of them use BBR. See [Servers and clients](#servers-and-clients)."
        )
