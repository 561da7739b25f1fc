"""What holds for containers at a real engine, and at the one that tests/fakes.py makes up."""

import time
from dataclasses import dataclass, replace
from queue import SimpleQueue

import pytest

from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
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

PATIENCE = 60.0


@dataclass(frozen=True)
class Programs:
    """Containers whose programs are known."""

    patient: ContainerSpec
    """Says hello, and ends with status 0 after SIGTERM."""
    short: ContainerSpec
    """Ends at once with status 3."""
    missing: ContainerSpec
    """There is no such program."""


def lived(end: Exit, begin: float) -> Exit:
    """``end`` without its life, which lies between ``begin`` and now if the engine tells it."""
    assert end.life is None or begin <= end.life.begin <= end.life.end <= time.time()
    return replace(end, life=None)


class ContainerContract:
    """Tests that need fixtures ``daemon`` and ``programs``."""

    def test_a_container_is_removed_although_nobody_reads_its_archive_to_the_end(
        self, daemon: Daemon, programs: Programs
    ) -> None:
        """While its stream is open an engine keeps the container; a traceback may hold it, as when our disk is full."""
        with create_container(daemon, programs.patient) as container:
            container.put(pack({"large": bytes(64 * MIB)}))
            with pytest.raises(OSError, match="full") as kept, container.fetch("/large") as archive:
                next(archive)
                raise OSError("the disk is full")
            remove_container(daemon, container.id)
        assert kept.traceback
        assert list_containers(daemon, daemon.campaign) == ()

    def test_life_of_a_container(self, daemon: Daemon, programs: Programs) -> None:
        begin = time.time()
        with create_container(daemon, programs.patient) as container:
            assert container.exit() == Exit(None)
            container.put(pack({"a/b": b"content"}))
            with container.fetch("/a") as archive:
                assert b"content" in b"".join(archive)
            with container.fetch("/no/such/path") as archive:
                assert list(archive) == []
            events: SimpleQueue[ContainerEvent] = SimpleQueue()
            container.start()
            container.watch(events, lines=True)
            assert events.get(timeout=PATIENCE) == ContainerEvent(container, "hello")
            assert container.running()
            assert container.pid > 1
            assert container.cpu_seconds() > 0
            assert not container.wait(0)
            container.stop(grace=PATIENCE)
            assert events.get(timeout=PATIENCE) == ContainerEvent(container, None)
            assert lived(container.exit(), begin) == Exit(0, killed=True)
            assert not container.deaf
            assert b"hello" in container.output()
            container.signal("SIGTERM")  # has ended: nothing happens
            container.stop(grace=PATIENCE)
        assert list_containers(daemon, daemon.campaign) == ()

    def test_a_program_that_ends_by_itself_and_one_that_is_not_there(self, daemon: Daemon, programs: Programs) -> None:
        begin = time.time()
        with create_container(daemon, programs.short) as container:
            container.start()
            assert container.wait(PATIENCE)
            container.stop(grace=1)
            assert lived(container.exit(), begin) == Exit(3)
        with create_container(daemon, programs.missing) as container:
            with pytest.raises(StartFailure, match="no such file"):
                container.start()
            assert container.exit() == Exit(None)

    def test_refusals(self, daemon: Daemon, programs: Programs) -> None:
        none = replace(programs.short, image="quicsat/none:none")
        with pytest.raises(HarnessFault) as caught, create_container(daemon, none):
            pass
        assert caught.value.code == ErrorCode.IMAGE_MISSING
        assert DaemonImages(daemon).find(none.image) is None
        remove_container(daemon, "no-such-container")
        with (
            create_container(daemon, programs.short),
            pytest.raises(HarnessFault, match="already in use"),
            create_container(daemon, programs.short),
        ):
            pass
        assert daemon.answers()
        assert remove_containers(daemon, daemon.campaign) == 0
