"""Releases of an implementation in one campaign: which changed performance against the one before; pure.

Two neighbouring releases are compared as two campaigns are (:mod:`quicsat.statistics.comparison`), in the same pairs
and members. All neighbours together share the level, so that a history without a change tells one in at most 5 of 100
cases.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from quicsat.model.implementation import Role
from quicsat.model.names import RELEASE_SIGN, base_name
from quicsat.model.package import release_order
from quicsat.model.results import Manifest, ResultSet
from quicsat.model.test_case import TestCase
from quicsat.statistics.comparison import ALL, BETTER, WORSE, Comparison, PairChange, campaigns

STAND_IN = "release"
"""Name of each release in comparisons, which tell pairs apart by their names."""


@dataclass(frozen=True)
class ReleaseChange:
    """A significant change from one release to the next."""

    role: Role
    partner: str
    """The other side, or ``comparison.ALL``."""
    test_case: str
    """Or ``comparison.ALL``."""
    change: PairChange


@dataclass(frozen=True)
class ReleaseStep:
    """Two neighbouring releases."""

    before: str
    after: str
    changes: tuple[ReleaseChange, ...]
    """Of pairs, then of all pairs together; the worst first."""
    comparison: Comparison


def implementations_with_releases(results: ResultSet) -> tuple[str, ...]:
    """Names of the implementations with at least two measured releases, in the order of the campaign."""
    names = dict.fromkeys(base_name(each.name) for each in results.manifest.implementations if each.release)
    return tuple(name for name in names if len(releases_in(results, name)) > 1)


def has_releases(manifest: Manifest) -> bool:
    """Whether a campaign was planned with several releases of an implementation."""
    planned = {(base_name(each.name), each.release) for each in manifest.implementations if each.release}
    return len({name for name, _ in planned}) < len(planned)


def releases_planned(manifest: Manifest, name: str) -> tuple[str, ...]:
    """The releases of an implementation with which a campaign was planned, the oldest first, without their variants."""
    found = {each.release for each in manifest.implementations if each.name == _named(name, each.release)}
    return tuple(sorted(found, key=release_order))


def releases_in(results: ResultSet, name: str) -> tuple[str, ...]:
    """The releases of an implementation that a campaign measured, the oldest first, without their variants."""
    measured = {end for result in results.results for end in (result.server, result.client)}
    return tuple(each for each in releases_planned(results.manifest, name) if _named(name, each) in measured)


def of_release(results: ResultSet, name: str, release: str) -> ResultSet:
    """The part of a campaign with a release, which is called :data:`STAND_IN`; without other releases."""
    own, manifest = _named(name, release), results.manifest

    def renamed(end: str) -> str:
        return STAND_IN if end == own else end

    def kept(end: str) -> bool:
        return end == own or not end.startswith(f"{name}{RELEASE_SIGN}")

    def mine(ends: Iterable[str]) -> tuple[str, ...]:
        return tuple(renamed(end) for end in ends if kept(end))

    pairs = [pair.split("/") for pair in manifest.pairs]
    return replace(
        results,
        manifest=replace(
            manifest,
            servers=mine(manifest.servers),
            clients=mine(manifest.clients),
            implementations=tuple(
                replace(each, name=renamed(each.name)) for each in manifest.implementations if kept(each.name)
            ),
            images={renamed(each): image for each, image in manifest.images.items() if kept(each)},
            pairs=tuple("/".join(map(renamed, pair)) for pair in pairs if own in pair),
            must_include=(STAND_IN,),
        ),
        compliance=(),
        results=tuple(
            replace(each, server=renamed(each.server), client=renamed(each.client))
            for each in results.results
            if own in (each.server, each.client) and kept(each.server) and kept(each.client)
        ),
        earlier=(),
        placebo=(),
        selected=None,
    )


def release_steps(results: ResultSet, name: str, cases: Iterable[TestCase]) -> tuple[ReleaseStep, ...]:
    """All neighbouring releases that a campaign measured, the oldest first."""
    chosen, neighbours = list(cases), list(pairwise(releases_in(results, name)))
    return tuple(release_step(results, name, each, chosen, looks=len(neighbours)) for each in neighbours)


def release_step(
    results: ResultSet, name: str, releases: tuple[str, str], cases: Iterable[TestCase], looks: int = 1
) -> ReleaseStep:
    """Two releases of a campaign, the earlier one first; ``looks``: comparisons that share the level."""
    first, second = (of_release(results, name, each) for each in releases)
    found = campaigns(first, second, list(cases), looks=looks, by_case=True)
    changed = [each for each in (*found.pairs, *found.groups, *found.times) if each.change in WORSE | BETTER]
    mine = (_change(each, _only_role(found)) for each in changed)
    return ReleaseStep(*releases, tuple(each for each in mine if each is not None), found)


def _only_role(found: Comparison) -> Role | None:
    """The role of the release in all pairs; None if it has both."""
    roles = {Role.SERVER if pair.first.server == STAND_IN else Role.CLIENT for pair in found.pairs}
    return roles.pop() if len(roles) == 1 else None


def _change(change: PairChange, only: Role | None) -> ReleaseChange | None:
    """None for a change of a partner, or of all pairs together unless the release has only one role in them."""
    server, client, case = change.first.server, change.first.client, change.over or change.first.test_case
    if server == client == ALL and only is not None:
        return ReleaseChange(only, ALL, case, change)
    if STAND_IN not in (server, client):
        return None
    role = Role.SERVER if server == STAND_IN else Role.CLIENT
    return ReleaseChange(role, client if role is Role.SERVER else server, case, change)


def _named(name: str, release: str) -> str:
    return f"{name}{RELEASE_SIGN}{release}"
