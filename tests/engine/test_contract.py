"""What tests/fakes.py makes up holds for the real engine too."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import pytest
import requests.exceptions

from quicsat.docker.archive import pack
from quicsat.docker.client import QUICK, Daemon
from quicsat.docker.containers import (
    ContainerEvent,
    ContainerSpec,
    StartFailure,
    create_container,
    list_containers,
    remove_container,
    remove_containers,
)
from quicsat.docker.daemon_images import DaemonImages
from quicsat.model.errors import HarnessFault
from quicsat.model.evidence import Exit
from quicsat.model.outcomes import ErrorCode
from quicsat.model.units import MIB


def spec(daemon: Daemon, image: str, *command: str, name: str = "contract") -> ContainerSpec:
    return ContainerSpec(f"quicsat-{daemon.campaign}-{name}", image, command)


def test_a_container_is_removed_although_nobody_reads_its_archive_to_the_end(
    daemon: Daemon, image_ids: Mapping[str, str]
) -> None:
    """While its stream is open an engine keeps the container; a traceback may hold it, as when our disk is full."""
    with create_container(daemon, spec(daemon, image_ids["simulator"], "holder")) as container:
        container.put(pack({"large": bytes(64 * MIB)}))
        begin = time.monotonic()
        with pytest.raises(OSError, match="full") as kept, container.fetch("/large") as archive:
            next(archive)
            raise OSError("the disk is full")
        remove_container(daemon, container.id)
    assert kept.traceback
    assert time.monotonic() - begin < QUICK
    assert list_containers(daemon, daemon.campaign) == ()


def lived(end: Exit, begin: float) -> Exit:
    """``end`` without its life, which lies between ``begin`` and now: the engine runs on this machine."""
    assert end.life is not None
    assert begin <= end.life.begin <= end.life.end <= time.time()
    return replace(end, life=None)


def test_life_of_a_container(daemon: Daemon, image_ids: Mapping[str, str]) -> None:
    simulator = image_ids["simulator"]
    with create_container(daemon, spec(daemon, simulator, "holder")) as container:
        assert container.exit() == Exit(None)
        container.put(pack({"a/b": b"content"}))
        with container.fetch("/a") as archive:
            assert b"content" in b"".join(archive)
        with container.fetch("/no/such/path") as archive:
            assert list(archive) == []
    words, begin = ("bash", "-c", "trap 'exit 0' TERM; echo hello; sleep 60 & wait"), time.time()
    with create_container(daemon, spec(daemon, simulator, *words)) as container:
        events: SimpleQueue[ContainerEvent] = SimpleQueue()
        container.start()
        container.watch(events, lines=True)
        assert events.get(timeout=10) == ContainerEvent(container, "hello")
        assert container.running()
        assert container.pid > 1
        assert not container.wait(0)
        container.stop(grace=10)
        assert events.get(timeout=10) == ContainerEvent(container, None)
        assert lived(container.exit(), begin) == Exit(0, killed=True)
        assert not container.deaf
        assert b"hello" in container.output()
        container.signal("SIGTERM")  # has ended: nothing happens
    assert list_containers(daemon, daemon.campaign) == ()


def test_sigterm_does_not_reach_a_first_process_without_a_handler(daemon: Daemon, image_ids: Mapping[str, str]) -> None:
    with create_container(daemon, spec(daemon, image_ids["simulator"], "sleep", "60")) as container:
        container.start()
        container.terminate()
        assert container.deaf
        container.finish(0)
        assert container.exit().status == 128 + signal.SIGKILL


def test_exit_status_and_a_program_that_is_not_there(daemon: Daemon, image_ids: Mapping[str, str]) -> None:
    simulator, begin = image_ids["simulator"], time.time()
    with create_container(daemon, spec(daemon, simulator, "true")) as container:
        container.start()
        assert container.wait(10)
        container.stop(grace=1)
        assert lived(container.exit(), begin) == Exit(0)
    with create_container(daemon, spec(daemon, simulator, "/no/such/program")) as container:
        with pytest.raises(StartFailure, match="no such file"):
            container.start()
        assert container.exit() == Exit(None)


def test_refusals(daemon: Daemon, image_ids: Mapping[str, str]) -> None:
    with pytest.raises(HarnessFault) as caught, create_container(daemon, spec(daemon, "quicsat/none:none", "true")):
        pass
    assert caught.value.code == ErrorCode.IMAGE_MISSING
    assert DaemonImages(daemon).find("quicsat/none:none") is None
    remove_container(daemon, "no-such-container")
    one = spec(daemon, image_ids["simulator"], "true")
    with (
        create_container(daemon, one),
        pytest.raises(HarnessFault, match="already in use"),
        create_container(daemon, one),
    ):
        pass
    assert daemon.answers()
    assert remove_containers(daemon, daemon.campaign) == 0


def test_no_container_joins_the_network_of_one_that_has_ended(daemon: Daemon, image_ids: Mapping[str, str]) -> None:
    simulator = image_ids["simulator"]
    with create_container(daemon, spec(daemon, simulator, "true", name="holder")) as holder:
        holder.start()
        assert holder.wait(10)
        late = replace(spec(daemon, simulator, "true", name="late"), network=f"container:{holder.id}")
        with create_container(daemon, late) as container, pytest.raises(HarnessFault, match="non running container"):
            container.start()


def test_lines_are_told_once_though_their_stream_breaks_off(
    daemon: Daemon, image_ids: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("bash", "-c", "for n in 1 2 3 4 5 6; do echo $n; sleep 0.3; done")
    logs, asked = daemon.slow.logs, list[int]()

    def break_off(*arguments: Any, **options: Any) -> Any:
        asked.append(len(asked))
        if len(asked) == 1:
            raise requests.exceptions.ConnectionError("Connection refused")
        whole = logs(*arguments, **options)
        return itertools.islice(whole, 2) if len(asked) == 2 else whole

    monkeypatch.setattr(daemon.slow, "logs", break_off)
    with create_container(daemon, spec(daemon, image_ids["simulator"], *words)) as container:
        events: SimpleQueue[ContainerEvent] = SimpleQueue()
        container.start()
        container.watch(events, lines=True)
        assert container.wait(20)
        told = [events.get(timeout=10).line for _ in range(7)]
    assert [line for line in told if line is not None] == ["1", "2", "3", "4", "5", "6"]
    assert len(asked) >= 3
