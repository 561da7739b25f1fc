"""What a worker does for a campaign that runs elsewhere: takes images, makes attempts, hands out what they left.

Nothing in here knows how questions and answers travel; that is the matter of :mod:`interop.execution.cluster`.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from queue import Full, Queue
from typing import IO

from interop import __version__
from interop.errors import HarnessFault, MachineError
from interop.execution.archive import pack
from interop.execution.daemon import Daemon
from interop.execution.distribution import other_images
from interop.execution.host import yielding
from interop.execution.load import Meter
from interop.execution.lock import exclusive
from interop.execution.place import Conditions, DaemonStation, Judge
from interop.execution.reaper import watched_over
from interop.execution.transfer import Interrupted
from interop.links.ns3 import Ns3Backend
from interop.model import Compliance, ErrorCode, Host, ImageFacts, Implementation, Role, Run, RunResult
from interop.units import MIB

PIECE = 4 * MIB
"""Bytes of an image or of a run's files that travel at once."""
UPLOAD_PATIENCE = 60.0
"""Seconds for which a worker waits for the next piece of an image."""
ROOM = 512 * MIB
"""Bytes that must be free for a run at a worker."""
END_PATIENCE = 30.0
"""Seconds for which attempts that are to end are waited for; what they have left is removed then, or by the reaper."""
CORE = Path(__file__).resolve().parents[1]


