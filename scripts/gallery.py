"""Draw docs/gallery/ and docs/gallery.md from campaigns: `make gallery RESULTS="results/a results/b"`.

Every figure and table that the first campaign allows; others over more links are parts of it, one with functional tests
adds their matrix, one with traces the figures over runs if the first has none, any other one figures over campaigns.
Also: `python -m scripts.gallery --output DIR RESULTS…`.
"""

# ruff: noqa: T201 - a script

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from paper.numbers import listed
from quicsat.config.loader import load_implementations
from quicsat.model.names import pair_folder
from quicsat.model.objective import MB, Objective
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.plots.discovery import draw, plots
from quicsat.report import campaign_tables, run_tables
from quicsat.report.plot_request import CampaignResults, Gallery, PlotRequest
from quicsat.report.table import Table, render
from quicsat.results.qir_import import open_results
from quicsat.statistics.samples import GOODPUT, samples, value_of
from quicsat.traces.series import FILE_NAME

ROOT = Path(__file__).resolve().parents[1]
OVERLAID = ("offset", "data-size", "data-rate", "packet-number", "rtt")
MOST_OVERLAID = 5
OBJECTIVES = (Objective(2 * MB, 3.0), Objective(10 * MB, 5.0))
"""Those of Kuhn et al. for 50/10 Mbit/s, for all test cases of the gallery, which have none of their own."""
PAPERS = (
    ("arXiv 2202.08228", "Fig. 2", "topology"), ("arXiv 2202.08228", "Fig. 3", "cdf"),
    ("arXiv 2202.08228", "Fig. 4", "heatmap"), ("arXiv 2202.08228", "Fig. 5", "violin"),
    ("arXiv 2202.08228", "Fig. 6", "two-case-scatter"), ("arXiv 2202.08228", "Figs. 7 to 11", "offset"),
    ("Kuhn et al. (2020)", "Fig. 2", "percentiles"), ("Kuhn et al. (2020)", "Figs. 3, 7, 9, 10", "data-size"),
    ("Kuhn et al. (2020)", "Figs. 6, 8, 11", "data-rate"), ("Kuhn et al. (2020)", "Table 2", "loss"),
    ("Kuhn et al. (2020)", "objectives", "objectives"),
    ("quicly over satellite", "packet numbers", "packet-number"), ("quicly over satellite", "RTT and window", "rtt"),
)  # fmt: skip
"""Where the figures of others have their counterparts."""
SOURCES = (
    "*Kuhn et al. (2020)* is the paper *QUIC: Opportunities and threats in SATCOM*. *quicly over satellite* refers to "
    "slides about the implementation quicly."
)


