"""Releases of an implementation in one campaign, and steps from one to the next."""

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from quicsat.model.implementation import Role
from quicsat.model.results import ResultSet
from quicsat.statistics.comparison import ALL, Change
from quicsat.statistics.releases import (
    STAND_IN,
    has_releases,
    implementations_with_releases,
    of_release,
    release_steps,
    releases_in,
)
from tests.results_builder import SAT, result_set, runs, virtual

RELEASES = ("0.9.0", "0.10.0", "0.11.0", "1.0.0")


def history(
    factors: Mapping[tuple[str, Role], float], members: int = 10, name: str = "quinn", partner: str = "picoquic"
) -> ResultSet:
    """Releases as servers and as clients of a partner, at 5 Mbit/s times a factor and a noise of one per cent."""
    own = [f"{name}@{release}" for release in RELEASES]
    found = []
    for role in Role:
        for end, release in zip(own, RELEASES, strict=True):
            noise = random.Random(f"{role} {release} {partner}")
            rates = [
                5e6 * factors.get((release, role), 1.0) * noise.lognormvariate(0, 0.01) for _ in range(members)
            ]  # fmt: skip
            server, client = (end, partner) if role is Role.SERVER else (partner, end)
            found += runs(*rates, server=server, client=client)
    results = result_set(found, servers=(*own, partner), clients=(*own, partner))
    known = tuple(
        replace(each, release=each.name.partition("@")[2]) for each in results.manifest.implementations
    )  # fmt: skip
    pairs = tuple(f"{end}/{partner}" for end in own) + tuple(f"{partner}/{end}" for end in own)
    manifest = replace(results.manifest, implementations=known, pairs=pairs)
    return virtual(replace(results, manifest=manifest))


def test_releases_are_in_the_order_of_their_versions() -> None:
    results = history({})
    assert implementations_with_releases(results) == ("quinn",)
    assert releases_in(results, "quinn") == RELEASES
    assert releases_in(results, "picoquic") == ()
    assert has_releases(results.manifest)
    one = replace(results.manifest.implementations[0], name="quinn@0.9.0:bbr")
    variants = (results.manifest.implementations[0], one, results.manifest.implementations[-1])
    assert not has_releases(replace(results.manifest, implementations=variants))
    alone = replace(results, results=tuple(each for each in results.results if "0.9.0" in each.server + each.client))
    assert releases_in(alone, "quinn") == ("0.9.0",)
    assert implementations_with_releases(alone) == ()


def test_a_release_alone_is_a_campaign_in_which_it_has_another_name() -> None:
    found = of_release(history({}), "quinn", "0.10.0")
    assert {(each.server, each.client) for each in found.results} == {(STAND_IN, "picoquic"), ("picoquic", STAND_IN)}
    assert len(found.results) == 20
    assert set(found.pairs) == {(STAND_IN, "picoquic"), ("picoquic", STAND_IN)}
    assert {each.name for each in found.manifest.implementations} == {STAND_IN, "picoquic"}


def test_equal_releases_have_no_step() -> None:
    steps = release_steps(history({}), "quinn", [SAT])
    assert [(step.before, step.after) for step in steps] == [
        ("0.9.0", "0.10.0"), ("0.10.0", "0.11.0"), ("0.11.0", "1.0.0"),
    ]  # fmt: skip
    assert [step.changes for step in steps] == [(), (), ()]


def test_a_step_is_found_in_its_role_and_at_its_release() -> None:
    slow = dict.fromkeys([(release, Role.SERVER) for release in RELEASES[2:]], 0.9)
    steps = release_steps(history(slow), "quinn", [SAT])
    assert [bool(step.changes) for step in steps] == [False, True, False]
    pair = next(each for each in steps[1].changes if each.partner == "picoquic")
    assert (pair.role, pair.test_case, pair.change.change) == (Role.SERVER, "sat", Change.SLOWER)
    assert pair.change.ratio == pytest.approx(-0.1, abs=0.02)
    assert all(each.role is Role.SERVER for each in steps[1].changes)


def test_a_change_in_all_pairs_counts_once_for_each_role() -> None:
    fast = {(release, role): 1.2 for release in RELEASES[3:] for role in Role}
    last = release_steps(history(fast), "quinn", [SAT])[-1]
    assert {(each.role, each.partner) for each in last.changes if each.partner != ALL} == {
        (Role.SERVER, "picoquic"), (Role.CLIENT, "picoquic"),
    }  # fmt: skip
    assert {each.change.change for each in last.changes} == {Change.FASTER}


def test_a_release_with_itself_as_the_partner_keeps_its_roles() -> None:
    results = history({}, name="picoquic")
    found = of_release(results, "picoquic", "0.9.0")
    assert {(each.server, each.client) for each in found.results} == {(STAND_IN, "picoquic"), ("picoquic", STAND_IN)}


def test_releases_in_one_role_show_what_all_their_pairs_show_together() -> None:
    slow = dict.fromkeys([(release, Role.SERVER) for release in RELEASES[2:]], 0.9)
    with_picoquic, with_quiche = (history(slow, 4, partner=partner) for partner in ("picoquic", "quiche"))
    runs = [each for results in (with_picoquic, with_quiche) for each in results.results]
    implementations = {each.name: each for one in (with_picoquic, with_quiche) for each in one.manifest.implementations}
    pairs = (*with_picoquic.manifest.pairs, *with_quiche.manifest.pairs)
    manifest = replace(
        with_picoquic.manifest,
        implementations=tuple(implementations.values()),
        clients=(*with_picoquic.manifest.clients, "quiche"),
        pairs=tuple(pair for pair in pairs if pair.startswith("quinn@")),
    )
    served = replace(
        with_picoquic, manifest=manifest, results=tuple(each for each in runs if each.server.startswith("quinn@"))
    )
    steps = release_steps(served, "quinn", [SAT])
    assert [[(each.role, each.partner) for each in step.changes] for step in steps] == [[], [(Role.SERVER, ALL)], []]