@cache
def edition() -> str:
    """Which version of the program this is, down to its last character: what two of them say must mean the same."""
    digest = hashlib.sha256()
    for path in sorted(CORE.rglob("*.py")):
        digest.update(path.relative_to(CORE).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{__version__} ({digest.hexdigest()[:12]})"


@dataclass(frozen=True)
class Terms:
    """What a campaign tells a worker before its first run."""

    campaign: str
    images: Mapping[str, ImageFacts]
    """By implementation name, and ``simulator``."""
    parameters: Mapping[str, str]
    qlog: bool
    keep_files: bool
    testbeds: int
    """Most that fit beside each other with the links of the campaign."""


@dataclass(frozen=True)
class Welcome:
    """What a worker answers to them."""

    host: str
    testbeds: int
    lacking: tuple[str, ...]
    """Names of the images that its daemon has not."""


@dataclass(frozen=True)
class Answer:
    """What an attempt came to."""

    result: RunResult
    said: tuple[str, ...]
    size: int
    """Bytes of the archive that holds the run's files."""


@dataclass
class _Session:
    """A campaign, as a worker sees it."""

    terms: Terms
    daemon: Daemon
    folder: Path
    stack: ExitStack
    meter: Meter
    stop: threading.Event = field(default_factory=threading.Event)
    uploads: dict[str, _Upload] = field(default_factory=dict)
    station: DaemonStation | None = None
    archives: dict[int, IO[bytes]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    busy: int = 0
    """Attempts and checks under way."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def working(self) -> Iterator[DaemonStation]:
        """The station, which stays until the block is left; raises Interrupted if the campaign is being closed."""
        with self.changed:
            if self.stop.is_set():
                raise Interrupted
            if self.station is None:
                raise HarnessFault(ErrorCode.WORKER_LOST, "the worker has not begun")
            self.busy += 1
        try:
            yield self.station
        finally:
            with self.changed:
                self.busy -= 1
                self.changed.notify_all()

    def full(self) -> str:
        """That there is no room for the files of a run; empty if there is."""
        return "" if shutil.disk_usage(self.folder).free >= ROOM else f"its disk, which is full ({self.folder.parent})"

    def end(self) -> None:
        """Stop what is under way, and wait until it has stopped."""
        self.stop.set()
        with self.changed:
            self.changed.wait_for(lambda: not self.busy, END_PATIENCE)


class Desk:
    """Serves one campaign at a time beside the Docker daemon at ``url``; safe to use from several threads.

    Its methods raise :class:`MachineError` with what a person should know, :class:`HarnessFault` where only an attempt
    is concerned, and ``Interrupted`` if the campaign has been closed in the meantime.
    """

    def __init__(self, url: str, judge: Judge, most: int, *, measured: bool, name: str = "") -> None:
        """``most`` testbeds; ``measured``: a run begins beside others only if the CPUs have time for it."""
        self._url = url
        self._judge = judge
        self._most = most
        self._measured = measured
        self.name = name or socket.gethostname()
        self._lock = threading.RLock()
        self._session: _Session | None = None

    def open(self, terms: Terms) -> Welcome:
        """Keep the daemon free for a campaign; raises :class:`LockedError` if another one uses it."""
        with self._lock:
            if self._session is not None:
                if self._session.terms.campaign != terms.campaign:
                    raise MachineError(f"it is in use by campaign {self._session.terms.campaign}")
                self._end()
            # a name of its own: the reaper of a worker that was killed may still sweep what that has left
            daemon = Daemon(self._url, f"{terms.campaign}.{secrets.token_hex(3)}")
            with ExitStack() as stack:
                stack.enter_context(exclusive(daemon.id, f"campaign {terms.campaign}, as a worker"))
                stack.enter_context(watched_over((Host("", self._url),), daemon.campaign))
                daemon.sweep()
                if problems := other_images(terms.images, daemon, self.name):
                    raise MachineError("\n".join(problems))
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_without_leftovers(daemon.id))))
                meter = stack.enter_context(Meter().watching())
                lacking = tuple(name for name, image in terms.images.items() if daemon.find(image.id) is None)
                self._session = _Session(terms, daemon, folder, stack.pop_all(), meter)
            return Welcome(socket.gethostname(), self._testbeds(terms), lacking)

    def _testbeds(self, terms: Terms) -> int:
        return min(self._most, terms.testbeds) if self._measured else self._most

    def upload(self, name: str, piece: bytes) -> None:
        """The next piece of an image that was lacking; an empty one is the last."""
        session = self._present()
        image = session.terms.images[name]
        load = session.uploads.setdefault(name, _Upload(lambda chunks: session.daemon.load(chunks, image.reference)))
        load.put(piece)
        if piece:
            return
        del session.uploads[name]
        load.finish()
        if session.daemon.find(image.id) is None:
            message = f"{name}: its Docker daemon knows the image by another digest; are its image stores alike?"
            raise MachineError(message)
        session.daemon.tag(image.id, image.reference)

    def begin(self) -> None:
        """Be ready for attempts: all images are here."""
        session = self._present()
        terms, testbeds = session.terms, self._testbeds(session.terms)
        conditions = Conditions(
            daemon=session.daemon,
            backend=Ns3Backend(session.daemon, terms.images["simulator"].id),
            images={name: image.id for name, image in terms.images.items()},
            stop=session.stop,
            parameters=terms.parameters,
            meter=session.meter,
            qlog=terms.qlog,
            keep_files=terms.keep_files,
        )
        session.station = DaemonStation(
            conditions, self._judge, session.said.append, testbeds=testbeds, measured=self._measured
        )

    def attempt(self, place: int, run: Run, number: int) -> Answer:
        """One attempt at ``run`` in the testbed of that number; its files wait to be fetched."""
        session = self._present()
        with session.working() as station:
            directory = session.folder / str(place)
            self.drop(place)
            shutil.rmtree(directory, ignore_errors=True)
            result = station.places[place].attempt(run, number, directory)
            with yielding():
                archive = pack({f"run/{path.relative_to(directory)}": path for path in _files(directory)})
            shutil.rmtree(directory, ignore_errors=True)
            session.archives[place] = archive
            said, session.said[:] = tuple(session.said), []
            return Answer(result, said, archive.seek(0, 2))

    def fetch(self, place: int, offset: int) -> bytes:
        """A piece of the archive that the last attempt in that testbed left."""
        archive = self._present().archives[place]
        archive.seek(offset)
        return archive.read(PIECE)

    def drop(self, place: int) -> None:
        """Forget the archive."""
        if archive := self._present().archives.pop(place, None):
            archive.close()

    def check_compliance(
        self, place: int, implementation: Implementation, roles: tuple[Role, ...]
    ) -> tuple[Compliance, ...]:
        """See :class:`interop.execution.place.Place`."""
        with self._present().working() as station:
            return station.places[place].check_compliance(implementation, roles)

    def clear(self, place: int, alone: bool) -> str:
        """See :class:`interop.execution.place.Place`."""
        session = self._present()
        with session.working() as station:
            return station.places[place].clear(alone=alone) or session.full()

    def silence(self) -> str:
        """See :class:`interop.execution.place.Station`."""
        session = self._present()
        with session.working() as station:
            return station.silence() or session.full()

    def close(self, campaign: str = "") -> None:
        """End what is under way of a campaign, or of any, and leave nothing of it; nothing happens if there is none."""
        session = self._session
        if session is None or (campaign and session.terms.campaign != campaign):
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
            if session.station is not None:
                session.station.close()
            with suppress(HarnessFault):  # the next start will
                session.daemon.sweep(session.daemon.campaign)

    def _present(self) -> _Session:
        if self._session is None:
            raise HarnessFault(ErrorCode.WORKER_LOST, f"the worker {self.name} has been started anew")
        return self._session


def _without_leftovers(daemon: str) -> str:
    """Beginning of the names of folders of workers at that daemon, of which killed ones may have left some."""
    prefix = f"quicsat-worker-{re.sub(r'[^A-Za-z0-9]', '-', daemon)}-"
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    return prefix


def _files(directory: Path) -> Iterator[Path]:
    """Regular files below it."""
    return (path for path in sorted(directory.rglob("*")) if path.is_file() and not path.is_symlink())


class _Upload:
    """A stream that is written in pieces from anywhere, and read by a thread of its own."""

    def __init__(self, read: Callable[[Iterator[bytes]], None]) -> None:
        self._pieces: Queue[bytes] = Queue(2)
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._take, args=(read,), daemon=True, name="upload")
        self._thread.start()

    def put(self, piece: bytes) -> None:
        """Hand on the next piece; raises what the reader has raised."""
        while self._fault is None:
            with suppress(Full):
                return self._pieces.put(piece, timeout=1)
        raise self._fault

    def finish(self) -> None:
        """Wait until all was read; raises what the reader has raised."""
        self._thread.join(UPLOAD_PATIENCE)
        if self._fault is not None:
            raise self._fault

    def _take(self, read: Callable[[Iterator[bytes]], None]) -> None:
        try:
            read(iter(lambda: self._pieces.get(timeout=UPLOAD_PATIENCE), b""))
        except BaseException as fault:  # noqa: BLE001 - told by finish
            self._fault = fault
