"""How TCP was set up: the columns of Table 3 of Kuhn et al., "QUIC: Opportunities and threats in SATCOM"."""

from collections.abc import Sequence

from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.gateways import PEPS, Pep
from quicsat.model.results import ResultSet
from quicsat.model.test_case import TestCase
from quicsat.report.table import Column, Table, Unit, Value

OWN, NONE = "own", "none"
"""Proxies with other values than those of a letter, and no proxies."""
CORE = {NONE: 212_992, "A": 212_992, "B": 212_992, "C": 33_554_432, "D": 33_554_432}
"""net.core.rmem_max and net.core.wmem_max in the paper, bytes: 0.2 and 33 MB."""
NOTE = (
    "Buffers are the largest of each connection, in bytes: those of the proxies, or without them, those of the "
    "endpoints. The initial window (ICWND), in packets, and the congestion control are those of the proxies' "
    "connection over the link. quicsat does not set core: it limits only programs that set the sizes of their buffers, "
    "which the proxies do not."
)


def proxies(_results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """A row per test case whose link sets TCP up; none and no note without such a test case."""
    columns = (
        Column("test case"), Column("proxies"), Column("send buffer (wmem)", Unit.COUNT),
        Column("receive buffer (rmem)", Unit.COUNT), Column("core in the paper", Unit.COUNT),
        Column("initial window", Unit.COUNT), Column("congestion control"),
    )  # fmt: skip
    rows = tuple(row for case in cases if isinstance(case.link, EmulatedLink) and (row := _row(case, case.link)))
    return Table("proxies", "TCP of proxies and endpoints", columns, rows, (NOTE,) if rows else ())


def _row(case: TestCase, link: EmulatedLink) -> tuple[Value, ...] | None:
    tcp = link.pep or link.endpoint_tcp
    if tcp is None:
        return None
    buffers = (tcp.send_buffer, tcp.receive_buffer)
    if not isinstance(tcp, Pep):
        return case.abbreviation, NONE, *buffers, CORE[NONE], None, None
    letter = next((letter for letter, each in PEPS.items() if each == tcp), OWN)
    return case.abbreviation, letter, *buffers, CORE.get(letter), tcp.initial_window, tcp.congestion_control
