"""Cross traffic: when its two ends are started, what counts as its beginning, and that its end is our fault."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event as Flag

import pytest

from quicsat.docker.containers import ContainerEvent
from quicsat.links.ns3_testbed import Ns3Backend, SimulatedLink
from quicsat.model.emulated_link import CrossTraffic
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from tests.fakes import CASE, LINK, PATIENCE, REPORT, SIMULATOR, FakeEngine, Life, connect, run_of, simulate

SHARED = replace(LINK, scenario="tcp-cross-traffic", cross_traffic=CrossTraffic("reno"))


def carry(life: Life) -> int:
    """The simulator that carries packets at once, and the rest of its image."""
    if "SCENARIO" not in life.environment:
        return simulate(life)
    life.say('{"event": "running"}')
    life.terminated.wait()
    return 0


@contextmanager
def shared_link(engine: FakeEngine) -> Iterator[tuple[SimulatedLink, SimpleQueue[ContainerEvent]]]:
    """A link that has started, and its events."""
    events: SimpleQueue[ContainerEvent] = SimpleQueue()
    run = replace(run_of(), test_case=replace(CASE, link=SHARED))
    with Ns3Backend(connect(engine), SIMULATOR).open() as testbed, testbed.link(run) as link:
        link.start(events)
        yield link, events


def until_ready(link: SimulatedLink, events: SimpleQueue[ContainerEvent]) -> None:
    while not link.ready(events.get(timeout=PATIENCE)):
        assert link.running()


def test_the_flow_begins_once_packets_are_carried() -> None:
    engine = FakeEngine(simulator=carry)
    with shared_link(engine) as (link, events):
        until_ready(link, events)
        assert [name for name in engine.started() if name in ("receive", "sim", "send")] == ["receive", "sim", "send"]
        ends = {life.command[5]: life for life in engine.lives.values() if life.command[:1] == ("sh",)}
        assert ends["receive"].command[3:] == ("193.167.0.2", "tcp-stream", "receive", "--port=5001")
        assert ends["send"].command[3:] == (
            "193.167.100.2", "tcp-stream", "send", "--host=193.167.0.100", "--congestion-control=reno", "--port=5001",
        )  # fmt: skip
        assert ends["send"].host_config["network_mode"] != ends["receive"].host_config["network_mode"]
        assert ends["send"].host_config["cap_add"] == ["NET_ADMIN"]
        link.stop()
        assert all(life.ended.is_set() for life in ends.values())
    assert not engine.lives


def test_packets_alone_do_not_make_a_shared_link_ready() -> None:
    def silent(life: Life) -> int:
        if life.command[:1] == ("sh",):
            life.terminated.wait()
            return 0
        return carry(life)

    engine = FakeEngine(simulator=silent)
    with shared_link(engine) as (link, events):
        assert not link.ready(events.get(timeout=PATIENCE))


@pytest.mark.parametrize("end", ["send", "receive"])
def test_a_flow_that_ends_is_our_fault(end: str) -> None:
    def broken(life: Life) -> int:
        if end in life.command:
            life.say("tcp-stream: connect: no")
            return 2
        return carry(life)

    engine = FakeEngine(simulator=broken)
    with shared_link(engine) as (link, events):
        while not link._carries:
            link.ready(events.get(timeout=PATIENCE))
        [life] = [life for life in engine.lives.values() if end in life.command]
        assert life.ended.wait(PATIENCE)
        with pytest.raises(HarnessFault, match=r"of the cross traffic has ended: .*connect: no") as caught:
            link.running()
    assert caught.value.code == ErrorCode.SIMULATOR_FAILED


@pytest.mark.parametrize("end", ["send", "receive"])
def test_an_end_just_before_the_stop_is_told(end: str, tmp_path: Path) -> None:
    """After the last look at the flow, which comes every two seconds."""
    breaks = Flag()

    def late(life: Life) -> int:
        if end in life.command:
            life.say('{"event": "connected"}' if end == "send" else '{"event": "listening"}')
            breaks.wait(PATIENCE)
            life.say("tcp-stream: send: Connection reset by peer")
            return 1
        if "SCENARIO" in life.environment:
            life.files["logs/link.json"] = json.dumps(REPORT).encode()
        return carry(life)

    engine = FakeEngine(simulator=late)
    with shared_link(engine) as (link, events):
        until_ready(link, events)
        breaks.set()
        [life] = [life for life in engine.lives.values() if end in life.command]
        assert life.ended.wait(PATIENCE)
        link.stop()
        with pytest.raises(HarnessFault, match=r"(?s)of the cross traffic has ended: .*reset") as caught:
            link.collect(tmp_path)
    assert caught.value.code == ErrorCode.SIMULATOR_FAILED
    assert (tmp_path / "sim" / "link.json").is_file()
