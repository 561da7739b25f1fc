"""How much a run may leave: enough for every test case, bounded for every endpoint; traces are never a pair's fault."""

from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.docker.archive import ArchiveLimits, list_files, pack, unpack
from quicsat.links import ns3_testbed
from quicsat.links.artefact_limits import download_limits, log_limits, run_limits, trace_limits
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.model.emulated_link import CrossTraffic
from quicsat.model.errors import HarnessFault
from quicsat.model.gateways import VPNS
from quicsat.model.outcomes import ErrorCode
from quicsat.model.units import MBPS, MIB
from tests.fakes import CASE, LINK, SIMULATOR, FakeEngine, connect, run_of

GIB = 1024 * MIB
FAST = LINK.with_both(rate=1000 * MBPS)
SLOW = LINK.with_forward(rate=20 * MBPS).with_back(rate=2 * MBPS)


def test_traces_of_a_large_file_over_a_fast_link_fit() -> None:
    large = replace(CASE, link=FAST, file_sizes=(2 * GIB,), timeout=120.0)
    both = 2 * 1.1 * large.total_size  # headers and acknowledgements
    assert trace_limits(large).total > 4 * both
    assert trace_limits(large).total == 32 * large.total_size


def test_traces_are_bounded_by_what_the_link_carries() -> None:
    slow = replace(CASE, link=SLOW, file_sizes=(2 * GIB,), timeout=120.0)
    carried = 22 * MBPS / 8 * 180
    assert trace_limits(slow).total == 2 * 4 * carried
    small = replace(slow, file_sizes=(MIB,))
    assert trace_limits(small).total == 2 * GIB
    assert trace_limits(replace(slow, link=replace(SLOW, vpn=VPNS["openvpn"]))).total == 4 * 4 * carried
    beside = replace(small, link=replace(FAST, scenario="tcp-cross-traffic", cross_traffic=CrossTraffic()))
    assert trace_limits(beside).total == 2 * 4 * 2000 * MBPS / 8 * (120 + 60)


def test_limits_of_endpoints_follow_the_files() -> None:
    large = replace(CASE, file_sizes=(2 * GIB,))
    assert log_limits(CASE).total == GIB
    assert log_limits(large).total == 16 * GIB
    assert download_limits(large).total == 4 * GIB + 64 * MIB
    assert download_limits(replace(CASE, file_sizes=(1,) * 30_000)).files == 60_000
    assert run_limits(large).total > trace_limits(large).total + 2 * log_limits(large).total + 2 * large.total_size


def test_downloads_beyond_the_limit_are_the_pairs_and_traces_ours() -> None:
    assert download_limits(CASE).fault is log_limits(CASE).fault is ErrorCode.ARTEFACT_LIMIT
    assert trace_limits(CASE).fault is run_limits(CASE).fault is ErrorCode.TRACE_LIMIT


@pytest.mark.parametrize("limits", [ArchiveLimits(total=4000), ArchiveLimits(files=1)])
def test_archives_name_the_fault_of_their_limits(limits: ArchiveLimits, tmp_path: Path) -> None:
    content = pack({"logs/a": bytes(5000), "logs/b": bytes(5000)}).read()
    for fault in (ErrorCode.ARTEFACT_LIMIT, ErrorCode.TRACE_LIMIT):
        told, target = replace(limits, fault=fault), tmp_path / fault
        target.mkdir()
        with pytest.raises(HarnessFault) as first:
            unpack([content], target, told)
        with pytest.raises(HarnessFault) as second:
            list_files([content], told)
        assert first.value.code == second.value.code == fault


def test_large_traces_of_the_simulator_are_our_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ns3_testbed, "trace_limits", lambda case: replace(trace_limits(case), total=1000))
    engine = FakeEngine()
    with Ns3Backend(connect(engine), SIMULATOR).open() as testbed, testbed.link(run_of()) as link:
        [life] = [life for life in engine.lives.values() if "SCENARIO" in life.environment]
        life.files["logs/trace_node_left.pcap"] = bytes(100_000)
        link._carries = True
        with pytest.raises(HarnessFault) as caught:
            link.collect(tmp_path)
    assert caught.value.code == ErrorCode.TRACE_LIMIT
