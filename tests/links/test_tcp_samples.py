"""Samples of tcp_info: where they are taken with both clocks, and that they end up beside the traces."""

from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.links.gateway_description import Layout
from quicsat.links.guest_description import describe
from quicsat.links.tcp_samples import COMMAND, sampled_part
from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.gateways import PEPS, VPNS
from quicsat.model.implementation import Protocol
from quicsat.model.run import Run
from tests.fakes import CASE, LINK, TCP_INFO, FakeEngine, endpoint, run_of
from tests.links.test_gateway_description import PROGRAMS, measure, part, request_of


def tcp_run(link: EmulatedLink = LINK) -> Run:
    return replace(run_of(case=replace(CASE, link=link)), protocol=Protocol.TCP)


def test_connections_over_the_link_are_sampled() -> None:
    assert sampled_part(tcp_run(), Layout()) == "server"
    assert sampled_part(tcp_run(), Layout(vpn=VPNS["openvpn"])) == "server"
    assert sampled_part(tcp_run(), Layout(pep=PEPS["A"])) == "server-gateway"
    assert sampled_part(run_of(), Layout()) is None


@pytest.mark.parametrize(("link", "place"), [(LINK, "server"), (replace(LINK, pep=PEPS["A"]), "server-gateway")])
def test_samples_in_real_time(link: EmulatedLink, place: str, tmp_path: Path) -> None:
    engine, run = FakeEngine(good=endpoint), tcp_run(link)
    measure(engine, run, folder=tmp_path)
    [sampler] = [life for life in engine.all_lives if life.command == COMMAND]
    holders = {part(life): life.id for life in engine.all_lives if life.command == ("holder",)}
    assert sampler.host_config["network_mode"] == f"container:{holders[f'{place}-holder']}"
    assert (sampler.host_config["cap_add"], sampler.host_config["cap_drop"]) == ([], ["ALL"])
    assert (tmp_path / "sim/tcp_info.csv").read_bytes() == TCP_INFO


def test_runs_over_quic_are_not_sampled(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    measure(engine, run_of(), folder=tmp_path)
    assert not [life for life in engine.all_lives if life.command == COMMAND]
    assert not (tmp_path / "sim/tcp_info.csv").exists()


def test_a_machine_is_told_whom_to_sample() -> None:
    split = [*describe(request_of(tcp_run(replace(LINK, pep=PEPS["A"]))), PROGRAMS)]
    assert ("sampled", "server-gateway") in split
    assert [value for key, value in split if key == "sampler.argument"] == [*COMMAND]
    assert ("sampler.collect", "/logs") in split
    assert ("sampler.capabilities", "0") in split
    assert ("sampled", "server") in describe(request_of(tcp_run()), PROGRAMS)
    assert not [key for key, _ in describe(request_of(run_of()), PROGRAMS) if key.startswith("sample")]
    exits = describe(request_of(tcp_run()), PROGRAMS, wait_for_ends=1.0)
    assert not [key for key, _ in exits if key.startswith("sample")]
