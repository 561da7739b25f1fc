"""Containers: what they are created from, how they are started, watched and stopped, and how they are removed."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from queue import SimpleQueue
from signal import Signals
from typing import IO, Any

import docker.errors
import docker.types

from quicsat.docker.client import LIBRARY_ERRORS, QUICK, REMOTE_PATIENCE, SLOW, Daemon, first_line
from quicsat.docker.first_process import takes_signal
from quicsat.docker.resource_use import ControlGroup, control_group
from quicsat.model.emulated_link import Interval
from quicsat.model.errors import HarnessFault, LockedError
from quicsat.model.evidence import Exit
from quicsat.model.outcomes import ErrorCode
from quicsat.model.text import counted, escaped
from quicsat.model.units import MIB

LABEL = "quicsat"
"""Label of every container that this project creates; its value is random.

A container also has the labels of its image, so that an image can give this label to containers of other people. Such a
container has the value that its image has."""
CAMPAIGN_LABEL = "quicsat.campaign"
MACHINE_LABEL = "quicsat.machine"
"""Label of the machine whose campaign created a container; older versions did not set it."""
ABANDONED = 24 * 3600.0
"""Seconds after which a container of another machine has been left behind: no campaign needs so long for a run."""
RETRY = 0.2
"""Seconds between two attempts at the same request."""
CHUNK = 64 * 1024
"""Bytes of an archive that are fetched at once."""
PORTS = ("443/udp", "443/tcp")


@dataclass(frozen=True)
class Capabilities:
    """Linux capabilities added to, and dropped from, Docker's default set."""

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


CONTRACT_CAPABILITIES = Capabilities(("NET_ADMIN",), ("MKNOD", "AUDIT_WRITE", "SETFCAP"))
"""Of an endpoint with a network namespace of its own, where the endpoint contract lets it set routes and offloads."""
HOST_NETWORK_CAPABILITIES = Capabilities((), (*CONTRACT_CAPABILITIES.dropped, "NET_RAW"))
"""Of an endpoint in its host's network namespace, where it must neither configure nor capture anything."""
WEIGHT = 32768
"""CPU shares of containers in the path of packets: they take precedence over the engine and over this program."""


@dataclass(frozen=True)
class ContainerSpec:
    """Everything that a container is created from; no directory of the host is mounted into it."""

    name: str
    image: str
    command: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    network: str = "none"
    published: str | None = None
    """Host address at which UDP and TCP port 443 is published; empty for all addresses, None to publish nothing."""
    hostname: str | None = None
    hosts: tuple[tuple[str, str], ...] = ()
    """Entries of /etc/hosts, (name, address); a name may occur several times."""
    capabilities: tuple[str, ...] = ()
    dropped_capabilities: tuple[str, ...] = ()
    """``("ALL",)`` leaves only ``capabilities``."""
    sysctls: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    """Devices of the daemon's host, by path."""
    tty: bool = False
    host_pids: bool = False
    memory: int = 1024 * MIB
    pids: int = 512
    cpus: float | None = None
    """CPUs whose time it may use; None for all."""
    log_bytes: int = 2 * MIB
    memlock: int | None = None
    """RLIMIT_MEMLOCK in bytes; fails where the daemon lacks CAP_SYS_RESOURCE."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Where named volumes of the daemon are mounted: path by name; a path that ends with ``:ro`` is read-only."""
    weight: int | None = None
    """CPU shares under contention; a session or service of the machine has 1024."""


SIGKILLED = 128 + 9
OUT_OF_MEMORY_INSPECTIONS, INSPECTION_PAUSE = 5, 0.1
"""How often, and after how many seconds each time, an engine is asked whether it reports a lack of memory late."""
LATE_EVENT = 2.0
"""Seconds by which an engine may record that it sent a signal after the end that the signal brought."""
DISORDER = timedelta(seconds=1)
"""By how much the recorded end of a container may precede its start."""


def _perhaps_out_of_memory(state: Mapping[str, Any]) -> bool:
    """Whether SIGKILL ended it for no known reason."""
    return state["ExitCode"] == SIGKILLED and not state["OOMKilled"] and not state["Running"]


