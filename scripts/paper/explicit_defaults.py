"""Runs that differ in nothing but an option which selects the default: how far the goodput of a pair differs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from interop.model.results import ResultSet
from interop.model.test_case import TestCase
from scripts.paper.goodput import goodput_so_far, of_case
from scripts.paper.words import listed

NAMED = 4
"""So many pairs with the largest differences are named."""


@dataclass(frozen=True)
class Both:
    """Goodput of a pair without the option, and with it, bit/s; with the same random numbers."""

    server: str
    client: str
    default: float
    explicit: float

    @property
    def change(self) -> float:
        """Relative difference."""
        return self.explicit / self.default - 1


def explicit_defaults(matrix: ResultSet, variants: ResultSet, case: TestCase) -> list[Both]:
    """The pairs over a link whose variant selects the default congestion control, with the seeds that both have."""
    chosen = {each.name: each.congestion_control for each in matrix.manifest.implementations}
    own = {(run.server, run.client, run.evidence.seed): run for run in of_case(matrix, case)}
    found = list[Both]()
    for run in of_case(variants, case):
        server, _, variant = run.server.partition(":")
        control = chosen.get(server)
        same = own.get((server, run.client, run.evidence.seed))
        if control is None or control.default != variant or same is None:
            continue
        before, after = goodput_so_far(same), goodput_so_far(run)
        if before and after:
            found.append(Both(server, run.client, before, after))
    return found


def _not_the_image(matrix: ResultSet, windows: ResultSet | None, case: TestCase, servers: Collection[str]) -> str:
    """Servers whose goodput differs with the option, but not with the image alone, as a sentence; or nothing.

    ``windows``: runs without the option, with the image of the variants.
    """
    own = {(run.server, run.client, run.evidence.seed): goodput_so_far(run) for run in of_case(matrix, case)}
    same: dict[str, bool] = {}
    for run in of_case(windows, case) if windows is not None else ():
        if before := own.get((run.server, run.client, run.evidence.seed)):
            same[run.server] = same.get(run.server, True) and goodput_so_far(run) == before
    names = [name for name, each in same.items() if each and name in servers]
    return (
        f" For {listed(names)}, the image is not the cause: without the option, goodput is the same with both images."
        if names
        else ""
    )


def in_words(matrix: ResultSet, variants: ResultSet, case: TestCase, windows: ResultSet | None = None) -> Iterator[str]:
    """How many pairs have the same goodput, and the largest differences, as a paragraph; nothing without such runs."""
    found = explicit_defaults(matrix, variants, case)
    if not found:
        return
    same = sum(each.change == 0 for each in found)
    most = sorted((each for each in found if each.change), key=lambda each: -abs(each.change))[:NAMED]
    told = listed(
        f"{each.server} with {each.client} ({each.default / 1e6:.2f} and {each.explicit / 1e6:.2f} Mbit/s)"
        for each in most
    )
    yield (
        "For other servers, the sensitivity can be larger. The campaign `variants` also contains runs in which an "
        "option selects the congestion control that is the default anyway. They have the same random numbers as runs "
        f"of the matrix, but another image of the virtual machine. Over `{case.name}`, goodput is exactly the same for "
        f"{same} of {len(found)} pairs{f'. It differs most for {told}' if told else ''}."
        f"{_not_the_image(matrix, windows, case, {each.server for each in found if each.change})}"
    )
    yield ""
