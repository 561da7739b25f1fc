"""Every implementation that can be built here, in each of its roles with quic-go, keeps the contract."""

from collections.abc import Callable

import pytest

from quicsat.cli.image_check import outcome_of
from quicsat.cli.image_findings import CLIENT_TRACE
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Outcome
from quicsat.traces.columns import Form
from quicsat.traces.key_log import key_lines
from quicsat.traces.trace import read
from quicsat.traces.tshark import tshark_fields
from tests.endpoints.conftest import OURS, Look

NO_KEY_LOG = {("kwik", Role.SERVER), ("nginx", Role.SERVER), ("haproxy", Role.SERVER), ("deno", Role.SERVER)}
"""Stacks without a way to get the keys."""
NO_QLOG = {"s2n-quic", "msquic", "kwik", "lsquic", "nginx", "haproxy", "chromium", "deno"}
"""Stacks without a qlog."""
FAULTY = {("qh3", Role.SERVER): pytest.mark.xfail(reason="the stack closes the connection of a file of 10 MiB")}
"""Stacks that break the contract themselves."""
CASES = [pytest.param(*each, id="-".join(each), marks=FAULTY.get(each, ())) for each in OURS]

pytestmark = pytest.mark.parametrize(("name", "role"), CASES)
Looker = Callable[[str, Role], Look]


def test_it_is_compliant_and_carries_files_over_ipv4_and_ipv6(look: Looker, name: str, role: Role) -> None:
    finding = look(name, role).finding
    assert finding.sound, finding.problems


def test_its_key_log_decrypts_its_packets(look: Looker, name: str, role: Role) -> None:
    assert look(name, role).finding.key_log is ((name, role) not in NO_KEY_LOG)


def test_tshark_accepts_its_key_log(look: Looker, name: str, role: Role) -> None:
    """It tells the fields of STREAM frames, which are encrypted."""
    directory = look(name, role).small
    keys, trace = key_lines(directory / role / "keys.log"), directory / CLIENT_TRACE
    packets = read(trace)
    frames = sorted({int(number) for number in packets.frame[packets.form == Form.ONE_RTT]})
    assert frames
    told = {field for fields in tshark_fields(trace, keys, frames).values() for field in fields}
    assert ("quic.stream.stream_id" in told) is ((name, role) not in NO_KEY_LOG)


def test_its_qlog_can_be_read(look: Looker, name: str, role: Role) -> None:
    assert look(name, role).finding.qlog is (name not in NO_QLOG)


def test_it_leaves_no_qlog_if_none_is_asked_for(look: Looker, name: str, role: Role) -> None:
    found = look(name, role)
    assert [outcome_of(run) for run in (found.without_qlog.small, found.without_qlog.large)] == [Outcome.SUCCEEDED] * 2
    assert found.left_without_qlog == ()