@dataclass(frozen=True)
class Section:
    """A heading and what was drawn below it."""

    heading: str
    gallery: Gallery


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw; the exit status."""
    parser = argparse.ArgumentParser(description="Draw the gallery of the documentation.")
    parser.add_argument("results", type=Path, nargs="+", help="campaign directories, or result files of QIR and QIR-SE")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="where gallery.md and gallery/ are made")
    parser.add_argument("--format", choices=("svg", "png"), default="png")
    options = parser.parse_args(arguments)
    known = load_implementations(ROOT / "implementations.json")
    campaigns = [
        CampaignResults(place.resolve().stem, open_results(place, known).result_set, place if place.is_dir() else None)
        for place in options.results
    ]
    target = options.output / "gallery"
    shutil.rmtree(target, ignore_errors=True)
    with TemporaryDirectory() as place:
        campaigns = joined(campaigns, Path(place))
        sections = list(pictures(campaigns, target, options.format))
        (options.output / "gallery.md").write_text(page(campaigns, sections), encoding="utf-8")
    files = [file for section in sections for file in section.gallery.files]
    for file in files:
        lighten(file)
    size = sum(file.stat().st_size for file in files)
    print(f"{len(files)} figures, {size / 1024:.0f} KiB, in {target}")
    for section in sections:
        for skipped in section.gallery.skipped:
            print(f"not drawn: {skipped}")
    return 0


def lighten(file: Path) -> None:
    """Let a PNG have no more than 256 colours: a third of its size."""
    if file.suffix == ".png":
        with Image.open(file) as picture:
            few = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(file, optimize=True)


def joined(campaigns: Sequence[CampaignResults], place: Path) -> list[CampaignResults]:
    """Campaigns of the same implementations over other links become one; ``place`` gets copies of their series."""
    found = list[CampaignResults]()
    for campaign in campaigns:
        fitting = next((number for number, each in enumerate(found) if _are_parts(each, campaign)), None)
        if fitting is None:
            found.append(campaign)
        else:
            found[fitting] = _join(found[fitting], campaign, place / str(len(list(place.iterdir()))))
    return found


def _are_parts(one: CampaignResults, other: CampaignResults) -> bool:
    manifests = one.results.manifest, other.results.manifest
    pairs = [(sorted(each.servers), sorted(each.clients)) for each in manifests]
    cases = [{case.name for case in each.test_cases} for each in manifests]
    return pairs[0] == pairs[1] and not cases[0] & cases[1] and not (functional(one) or functional(other))


def _join(one: CampaignResults, other: CampaignResults, place: Path) -> CampaignResults:
    for part in (one, other):
        for case in part.results.manifest.test_cases if part.directory else ():
            assert part.directory is not None
            for series in part.directory.glob(f"*/{case.name}/*/{FILE_NAME}"):
                copy = place / series.relative_to(part.directory)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(series, copy)
    first, second = one.results.manifest, other.results.manifest
    manifest = replace(
        first,
        started=min(first.started, second.started),
        test_cases=(*first.test_cases, *second.test_cases),
        planned_runs=first.planned_runs + second.planned_runs,
    )
    results = replace(one.results, manifest=manifest, results=(*one.results.results, *other.results.results))
    return CampaignResults(one.label, results, place)


# ---- figures --------------------------------------------------------------------------------


def pictures(campaigns: Sequence[CampaignResults], target: Path, form: str) -> Iterator[Section]:
    """All sections, in the order of the page."""
    main_one, traced = campaigns[0], with_traces(campaigns)
    others = [each for each in campaigns[1:] if each is not traced and not functional(each)]
    of = {kind: tuple(name for name, plot in plots().items() if plot.of == kind) for kind in ("results", "runs")}
    forms = (form,)
    over_results = tuple(name for name in of["results"] if name not in ("outcomes", "cdf-pairs"))
    yield Section("Goodput and efficiency", draw(PlotRequest((main_one,), target, over_results, forms)))
    if tested := tuple(filter(functional, campaigns)):
        yield Section("Functional tests", draw(PlotRequest(tested, target, ("outcomes",), forms)))
    yield Section("Over time", draw(PlotRequest((main_one, *others), target, ("by-date",), forms)))
    if others:
        yield Section(
            "Over campaigns", draw(PlotRequest((others[0], main_one), target, ("comparison", "history"), forms))
        )
    else:
        hardest = tuple(case.abbreviation for case in _measured(main_one))[-2:]
        yield Section("Comparisons", draw(PlotRequest((main_one,), target, ("comparison",), forms, hardest)))
    yield from over_runs(
        traced, target, form, tuple(name for name in of["runs"] if name not in ("delivery", "objectives", "transports"))
    )


def with_traces(campaigns: Sequence[CampaignResults]) -> CampaignResults:
    """The first campaign with stored series; the first of all if none has any."""
    return next(
        (each for each in campaigns if any(map(partial(pairs_with_series, each), _measured(each)))), campaigns[0]
    )


def _measured(campaign: CampaignResults) -> Sequence[TestCase]:
    return PlotRequest((), Path()).measured(campaign.results)


def functional(campaign: CampaignResults) -> bool:
    """Whether it has nothing but functional tests."""
    return all(case.functional for case in campaign.results.manifest.test_cases)


def over_runs(campaign: CampaignResults, target: Path, form: str, names: tuple[str, ...]) -> Iterator[Section]:
    """Per test case all figures of the fastest pair, and where the offsets of the slowest and the most wasteful lie;

    the fastest pair of each server overlaid, and the pair with the most goodput over all links.
    """
    ranked = {case: pairs_with_series(campaign, case) for case in _measured(campaign)}
    shown = {case: pairs for case, pairs in ranked.items() if pairs}
    for case, pairs in shown.items():
        title = f"Packets over {case.abbreviation}"
        here = (case.abbreviation,)
        fastest = PlotRequest((campaign,), target, names, (form,), here, (pairs[0],), objectives=OBJECTIVES)
        yield Section(f"{title}: the fastest pair", draw(fastest))
        rest = tuple(
            dict.fromkeys(pair for pair in (pairs[-1], most_wasteful(campaign, case, pairs)) if pair != pairs[0])
        )
        if rest:
            others = draw(PlotRequest((campaign,), target, ("offset",), (form,), here, rest))
            yield Section(f"{title}: the slowest pair, and the pair with the most redundant bytes", others)
        servers = {pair[0]: pair for pair in reversed(pairs)}
        best = tuple(pair for pair in pairs if pair in servers.values())[:MOST_OVERLAID]
        if len(best) > 1:
            of_pairs = PlotRequest((campaign,), target, ("cdf-pairs",), (form,), here, best)
            yield Section(f"Pairs over {case.abbreviation}", draw(of_pairs))
            overlay = PlotRequest(
                (campaign,), target, OVERLAID, (form,), here, best, overlaid=True, objectives=OBJECTIVES
            )
            yield Section(f"{title}: servers overlaid", draw(overlay))
    if len(shown) > 1:
        pair = list(shown.values())[-1][0]
        overlay = PlotRequest((campaign,), target, OVERLAID[:3], (form,), pairs=(pair,), overlaid=True)
        yield Section("Packets: links overlaid", draw(overlay))
    if shown:
        met = PlotRequest((campaign,), target, ("objectives",), (form,), objectives=OBJECTIVES)
        yield Section("Objectives", draw(met))


def pairs_with_series(campaign: CampaignResults, case: TestCase) -> list[tuple[str, str]]:
    """Pairs (server, client) with series in a test case, those with the most goodput first."""
    if campaign.directory is None:
        return []
    known = [sample for sample in samples(campaign.results, case.name, GOODPUT) if sample.mean is not None]
    ranked = sorted(known, key=lambda sample: (-(sample.mean or 0.0), sample.server, sample.client))
    folders = {sample: pair_folder(sample.server, sample.client) for sample in ranked}
    return [
        (sample.server, sample.client)
        for sample in ranked
        if any((campaign.directory / folders[sample] / case.name).glob(f"*/{FILE_NAME}"))
    ]


def most_wasteful(campaign: CampaignResults, case: TestCase, pairs: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """The pair of which a run has sent the most per useful byte."""
    sent = {
        (result.server, result.client): value_of(result, "sent_per_useful_byte") or 0.0
        for result in campaign.results.results
        if result.test_case == case.name
    }
    return max(pairs, key=lambda pair: sent.get(pair, 0.0))


# ---- the page -------------------------------------------------------------------------------


def page(campaigns: Sequence[CampaignResults], sections: Sequence[Section]) -> str:
    """Markdown: what was measured, where the papers' figures are, the tables, and each figure with its caption."""
    traced, cases = with_traces(campaigns), _measured(campaigns[0])
    packets = f" Figures over packets are of a campaign of {_words(traced)}." if traced is not campaigns[0] else ""
    made = (
        f"`make gallery` drew these figures from a campaign of {_words(campaigns[0])}.{packets} `./run.py plot DIR` "
        "and `./run.py tables DIR` draw the same figures and print the same tables for your own campaigns."
    )
    lines = ["# Gallery", "", made, "", *counterparts(sections), "## Tables", ""]
    for table in tables(campaigns[0], cases):
        lines += [render(table, "markdown"), ""]
    for section in sections:
        if section.gallery.files:
            lines += [f"## {section.heading}", ""]
        for file, (_, title, caption) in zip(section.gallery.files, section.gallery.captions, strict=True):
            lines += [f"### {title}", "", f"![{title}](gallery/{file.name})", "", caption, ""]
    return "\n".join(lines).rstrip() + "\n"


