"""What transfers take over QUIC, relative to TCP: a table of one campaign."""

import math
from collections.abc import Sequence

from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.link_format import pep_in_words
from quicsat.model.results import ResultSet
from quicsat.model.test_case import TestCase
from quicsat.model.units import byte_size
from quicsat.report.table import Column, Table, Unit, Value
from quicsat.statistics.intervals import Mean
from quicsat.statistics.parity import Ratio, overall, ratios

ALL = "all"
NO_TCP = (
    "No test case has runs over TCP and over QUIC with the same losses. Run both in one campaign, such as "
    "-s nginx-tcp quic-go -c curl picoquic."
)
RATIO_NOTE = (
    "QUIC / TCP is the time over QUIC divided by the time over TCP, from the client's first packet until the data had "
    "arrived. Below 1, QUIC is faster. Both runs have the same seed, and times are geometric means of n such pairs of "
    "runs."
)
REFERENCE_NOTE = (
    "The TCP pair is the one with the same client, or if there is none, the fastest one. Proxies split its connection."
)
INTERVAL_NOTE = (
    "Low and high bound the 95 % confidence interval of further repetitions. With fewer than 13 repetitions, or 3 of "
    "12 test cases together, they are the smallest and the largest ratio. Rows for all test cases give each of them "
    "the same weight."
)
FAILED_NOTE = (
    "Failed counts the repetitions in which TCP succeeded and QUIC did not, and TCP failed those in which TCP did not. "
    "Neither has a ratio."
)


def proxies(case: TestCase) -> str:
    """``PEP A``, or ``none``."""
    pep = case.link.pep if isinstance(case.link, EmulatedLink) else None
    return pep_in_words(pep) if pep else "none"


def by_server(found: Sequence[Ratio]) -> dict[tuple[str, str], list[Ratio]]:
    """The ratios of each server, with the proxies of TCP, in order of their first."""
    groups: dict[tuple[str, str], list[Ratio]] = {}
    for each in found:
        groups.setdefault((each.pair[0], proxies(each.case)), []).append(each)
    return groups


def parity(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """A row per QUIC pair, test case and size, and one per server; without runs over both, none and a note."""
    found = ratios(results, cases)
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("size"), Column("QUIC / TCP", Unit.RATIO, 2),
        Column("low", Unit.RATIO, 2), Column("high", Unit.RATIO, 2), Column("n", Unit.COUNT),
        Column("failed", Unit.COUNT), Column("TCP failed", Unit.COUNT),
        Column("QUIC", Unit.SECONDS, 2), Column("TCP", Unit.SECONDS, 2),
        Column("TCP pair"), Column("proxies"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (
            each.case.abbreviation, *each.pair, byte_size(each.size), *_numbers(each.mean), len(each.of_member),
            each.failed, each.failed_over_tcp, each.quic, each.tcp, ", ".join(each.reference), proxies(each.case),
        )
        for each in found
    ]  # fmt: skip
    servers = [(key, overall(mine), mine) for key, mine in by_server(found).items()]
    rows += [
        (
            ALL, server, ALL, ALL, *_numbers(mean), mean.count if mean else 0, sum(one.failed for one in mine),
            sum(one.failed_over_tcp for one in mine), None, None, ALL, behind,
        )
        for (server, behind), mean, mine in sorted(
            servers, key=lambda each: (each[0][1], each[1].value if each[1] else math.inf)
        )
    ]  # fmt: skip
    notes = (RATIO_NOTE, REFERENCE_NOTE, INTERVAL_NOTE, FAILED_NOTE) if rows else (NO_TCP,)
    return Table("parity", "Time over QUIC, relative to TCP", columns, tuple(rows), notes)


def _numbers(mean: Mean | None) -> tuple[float | None, float | None, float | None]:
    low, high = mean.ends or (None, None) if mean else (None, None)
    return mean.value if mean else None, low, high
