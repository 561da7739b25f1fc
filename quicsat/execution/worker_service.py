"""The service of a cluster worker: it takes images, makes attempts and hands out their files.

It does not depend on how calls are transported; :mod:`quicsat.execution.cluster` does that.
"""

from __future__ import annotations

import secrets
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Full, Queue
from typing import IO

from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import remove_containers
from quicsat.docker.daemon_images import DaemonImages
from quicsat.docker.image_transfer import other_images
from quicsat.docker.processors import check_all
from quicsat.docker.ssh_tunnel import connected
from quicsat.execution.backend_for_clock import emulated_backend
from quicsat.execution.cpu_monitor import CpuMonitor
from quicsat.execution.host_facts import yielding
from quicsat.execution.local_worker import LocalWorker
from quicsat.execution.lock import exclusive
from quicsat.execution.observer import Observer
from quicsat.execution.reaper import start_reaper
from quicsat.execution.worker import Analyse, Outage
from quicsat.execution.worker_messages import CHUNK, AttemptReport, Registration, RemoteConfig
from quicsat.model.clock import Clock
from quicsat.model.errors import HarnessFault, Interrupted, MachineError
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.real_link import Host
from quicsat.model.results import Compliance
from quicsat.model.run import Run
from quicsat.model.stored_files import files_below
from quicsat.model.units import MIB
from quicsat.model.whole_file import scratch_directory

UPLOAD_PATIENCE = 60.0
"""Seconds for which a worker waits for the next chunk of an image."""
ROOM = 512 * MIB
"""Bytes that must be free on the disk of a worker for a run."""
END_PATIENCE = 30.0
"""Seconds to wait for attempts that are to end; then their containers are removed, here or by the reaper."""


