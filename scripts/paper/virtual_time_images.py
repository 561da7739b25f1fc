"""Runs of the data set that were measured with two builds of the virtual machine of virtual time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interop.model.results import ResultSet
from scripts.paper.data_set import ELSEWHERE, Part
from scripts.paper.goodput import goodput_so_far
from scripts.paper.words import counted, named_campaigns

ERROR = 0.05
"""Probability that more runs differ than the report says."""
IMAGE = "virtual-time"
"""Key of the virtual machine among the images of a campaign."""
CHANGED = (Part.LARGE_WINDOWS, Part.COUNTER, Part.QLOG, *ELSEWHERE)
"""Campaigns whose endpoints differ from those of the others, or write qlogs, or that ran on another machine."""

Key = tuple[str, str, str, int | None]
"""Server, client, test case and seed."""


def virtual_time_images(parts: Mapping[str, ResultSet]) -> Iterator[str]:
    """Which campaigns used which build, and how much it changes goodput; nothing if all used the same."""
    by_image: dict[str, list[str]] = {}
    for part, results in parts.items():
        if image := results.manifest.images.get(IMAGE):
            by_image.setdefault(image.reference, []).append(part)
    if len(by_image) < 2:
        return
    used = "; the ".join(f"{named_campaigns(names)} used the image `{image}`" for image, names in by_image.items())
    yield f"- **Virtual machine:** The {used}.{_difference(parts, by_image)}"


def _difference(parts: Mapping[str, ResultSet], by_image: Mapping[str, list[str]]) -> str:
    """The goodput of runs that were measured with several builds."""
    found: dict[Key, dict[str, float]] = {}
    for image, names in by_image.items():
        for results in (parts[name] for name in names if name not in CHANGED):
            for run in results.results:
                if goodput := goodput_so_far(run):
                    key = (run.server, run.client, run.test_case, run.evidence.seed)
                    found.setdefault(key, {}).setdefault(image, goodput)
    both = [list(values.values()) for values in found.values() if len(values) > 1]
    if not both:
        return ""
    changes = [max(values) / min(values) - 1 for values in both]
    same = sum(change == 0 for change in changes)
    runs = f"{counted(len(both), 'run')} took place with both images"
    if same == len(both):
        which = "this run" if same == 1 else f"all {same} runs"
        most = 100 * (1 - ERROR ** (1 / same))
        return (
            f" {runs}; in {which}, goodput is exactly the same. With 95 % confidence, at most {most:.0f} % of such "
            "runs differ."
        )
    return (
        f" {runs}; in {same or 'none'} of them, goodput is exactly the same; the largest difference is "
        f"{100 * max(changes):.1f} %."
    )
