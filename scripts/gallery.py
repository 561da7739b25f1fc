"""Draw docs/gallery/ and docs/gallery.md from campaigns: `make gallery RESULTS="results/a results/b"`.

Every figure and table that the given results allow, one of each kind; a figure over runs for the pair with the most
goodput in each test case that has series. Also: `scripts/gallery.py --output DIR RESULTS…`.
"""

# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from interop import reports
from interop.foreign import open_results
from interop.inventory import load_implementations
from interop.pictures import Campaign, Gallery, Wish
from interop.sheets import render
from interop.statistics.samples import GOODPUT, samples
from interop.traces.series import FILE_NAME
from plots.catalogue import draw, plots

OVERLAID = ("offset", "data-size", "data-rate", "rtt")
MOST_OVERLAID = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw; the exit status."""
    parser = argparse.ArgumentParser(description="Draw the gallery of the documentation.")
    parser.add_argument("results", type=Path, nargs="+", help="campaign directories, or result files of QIR and QIR-SE")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="where gallery.md and gallery/ are made")
    parser.add_argument("--format", choices=("svg", "png"), default="svg")
    options = parser.parse_args(arguments)
    known = load_implementations(ROOT / "implementations.json")
    campaigns = [
        Campaign(place.resolve().stem, open_results(place, known).result_set, place if place.is_dir() else None)
        for place in options.results
    ]
    target = options.output / "gallery"
    shutil.rmtree(target, ignore_errors=True)
    galleries = list(pictures(campaigns, target, options.format))
    (options.output / "gallery.md").write_text(page(campaigns, galleries), encoding="utf-8")
    files = [file for _, gallery in galleries for file in gallery.files]
    size = sum(file.stat().st_size for file in files)
    print(f"{len(files)} figures, {size / 1024:.0f} KiB, in {target}")
    for _, gallery in galleries:
        for skipped in gallery.skipped:
            print(f"not drawn: {skipped}")
    return 0


def pictures(campaigns: Sequence[Campaign], target: Path, form: str) -> Iterator[tuple[str, Gallery]]:
    """Headings and what was drawn below them."""
    main_one = campaigns[0]
    of = {kind: tuple(name for name, plot in plots().items() if plot.of == kind) for kind in ("results", "campaigns")}
    yield "Over results", draw(Wish((main_one,), target, of["results"], (form,)))
    if len(campaigns) > 1:
        yield "Over campaigns", draw(Wish(tuple(campaigns), target, of["campaigns"], (form,)))
    else:
        yield "Over time", draw(Wish((main_one,), target, ("dates",), (form,)))
        names = [case.abbreviation for case in main_one.results.manifest.test_cases if not case.functional]
        if len(names) > 1:
            chosen = tuple(names[-2:])
            yield "Compared", draw(Wish((main_one,), target, ("comparison",), (form,), chosen))
    runs = tuple(name for name, plot in plots().items() if plot.of == "runs" and name != "objectives")
    shown = list(best_pairs(main_one))
    for case, ranked in shown:
        wish = Wish((main_one,), target, runs, (form,), (case,), tuple(ranked[:1]))
        yield f"Over runs: {case}", draw(wish)
    if shown:
        case, ranked = shown[-1]
        overlay = Wish((main_one,), target, OVERLAID, (form,), (case,), tuple(ranked[:MOST_OVERLAID]), overlaid=True)
        yield f"Several pairs overlaid: {case}", draw(overlay)
        yield "Objectives", draw(Wish((main_one,), target, ("objectives",), (form,)))


def best_pairs(campaign: Campaign) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Per test case (its abbreviation) the pairs with series, those with the most goodput first."""
    if campaign.directory is None:
        return
    for case in campaign.results.manifest.test_cases:
        ranked = sorted(
            ((sample.mean, sample.server, sample.client) for sample in samples(campaign.results, case.name, GOODPUT)
             if sample.mean is not None), reverse=True,
        )  # fmt: skip
        folders = [(server, client, f"{server}_{client}".replace(":", "+")) for _, server, client in ranked]
        there = [(server, client) for server, client, folder in folders
                 if any((campaign.directory / folder / case.name).glob(f"*/{FILE_NAME}"))]  # fmt: skip
        if there:
            yield case.abbreviation, there


def page(campaigns: Sequence[Campaign], galleries: Sequence[tuple[str, Gallery]]) -> str:
    """Markdown: what was measured, the tables, and each figure with its caption."""
    manifest = campaigns[0].results.manifest
    cases = [case for case in manifest.test_cases if not case.functional]
    made = (
        f"Made by `make gallery` from a campaign of {manifest.started[:10]}: {len(manifest.servers)} servers, "
        f"{len(manifest.clients)} clients, {', '.join(case.name for case in cases)}."
    )
    lines = [
        "# Gallery",
        "",
        f"{made} Figures and tables of any other: `./run.py plot DIR` and `./run.py tables DIR`.",
        "",
    ]
    for make in (reports.summary, reports.implementations, reports.variance):
        lines += [render(make(campaigns[0].results, cases), "markdown"), ""]
    used = [each for each in manifest.implementations if each.name in {*manifest.servers, *manifest.clients}]
    lines += [render(reports.congestion(used), "markdown"), ""]
    if len(campaigns) > 1:
        lines += [render(reports.history([each.results for each in campaigns], cases), "markdown"), ""]
    for heading, gallery in galleries:
        if gallery.files:
            lines += [f"## {heading}", ""]
        for file, (_, title, caption) in zip(gallery.files, gallery.captions, strict=True):
            lines += [f"### {title}", "", f"![{title}](gallery/{file.name})", "", caption, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