@dataclass
class _Session:
    """The campaign that a worker serves."""

    config: RemoteConfig
    key: str
    """What the campaign opened it with."""
    daemon: Daemon
    folder: Path
    stack: ExitStack
    monitor: CpuMonitor
    stop: threading.Event = field(default_factory=threading.Event)
    uploads: dict[str, _Upload] = field(default_factory=dict)
    worker: LocalWorker | None = None
    archives: dict[int, IO[bytes]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    busy: int = 0
    """Attempts and checks under way."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def working(self) -> Iterator[LocalWorker]:
        """The worker, which is not closed before the block is left; raises Interrupted if the campaign is closing."""
        with self.changed:
            if self.stop.is_set():
                raise Interrupted
            if self.worker is None:
                raise HarnessFault(ErrorCode.WORKER_LOST, "the worker has not begun")
            self.busy += 1
        try:
            yield self.worker
        finally:
            with self.changed:
                self.busy -= 1
                self.changed.notify_all()

    def disk_outage(self) -> Outage | None:
        """An outage if the disk has no room for the files of a run."""
        full = shutil.disk_usage(self.folder).free < ROOM
        return Outage(f"the disk with {self.folder.parent} is full") if full else None

    def end(self) -> None:
        """Stop all attempts and checks, and wait until they have ended."""
        self.stop.set()
        with self.changed:
            self.changed.wait_for(lambda: not self.busy, END_PATIENCE)


class WorkerService:
    """Serves one campaign at a time beside the Docker daemon of a ``host``; safe to use from several threads.

    Its methods raise :class:`MachineError` with a message for the user, :class:`HarnessFault` if only one attempt is
    affected, and ``Interrupted`` if the campaign has been closed meanwhile.
    """

    def __init__(self, host: Host, analyse: Analyse, max_testbeds: int, *, measured: bool, name: str = "") -> None:
        """``measured``: admit a run beside others only if the CPUs have enough idle time."""
        self._host = host
        self._analyse = analyse
        self.max_testbeds = max_testbeds
        self._measured = measured
        self.name = name or socket.gethostname()
        self._lock = threading.RLock()
        self._session: _Session | None = None

    def open(self, config: RemoteConfig, key: str = "") -> Registration:
        """Reserve the daemon for a campaign; raises :class:`LockedError` if another campaign uses it.

        ``key`` identifies this session to :meth:`close`: a campaign that has lost the worker opens another one.
        """
        with self._lock:
            if self._session is not None:
                if self._session.config.campaign != config.campaign:
                    raise MachineError(f"it is in use by campaign {self._session.config.campaign}")
                self._end()
            with ExitStack() as stack:
                # a name of its own: the reaper of a worker that was killed may still be removing containers
                daemon = stack.enter_context(connected(self._host, f"{config.campaign}.{secrets.token_hex(3)}"))
                stack.enter_context(exclusive(daemon.id, f"campaign {config.campaign}, as a worker"))
                stack.enter_context(start_reaper((self._host,), daemon.campaign))
                remove_containers(daemon)
                if problems := other_images(config.run.images, daemon, self.name):
                    raise MachineError("\n".join(problems))
                folder = stack.enter_context(scratch_directory())
                monitor = stack.enter_context(CpuMonitor().watching())
                missing = tuple(
                    name for name, image in config.run.images.items() if DaemonImages(daemon).find(image.id) is None
                )
                self._session = _Session(config, key, daemon, folder, stack.pop_all(), monitor)
            return Registration(socket.gethostname(), self._testbeds(config, int(daemon.info["NCPU"])), missing)

    def _testbeds(self, config: RemoteConfig, cpus: int) -> int:
        if not self._measured:
            return self.max_testbeds
        fitting = cpus if config.run.clock is Clock.VIRTUAL else config.real_time_testbeds
        return min(self.max_testbeds, fitting)

    def upload(self, name: str, chunk: bytes) -> None:
        """Take the next chunk of a missing image; an empty chunk ends it."""
        session = self._present()
        image = session.config.run.images[name]
        load = session.uploads.setdefault(
            name, _Upload(lambda chunks: DaemonImages(session.daemon).load(chunks, image.reference))
        )
        load.put(chunk)
        if chunk:
            return
        del session.uploads[name]
        load.finish()
        if DaemonImages(session.daemon).find(image.id) is None:
            message = (
                f"{name}: its Docker daemon gives the image another digest; its image store may be of another kind"
            )
            raise MachineError(message)
        DaemonImages(session.daemon).tag(image.id, image.reference)

    def begin(self) -> None:
        """Get ready for attempts; all images have been uploaded.

        Raises :class:`MachineError` if the processor here can run one of them in no way.
        """
        session = self._present()
        config = session.config
        testbeds = self._testbeds(config, int(session.daemon.info["NCPU"]))
        check_all(config.run.images, session.daemon, config.run.clock, session.messages.append)
        session.worker = LocalWorker(
            session.daemon,
            emulated_backend(session.daemon, config.run),
            config.run,
            self._analyse,
            session.stop,
            session.monitor,
            Observer(session.messages.append),
            testbeds=testbeds,
            measured=self._measured,
        )

    def attempt(self, slot: int, run: Run, number: int) -> AttemptReport:
        """Make one attempt at ``run`` on the slot with index ``slot``; :meth:`fetch` hands out its files."""
        session = self._present()
        with session.working() as worker:
            directory = session.folder / str(slot)
            self.drop(slot)
            shutil.rmtree(directory, ignore_errors=True)
            result = worker.slots[slot].attempt(run, number, directory)
            with yielding():
                archive = pack({f"run/{path.relative_to(directory)}": path for path in files_below(directory)})
            shutil.rmtree(directory, ignore_errors=True)
            session.archives[slot] = archive
            messages, session.messages[:] = tuple(session.messages), []
            return AttemptReport(result, messages, archive.seek(0, 2))

    def fetch(self, slot: int, offset: int) -> bytes:
        """A chunk of the archive with the files of the last attempt on that slot; at most ``CHUNK`` bytes."""
        archive = self._present().archives[slot]
        archive.seek(offset)
        return archive.read(CHUNK)

    def drop(self, slot: int) -> None:
        """Delete that archive."""
        if archive := self._present().archives.pop(slot, None):
            archive.close()

    def check_compliance(
        self, slot: int, implementation: Implementation, roles: tuple[Role, ...]
    ) -> tuple[Compliance, ...]:
        """See :class:`quicsat.execution.worker.Slot`."""
        with self._present().working() as worker:
            return worker.slots[slot].check_compliance(implementation, roles)

    def reset(self, slot: int, alone: bool) -> Outage | None:
        """See :class:`quicsat.execution.worker.Slot`."""
        session = self._present()
        with session.working() as worker:
            return worker.slots[slot].reset(alone=alone) or session.disk_outage()

    def outage(self) -> Outage | None:
        """See :class:`quicsat.execution.worker.Worker`."""
        session = self._present()
        with session.working() as worker:
            return worker.outage() or session.disk_outage()

    def close(self, campaign: str = "", key: str = "") -> None:
        """Stop a campaign and remove everything that it has created; does nothing if there is none.

        Only ``campaign``, and only its session ``key``, if they are given.
        """
        session = self._session
        if session is None or campaign not in ("", session.config.campaign) or key not in ("", session.key):
            return
        session.stop.set()
        with self._lock:
            if self._session is session:
                self._end()

    def _end(self) -> None:
        session, self._session = self._session, None
        assert session is not None
        session.end()
        with session.stack:
            for archive in session.archives.values():
                archive.close()
            if session.worker is not None:
                session.worker.close()
            with suppress(HarnessFault):  # the next campaign removes them
                remove_containers(session.daemon, session.daemon.campaign)

    def _present(self) -> _Session:
        if self._session is None:
            raise HarnessFault(ErrorCode.WORKER_LOST, f"the worker {self.name} has been restarted")
        return self._session


class _Upload:
    """A stream that any thread writes in chunks, and that a background thread reads."""

    def __init__(self, read: Callable[[Iterator[bytes]], None]) -> None:
        self._chunks: Queue[bytes] = Queue(2)
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._take, args=(read,), daemon=True, name="upload")
        self._thread.start()

    def put(self, chunk: bytes) -> None:
        """Pass the next chunk to the reader; raises what the reader has raised."""
        while self._fault is None:
            with suppress(Full):
                return self._chunks.put(chunk, timeout=1)
        raise self._fault

    def finish(self) -> None:
        """Wait until the reader has ended; raises what it has raised."""
        self._thread.join(UPLOAD_PATIENCE)
        if self._fault is not None:
            raise self._fault

    def _take(self, read: Callable[[Iterator[bytes]], None]) -> None:
        try:
            read(iter(lambda: self._chunks.get(timeout=UPLOAD_PATIENCE), b""))
        except BaseException as fault:  # noqa: BLE001 - told by finish
            self._fault = fault