def lifetime(state: Mapping[str, Any]) -> Interval | None:
    """From start to end of a container, from its ``State`` in ``inspect``; None if either is missing.

    The engine writes the year 1 for what has not happened. For a program that ends at once, it may record the end a
    few milliseconds before the start.
    """
    try:
        begin, end = (datetime.fromisoformat(str(state[name])) for name in ("StartedAt", "FinishedAt"))
    except (KeyError, ValueError):
        return None
    if begin.tzinfo is None or end.tzinfo is None or begin.year <= 1970 or begin - end > DISORDER:
        return None
    return Interval(min(begin, end).timestamp(), max(begin, end).timestamp())


class StartFailure(Exception):  # noqa: N818 - what happened, not a class of errors
    """The daemon could not start a container because of what is in its image."""


@dataclass(frozen=True)
class ContainerEvent:
    """A line on a container's standard output, or the container's end (``line`` is None)."""

    container: Container
    line: str | None


class Container:
    """A container of this project; :func:`create_container` creates and removes it."""

    def __init__(self, daemon: Daemon, identity: str, spec: ContainerSpec) -> None:
        self._daemon = daemon
        self.id = identity
        self.spec = spec
        self.deaf = False
        """Whether SIGTERM did not reach it, so that waiting for its end is of no use."""
        self._killed = False

    def start(self) -> None:
        """Start it; raises :class:`StartFailure` if its own image is at fault, else :class:`HarnessFault`."""
        try:
            self._query("start", "start", slow=True)
        except HarnessFault as fault:
            state = self._state()
            # the engine's own codes for a command that is not there (127) or cannot be executed (126)
            if state["Status"] == "created" and state["ExitCode"] in (126, 127):
                raise StartFailure(str(state["Error"] or fault.reason)) from fault
            raise

    def put(self, archive: IO[bytes]) -> None:
        """Unpack an uncompressed archive at the container's root."""
        with self._daemon.translate_errors("copy into", self.spec.name), archive:
            self._daemon.slow.put_archive(self.id, "/", archive)

    @contextmanager
    def fetch(self, path: str) -> Iterator[Iterator[bytes]]:
        """The archive of ``path``, in chunks; empty if there is no such path.

        The stream is closed when the block is left: a daemon does not remove a container while its archive is read.
        """
        with self._daemon.translate_errors("copy from", self.spec.name):
            try:
                chunks, _ = self._daemon.slow.get_archive(self.id, path, chunk_size=CHUNK)
            except docker.errors.NotFound:
                chunks = (chunk for chunk in tuple[bytes, ...]())
        with closing(chunks):
            yield self._chunks(chunks)

    def _chunks(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        with self._daemon.translate_errors("copy from", self.spec.name):
            for chunk in chunks:
                yield chunk
                self._daemon.throttle()

    @contextmanager
    def export(self) -> Iterator[Iterator[bytes]]:
        """The archive of its whole root file system, in chunks; closed when the block is left."""
        with self._daemon.translate_errors("export", self.spec.name):
            chunks = self._daemon.slow.export(self.id, chunk_size=CHUNK)
        with closing(chunks):
            yield self._chunks(chunks)

    def running(self) -> bool:
        """Whether it runs, according to ``inspect``."""
        return bool(self._state()["Running"])

    def exit(self) -> Exit:
        """How it ended, according to ``inspect``; raises :class:`HarnessFault` if somebody else stopped it.

        An engine may report that memory ran out a moment after the end. Until then, it looks like any other SIGKILL.
        """
        state = self._state()
        for _ in range(OUT_OF_MEMORY_INSPECTIONS):
            if self._killed or not _perhaps_out_of_memory(state):
                break
            time.sleep(INSPECTION_PAUSE)
            state = self._state()
        status = None if state["Status"] == "created" else int(state["ExitCode"])
        if not self._killed and self._stopped_by_others(state):
            reason = f"container {self.spec.name} was stopped from outside, as when the Docker daemon restarts"
            raise HarnessFault(ErrorCode.DAEMON_FAULT, reason)
        return Exit(status, bool(state["OOMKilled"]), self._killed, lifetime(state))

    def _stopped_by_others(self, state: Mapping[str, Any]) -> bool:
        """Whether the daemon sent it a signal that quicsat did not request; False if the daemon cannot tell."""
        if state["Running"] or (life := lifetime(state)) is None:
            return False
        filters = {"container": self.id, "event": "kill"}
        with suppress(*LIBRARY_ERRORS, HarnessFault):
            until = life.end + LATE_EVENT  # the engine answers when that time is over
            if not state["ExitCode"]:  # runs that succeed do not wait for it
                until = max(life.end, min(until, self._daemon.system_time()))
            return any(self._daemon.quick.events(since=f"{life.begin:.6f}", until=f"{until:.6f}", filters=filters))
        return False

    def cpu_seconds(self) -> float:
        """CPU time used so far, seconds; 0 once it has ended.

        Its control group is read if that is on this machine, since a daemon takes up to a second to answer.
        """
        if self._group is not None:
            try:
                return self._group.cpu_seconds()
            except (OSError, LookupError, ValueError):
                return 0.0
        stats = self._query("ask for the CPU time of", "stats", stream=False, one_shot=True)
        return float(stats["cpu_stats"]["cpu_usage"]["total_usage"]) / 1e9

    @cached_property
    def _group(self) -> ControlGroup | None:
        """Its control group; None if that is not on this machine, or if it has ended."""
        return control_group(self.pid, self.id)

    @property
    def pid(self) -> int:
        """Process id of its first process on the daemon's host."""
        return int(self._state()["Pid"])

    def signal(self, name: str) -> None:
        """Send a signal; nothing happens if it has ended already."""
        try:
            self._query("signal", "kill", signal=name)
        except HarnessFault as fault:
            if not isinstance(fault.__cause__, docker.errors.APIError):
                raise

    def kill(self) -> None:
        """SIGKILL; its end then counts as requested."""
        self._killed = True
        self.signal("SIGKILL")

    def written(self) -> int:
        """Bytes of the files that it has written or changed, sparse ones at their full size; 0 if it has gone.

        With those in volumes that its image declares, if the daemon runs on this machine and lets them be read.
        """
        with suppress(*LIBRARY_ERRORS):
            for found in self._daemon.quick.containers(all=True, size=True, filters={"id": self.id}):
                volumes = [str(each["Source"]) for each in found.get("Mounts", ()) if each.get("Type") == "volume"]
                return int(found.get("SizeRw") or 0) + (0 if self._daemon.host else sum(map(_size_of, volumes)))
        return 0

    def stop(self, grace: float) -> None:
        """SIGTERM, and SIGKILL if it still runs after ``grace`` seconds."""
        self.terminate()
        self.finish(grace)

    def takes(self, signal: Signals) -> bool:
        """Whether a signal reaches its first process; True if that cannot be told from here, or if it has ended."""
        return takes_signal(self.pid, self.id, signal)

    def terminate(self) -> None:
        """SIGTERM, if it runs; :meth:`finish` has to follow."""
        if self.running():
            self._killed = True
            self.deaf = not self.takes(Signals.SIGTERM)
            self.signal("SIGTERM")

    def finish(self, grace: float) -> None:
        """SIGKILL if it still runs after ``grace`` seconds."""
        if self.wait(grace):
            return
        self.signal("SIGKILL")
        if not self.wait(QUICK):
            raise HarnessFault(ErrorCode.DAEMON_FAULT, f"container {self.spec.name} could not be killed")

    def wait(self, patience: float) -> bool:
        """Whether it ended within ``patience`` seconds. Polling costs CPU time, so it becomes less frequent."""
        begin = time.monotonic()
        while self.running():
            waited = time.monotonic() - begin
            if waited > patience:
                return False
            time.sleep(min(0.01 + waited / 4, 0.25))
        return True

    def output(self) -> bytes:
        """What it wrote to its standard output and error; bounded by ``log_bytes``."""
        return bytes(self._query("read the log of", "logs", slow=True, stdout=True, stderr=True, timestamps=True))

    def watch(self, events: SimpleQueue[ContainerEvent], *, lines: bool = False) -> None:
        """Put its end, and with ``lines`` each line of its output, into ``events`` from background threads.

        An event is only a hint, since the connection to the daemon may break: check :meth:`running` first.
        """
        for target in (self._await_end, self._follow) if lines else (self._await_end,):
            threading.Thread(target=target, args=(events,), daemon=True, name=self.spec.name).start()

    def _await_end(self, events: SimpleQueue[ContainerEvent]) -> None:
        with suppress(*LIBRARY_ERRORS):
            self._daemon.slow.wait(self.id, timeout=None)
        events.put(ContainerEvent(self, None))

    def _follow(self, events: SimpleQueue[ContainerEvent]) -> None:
        """Report each line once; a stream that is refused, or breaks off early, is requested again."""
        reported, deadline = 0, time.monotonic() + SLOW
        while time.monotonic() < deadline:
            with suppress(*LIBRARY_ERRORS):
                for number, line in enumerate(self._lines(), start=1):
                    deadline = time.monotonic() + SLOW
                    if number > reported:
                        reported = number
                        events.put(ContainerEvent(self, line.decode(errors="replace")))
            try:
                if not self._daemon.quick.inspect_container(self.id)["State"]["Running"]:
                    return
            except docker.errors.NotFound:
                return
            except LIBRARY_ERRORS:  # the daemon is unreachable
                pass
            time.sleep(RETRY)

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        for chunk in self._daemon.slow.logs(self.id, stream=True, follow=True, stdout=True, stderr=False):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines

    def _state(self) -> dict[str, Any]:
        return dict(self._query("inspect", "inspect_container")["State"])

    def _query(self, verb: str, method: str, *, slow: bool = False, **options: Any) -> Any:
        """The answer to an idempotent request about this container, by the name of the library's ``method``."""
        client = self._daemon.slow if slow else self._daemon.quick
        return self._daemon.query(verb, self.spec.name, lambda: getattr(client, method)(self.id, **options))


def _size_of(directory: str) -> int:
    """Bytes of the files in a directory, as far as they can be seen."""
    size = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            with suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - os.walk gives texts
    return size


@contextmanager
def create_container(daemon: Daemon, spec: ContainerSpec) -> Iterator[Container]:
    """A created container; it is removed with its volumes whenever the block is left, also by an exception."""
    try:
        with daemon.translate_errors("create", spec.name):
            identity = _create(daemon, spec)
        yield Container(daemon, identity, spec)
    finally:
        remove_container(daemon, spec.name)


def _create(daemon: Daemon, spec: ContainerSpec) -> str:
    host_config = daemon.slow.create_host_config(
        network_mode=spec.network,
        port_bindings=dict.fromkeys(PORTS, (spec.published, 443)) if spec.published is not None else None,
        extra_hosts=[f"{name}:{address}" for name, address in spec.hosts] or None,
        cap_add=list(spec.capabilities),
        cap_drop=list(spec.dropped_capabilities),
        security_opt=["no-new-privileges"],
        sysctls=dict(spec.sysctls),
        devices=[f"{path}:{path}:rwm" for path in spec.devices],
        pid_mode="host" if spec.host_pids else None,
        binds=[f"{name}:{path}" for name, path in spec.volumes.items()] or None,
        mem_limit=spec.memory,
        memswap_limit=spec.memory,
        pids_limit=spec.pids,
        **({"nano_cpus": round(spec.cpus * 10**9)} if spec.cpus is not None else {}),
        log_config=docker.types.LogConfig(
            type="json-file", config={"max-size": str(spec.log_bytes // 2), "max-file": "2"}
        ),
        ulimits=[docker.types.Ulimit(name="memlock", soft=spec.memlock, hard=spec.memlock)] if spec.memlock else [],
        cpu_shares=spec.weight,
        cgroup_parent="/" if spec.weight and _shares_one_cgroup(daemon) else None,
    )
    created = daemon.slow.create_container(
        spec.image,
        command=list(spec.command) if spec.command is not None else None,
        name=spec.name,
        hostname=spec.hostname,
        environment=dict(spec.environment),
        labels={LABEL: secrets.token_hex(8), CAMPAIGN_LABEL: daemon.campaign, MACHINE_LABEL: this_machine()},
        ports=[("443", "udp"), ("443", "tcp")] if spec.published is not None else None,
        tty=spec.tty,
        stdin_open=spec.tty,
        host_config=host_config,
    )
    return str(created["Id"])


def _shares_one_cgroup(daemon: Daemon) -> bool:
    """Whether all containers share the CPU weight of one group, as with cgroup v1 without systemd."""
    return (daemon.info.get("CgroupDriver"), daemon.info.get("CgroupVersion", "1")) == ("cgroupfs", "1")


def remove_container(daemon: Daemon, name_or_id: str) -> None:
    """Remove a container and its volumes; waits for a removal that is already in progress (HTTP 409)."""
    deadline = time.monotonic() + (REMOTE_PATIENCE if daemon.host else QUICK)
    while True:
        try:
            daemon.slow.remove_container(name_or_id, v=True, force=True)
            return
        except docker.errors.NotFound:
            return
        except LIBRARY_ERRORS as error:
            if time.monotonic() > deadline:
                reason = f"cannot remove {name_or_id}: {first_line(error)}"
                raise HarnessFault(ErrorCode.DAEMON_FAULT, reason) from error
            time.sleep(0.2)


@cache
def this_machine() -> str:
    """Host name, and a digest of /etc/machine-id, since machines of different people may have the same name."""
    try:
        identity = Path("/etc/machine-id").read_bytes()
    except OSError:
        identity = b""
    return f"{socket.gethostname()} {hashlib.sha256(identity).hexdigest()[:8]}"


def list_containers(daemon: Daemon, campaign: str | None = None) -> tuple[str, ...]:
    """Ids of the containers of ``campaign``, or of all campaigns; those that have ``LABEL`` from an image are none."""
    return tuple(each["Id"] for each in _listed(daemon, campaign))


def _listed(daemon: Daemon, campaign: str | None) -> list[dict[str, Any]]:
    label = LABEL if campaign is None else f"{CAMPAIGN_LABEL}={campaign}"
    with daemon.translate_errors("list", "containers"):
        found = daemon.quick.containers(all=True, filters={"label": label})
        labels = {image: _labels_of_image(daemon, image) for image in {each["ImageID"] for each in found}}
    return [each for each in found if _is_own(each["Labels"], labels[each["ImageID"]])]


def _labels_of_image(daemon: Daemon, image: str) -> Mapping[str, str] | None:
    """The labels of an image; None if it was removed."""
    try:
        return daemon.quick.inspect_image(image)["Config"].get("Labels") or {}
    except docker.errors.NotFound:
        return None


def _is_own(labels: Mapping[str, str], of_image: Mapping[str, str] | None) -> bool:
    """Whether ``LABEL`` is the container's own, and not its image's."""
    return of_image is not None and LABEL in labels and labels[LABEL] != of_image.get(LABEL)


def left_behind(daemon: Daemon) -> tuple[str, ...]:
    """Ids of the containers that campaigns have left behind; the caller holds the lock of ``daemon``.

    That lock belongs to this machine, so no campaign of this machine is under way meanwhile. Raises
    :class:`LockedError` if one of another machine may be, which has containers that are younger than ``ABANDONED``.
    """
    found = _listed(daemon, None)
    others = [each for each in found if each["Labels"].get(MACHINE_LABEL, this_machine()) != this_machine()]
    if others and max(each["Created"] for each in others) > daemon.system_time() - ABANDONED:
        names = {escaped(str(each["Labels"][MACHINE_LABEL]).partition(" ")[0], 80) for each in others}
        message = (
            f"A campaign of another machine ({', '.join(sorted(names))}) uses this Docker daemon, where it has "
            f"{counted(len(others), 'container')}. Try again when it has ended. If it was killed, remove them with "
            "`./run.py clean --all-machines`."
        )
        raise LockedError(message)
    return tuple(each["Id"] for each in found)


def remove_containers(
    daemon: Daemon, campaign: str | None = None, *, passes: int = 1, pause: float = 0.5, all_machines: bool = False
) -> int:
    """Remove the containers of ``campaign``, or those left behind, see ``left_behind``; returns how many were removed.

    It lists them every ``pause`` seconds until ``passes`` listings in a row are empty: a container that was being
    created when its process died may appear late (docker/docker-py#2266). ``all_machines``: of any campaign at all.
    """
    removed, empty = 0, 0
    while empty < passes:
        found = list_containers(daemon, campaign) if campaign or all_machines else left_behind(daemon)
        for identity in found:
            remove_container(daemon, identity)
        removed += len(found)
        empty = 0 if found else empty + 1
        if empty < passes:
            time.sleep(pause)
    return removed
