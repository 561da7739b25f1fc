"""Campaigns on disk for tests of the site: a journal, and the files of its runs."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.results import ImageFacts, Provenance, ResultSet
from quicsat.results.store import write_result_json
from quicsat.site import publish
from quicsat.traces import series
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs
from tests.series_builder import Transfer
from tests.series_builder import series as made_series

ROOT = Path(__file__).resolve().parent.parent.parent
REASON = "The client had not finished after 120 s."


def small() -> ResultSet:
    """Two by two, two test cases, with every outcome that there is."""
    results = [
        *runs(8e6, 7e6, 9e6),
        *runs(4e6, None, None, server="quiche"),
        *runs(None, None, None, client="picoquic"),
        run_result(None, outcome=Outcome.ERROR, server="quiche", client="picoquic", reason="The simulator lagged."),
        run_result(
            None, outcome=Outcome.FAILED, code=ErrorCode.CLIENT_FAILED, test_case="satloss", reason="It ended with 1."
        ),
        run_result(None, outcome=Outcome.UNSUPPORTED, server="quiche", test_case="satloss"),
    ]
    named = [replace(each, verdict=replace(each.verdict, reason=each.verdict.reason or REASON)) for each in results]
    origin = Provenance(
        "PyPI aiopquic 0.6", "https://example.org", "c0ffee", ("wake", "path"), "none", "Release", "yes"
    )
    digests = ("x@sha256:" + "cd" * 32,)
    facts = ImageFacts("example/picoquic:latest", "sha256:" + "ab" * 32, digests, version="1.2", provenance=origin)
    names = ("picoquic", "quiche")
    return result_set(
        named, servers=names, clients=names, test_cases=(SAT, SATLOSS), repetitions=3, images={"picoquic": facts}
    )


def on_disk(directory: Path, results: ResultSet, output: str = "client | hello\n") -> Path:
    """A results directory: every run has printed something, those that succeeded have series."""
    directory.mkdir(parents=True)
    write_result_json(directory, results)
    for each in results.results:
        run = directory / each.key.path
        run.mkdir(parents=True)
        (run / "output.txt").write_text(output, encoding="utf-8")
        if each.measurement:
            lost = [5 + each.repetition]
            series.save(made_series(Transfer(rate=each.measurement.values["goodput"], lost=lost)), run)
    return directory


def build(directory: Path, target: Path, *, files: bool = False, root: Path = ROOT) -> publish.BuiltSite:
    """The site of one directory; what it says is not looked at."""
    return publish.build(publish.SiteRequest([directory], target, root, files=files), lambda text: None)


def cell_page(place: Path, results: ResultSet, cell: str = "picoquic/quiche/sat") -> str:
    """The page of a cell in a site of these results, which is built below ``place``."""
    build(on_disk(place / "results", results), place / "site")
    [page] = (place / "site").glob(f"runs/*/p/{cell}/index.html")
    return page.read_text(encoding="utf-8")


def pages(site: Path) -> Mapping[str, str]:
    """All HTML pages by their address."""
    return {str(path.relative_to(site)): path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}


def two_campaigns(place: Path) -> None:
    """The small campaign, and the same a day earlier with better results."""
    results = small()
    on_disk(place / "later", results)
    before = replace(results.manifest, id="2026-11-20T06-00-00Z", started="2026-11-20T06:00:00Z")
    better = tuple(
        replace(
            each,
            measurement=each.measurement and replace(each.measurement, values={"goodput": 16e6, "efficiency": 0.8}),
        )
        for each in results.results
    )
    on_disk(place / "earlier", replace(results, manifest=before, results=better))
