"""Runs of the data set that were measured with two builds of the virtual machine of virtual time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from interop.model.results import ResultSet
from interop.model.test_case import Link
from interop.statistics.samples import GOODPUT, value_of
from scripts.paper.data_set import ELSEWHERE, Part, seeds_in_words
from scripts.paper.repeated import SENSITIVE
from scripts.paper.words import counted, listed

IMAGE = "virtual-time"
"""Key of the virtual machine among the images of a campaign."""
CHANGED = (Part.LARGE_WINDOWS, Part.COUNTER, Part.QLOG, *ELSEWHERE)
"""Campaigns whose endpoints differ from those of the others, or write qlogs, or that ran on another machine."""

Key = tuple[str, str, tuple[Link, tuple[int, ...]], int | None]
"""Server, client, link and sizes of the files, and seed: campaigns call the same link by different names."""


def virtual_time_images(campaigns: Collection[tuple[str, ResultSet]]) -> Iterator[str]:
    """Which campaigns used which build, and how much it changes goodput; nothing if all used the same.

    ``campaigns``: part and results, each with its own manifest.
    """
    by_image: dict[str, list[tuple[str, ResultSet]]] = {}
    for part, results in campaigns:
        if image := results.manifest.images.get(IMAGE):
            by_image.setdefault(image.reference, []).append((part, results))
    if len(by_image) < 2:
        return
    used = [
        f"{'campaign' if len(names) == 1 else 'campaigns'} {listed(names)} used the image `{image}`"
        for image, mine in by_image.items()
        for names in [list(_named(mine, campaigns))]
    ]
    yield f"- **Virtual machine:** The {'; the '.join(used)}.{_difference(by_image)}"


def _named(mine: Sequence[tuple[str, ResultSet]], campaigns: Collection[tuple[str, ResultSet]]) -> Iterator[str]:
    """The parts of some campaigns, with their seeds if the part has others, too."""
    for name in dict.fromkeys(part for part, _ in mine):
        seeds = sorted({results.manifest.seed for part, results in mine if part == name})
        every = {results.manifest.seed for part, results in campaigns if part == name}
        yield f"`{name}`{'' if {*seeds} == every else f' with {seeds_in_words(seeds)}'}"


def _difference(by_image: Mapping[str, Sequence[tuple[str, ResultSet]]]) -> str:
    """The goodput of runs that were measured with several builds."""
    found: dict[Key, dict[str, float]] = {}
    for image, mine in by_image.items():
        for results in (each for part, each in mine if part not in CHANGED):
            links = {case.name: (case.link, case.file_sizes) for case in results.manifest.test_cases}
            for run in results.results:
                if goodput := value_of(run, GOODPUT):
                    key = (run.server, run.client, links[run.test_case], run.evidence.seed)
                    found.setdefault(key, {}).setdefault(image, goodput)
    both = [list(values.values()) for values in found.values() if len(values) > 1]
    if not both:
        return ""
    changes = [max(values) / min(values) - 1 for values in both]
    same = sum(change == 0 for change in changes)
    runs = f"{counted(len(both), 'successful run')} took place with both images"
    servers = list(dict.fromkeys(server for (server, *_), values in found.items() if len(values) > 1))
    whose = f" They cover the {counted(len(servers), 'server').partition(' ')[2]} {listed(servers)} only."
    whose += _not_in(found)
    if same == len(both):
        which = "this run" if same == 1 else f"all {same} runs"
        return f" {runs}; in {which}, goodput is exactly the same.{whose}{BESIDE}"
    return (
        f" {runs}; in {same or 'none'} of them, goodput is exactly the same; the largest difference is "
        f"{100 * max(changes):.2g} %.{whose}{BESIDE}"
    )


def _not_in(found: Mapping[Key, Mapping[str, float]]) -> str:
    """That implementations whose runs differ most are not among them, as a sentence; or nothing."""
    names = {name for key, values in found.items() if len(values) > 1 for name in key[:2]}
    missing = [name for name in SENSITIVE if name not in names]
    return f" None has {' or '.join(missing)}, whose runs differ most, as server or client." if missing else ""


BESIDE = (
    " The campaign `queues` shows larger differences (see [Queue of the paper's "
    "simulator](#queue-of-the-papers-simulator))."
)
