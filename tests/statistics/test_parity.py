"""Ratios of times over QUIC and TCP: which runs are compared, and what becomes of many of them."""

import math
from dataclasses import replace

import pytest

from quicsat.model.gateways import PEPS
from quicsat.model.results import ResultSet
from quicsat.report.parity_table import parity
from quicsat.statistics.parity import overall, ratios, sizes
from tests.campaign_builder import PAGE
from tests.parity_builder import campaign, over, over_tcp
from tests.results_builder import SAT

SMALL = replace(SAT, name="small", abbreviation="SML", file_sizes=(100_000,))


def test_runs_of_the_same_member_are_compared() -> None:
    results = campaign([*over_tcp(4.0, 10.0, 8.0), *over("quic-go", "quic-go", 2.0, None, 16.0)])
    [_, found] = ratios(results, (SAT,))
    assert found.size == SAT.total_size
    assert found.reference == ("nginx-tcp", "curl")
    assert dict(found.of_member) == {1: 0.5, 3: 2.0}
    assert found.mean
    assert (found.quic, found.tcp, found.mean.value) == pytest.approx((math.sqrt(32), math.sqrt(32), 1.0))
    assert found.mean.ends == (0.5, 2.0)
    assert found.failed == 1


def test_other_seeds_are_not_compared() -> None:
    quic = [replace(run, evidence=replace(run.evidence, seed=99)) for run in over("quic-go", "quic-go", 2.0)]
    assert ratios(campaign([*over_tcp(4.0), *quic]), (SAT,)) == []


def test_the_reference_has_the_same_client_or_is_the_fastest() -> None:
    tcp = [*over_tcp(5.0, pair=("slow", "curl")), *over_tcp(4.0), *over_tcp(9.0, pair=("nginx-tcp", "chromium"))]
    found = ratios(campaign([*tcp, *over("a", "chromium", 3.0), *over("a", "curl", 3.0), *over("a", "b", 3.0)]), (SAT,))
    references = {each.pair[1]: each.reference for each in found}
    assert references == {
        "chromium": ("nginx-tcp", "chromium"), "curl": ("nginx-tcp", "curl"), "b": ("nginx-tcp", "curl")
    }  # fmt: skip


def behind(letter: str) -> ResultSet:
    """QUIC has runs without proxies only."""
    case = replace(SAT, name=f"sat-{letter}", abbreviation=f"S{letter}", link=replace(SAT.emulated, pep=PEPS[letter]))
    cases = {each.name: each for each in (SAT, case)}
    runs = [*over_tcp(4.0), *over_tcp(2.0, case=case), *over("quic-go", "quic-go", 3.0)]
    return campaign(runs, cases)


def test_quic_is_compared_with_tcp_behind_proxies_although_it_ran_without() -> None:
    results = behind("D")
    found = [each for each in ratios(results, results.manifest.test_cases) if each.size == SAT.total_size]
    assert {each.case.name: each.mean and each.mean.value for each in found} == pytest.approx(
        {"sat": 0.75, "sat-D": 1.5}
    )
    rows = [row for row in parity(results, results.manifest.test_cases).rows if row[0] == "all"]
    assert {(row[1], row[13]): row[4] for row in rows} == {
        ("quic-go", "PEP D"): pytest.approx(1.5), ("quic-go", "none"): pytest.approx(0.75)
    }  # fmt: skip


def test_sizes() -> None:
    assert sizes(replace(SAT, file_sizes=(10_000_000,))) == [2_000_000, 10_000_000]
    assert sizes(SMALL) == [100_000]
    assert sizes(PAGE) == [PAGE.total_size]


def test_one_number_per_server() -> None:
    cases = {each.name: each for each in (SAT, SMALL)}
    runs = [
        *over_tcp(4.0, 4.0), *over_tcp(2.0, 2.0, case=SMALL),
        *over("quic-go", "quic-go", 2.0, 4.0), *over("quic-go", "quic-go", 4.0, 2.0, case=SMALL),
    ]  # fmt: skip
    found = [each for each in ratios(campaign(runs, cases), [*cases.values()]) if each.size != 2_000_000]
    mean = overall(found)  # 0.5 and 2 in the first member, 1 and 1 in the second one
    assert mean
    assert mean.value == pytest.approx(1.0)
    assert mean.count == 2
    assert mean.ends is None
    [alone, *_] = found
    apart = overall([replace(alone, of_member={1: 2.0}), replace(alone, of_member={7: 8.0})])
    assert apart
    assert apart.value == pytest.approx(4.0)
    assert apart.ends is None
    assert overall([replace(alone, of_member={})]) is None


def test_a_member_may_lack_some_ratios_of_a_server() -> None:
    """Each other one has the same members; those of the last one are as far from its mean as the others are."""
    [alone, *_] = ratios(campaign([*over_tcp(4.0), *over("quic-go", "quic-go", 2.0)]), (SAT,))
    cases = [replace(SAT, name=f"sat-{number}") for number in range(20)]
    whole = [replace(alone, case=case, of_member={1: 1.0, 2: 1.1, 3: 1.21}) for case in cases]
    some = [*whole[1:], replace(whole[0], of_member={1: 2.0, 3: 2.42})]
    mean, lacking = overall(whole), overall(some)
    assert mean
    assert lacking
    assert (mean.count, lacking.count) == (3, 3)
    assert mean.ends == pytest.approx((1.1 ** (1 - 4.3027 / 3**0.5), 1.1 ** (1 + 4.3027 / 3**0.5)), rel=1e-4)
    assert lacking.value == pytest.approx(1.1 * 2**0.05)
    assert lacking.ends == pytest.approx([end * 2**0.05 for end in mean.ends])
    few = overall([*whole[3:], *(replace(each, of_member={1: 1.0, 3: 1.21}) for each in whole[:3])])
    assert few
    assert few.count == 2


def test_pairs_without_a_ratio_are_counted() -> None:
    results = campaign([*over_tcp(4.0, None, 4.0), *over("a", "a", None, 2.0, None), *over("b", "b", 2.0, 2.0, 2.0)])
    [_, found] = [each for each in ratios(results, (SAT,)) if each.pair[0] == "a"]
    assert (found.mean, found.quic, dict(found.of_member), found.failed, found.failed_over_tcp) == (
        None,
        None,
        {},
        2,
        1,
    )
    rows = [row for row in parity(results, (SAT,)).rows if row[0] == "all"]
    assert [(row[1], row[4] is None, *row[7:10]) for row in rows] == [("b", False, 2, 0, 2), ("a", True, 0, 4, 2)]


def test_without_tcp_one_sentence() -> None:
    table = parity(campaign(over("quic-go", "quic-go", 2.0)), (SAT,))
    assert table.rows == ()
    [note] = table.notes
    assert "over TCP and over QUIC" in note