def _words(campaign: CampaignResults) -> str:
    """Date and size of a campaign."""
    manifest, cases = campaign.results.manifest, _measured(campaign)
    return (
        f"{manifest.started[:10]}: {len(manifest.servers)} servers, {len(manifest.clients)} clients, "
        f"the test {'case' if len(cases) == 1 else 'cases'} {listed(f'`{case.name}`' for case in cases)}, and "
        f"{counted(max(case.repetitions for case in cases), 'repetition')}"
    )


def counterparts(sections: Sequence[Section]) -> Iterator[str]:
    """A table of the papers' figures with links to ours."""
    names = [file.name for section in sections for file in section.gallery.files]
    yield from ("| source | figure or table | similar figures |", "|:-------|:----------------|:----------------|")
    for paper, number, plot in PAPERS:
        mine = [name for name in names if _plot_of(name) == plot]
        links = ", ".join(f"[{name.partition('.')[0]}](gallery/{name})" for name in mine)
        yield f"| {paper} | {number} | {links} |"
    yield from ("", SOURCES, "")


def _plot_of(file: str) -> str:
    """Name of the plot that a figure is of: ``cdf-pairs``, not ``cdf``."""
    stem = file.rpartition(".")[0]
    return max((name for name in plots() if f"{stem}-".startswith(f"{name}-")), key=len)


def tables(campaign: CampaignResults, cases: Sequence[TestCase]) -> Iterator[Table]:
    """The tables that are not longer than a page."""
    results, manifest = campaign.results, campaign.results.manifest
    yield from (
        make(results, cases) for make in (run_tables.links, campaign_tables.summary, campaign_tables.implementations)
    )
    yield campaign_tables.variance(results, cases)
    used = [each for each in manifest.implementations if each.name in {*manifest.servers, *manifest.clients}]
    yield campaign_tables.congestion(used)
    if len(cases) > 1:
        names = [case.abbreviation for case in cases[-2:]]
        yield run_tables.groups_of_pairs(results, names[0], names[1])[0]
    yield from (run_tables.groups_of_runs(results, case)[0] for case in cases)
    yield from (make(results, cases) for make in (run_tables.loss, run_tables.sweep, run_tables.senders))


if __name__ == "__main__":
    sys.exit(main())
