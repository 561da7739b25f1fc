"""The Docker daemon: containers that clean up after themselves, and nothing of the library leaks out of here."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from queue import SimpleQueue
from typing import IO, Any, TypeVar

import docker
import docker.errors
import docker.tls
import requests.exceptions

from interop.errors import HarnessFault, MachineError
from interop.execution.shelf import Shelf
from interop.execution.spec import WEIGHT as WEIGHT
from interop.execution.spec import ContainerSpec as ContainerSpec
from interop.execution.spec import life
from interop.model import ErrorCode, Exit, Tls

T = TypeVar("T")

LABEL = "quicsat"
"""Label of all that this project creates at a daemon."""
CAMPAIGN_LABEL = "quicsat.campaign"
QUICK = 15
"""Seconds within which a daemon answers a question."""
SLOW = 120
"""Seconds within which a daemon creates, starts or archives (docker/docker-py#2266 saw a create take two minutes)."""
RETRY = 0.2
"""Seconds between two attempts to ask for the same."""
REMOTE_PATIENCE = 60
"""Seconds for which another machine's daemon may be out of reach before a run is given up."""
PIECE = 64 * 1024
"""Bytes of an archive that are fetched at once."""
OLDEST_API = "1.40"
PORTS = ("443/udp", "443/tcp")
LIBRARY_ERRORS = (docker.errors.DockerException, requests.exceptions.RequestException, OSError)


class StartFailure(Exception):  # noqa: N818 - what happened, not a class of errors
    """The daemon could not start a container because of what is in its image."""


@dataclass(frozen=True)
class Event:
    """Something that a container did: a line on its standard output, or its end (``line`` is None)."""

    container: Container
    line: str | None


class Container:
    """A container of ours; made and removed by :meth:`Daemon.container`."""

    def __init__(self, daemon: Daemon, identity: str, spec: ContainerSpec) -> None:
        self._daemon = daemon
        self.id = identity
        self.spec = spec
        self._killed = False

    def start(self) -> None:
        """Start it; raises :class:`StartFailure` if its own image is to blame, else :class:`HarnessFault`."""
        try:
            self._daemon.ask("start", self.spec.name, lambda: self._daemon.slow.start(self.id))
        except HarnessFault as fault:
            state = self._state()
            # the engine's own codes for a command that is not there (127) or cannot be executed (126)
            if state["Status"] == "created" and state["ExitCode"] in (126, 127):
                raise StartFailure(str(state["Error"] or fault.reason)) from fault
            raise

    def put(self, archive: IO[bytes]) -> None:
        """Unpack an uncompressed archive at the container's root."""
        with self._daemon.fault("copy into", self.spec.name), archive:
            self._daemon.slow.put_archive(self.id, "/", archive)

    @contextmanager
    def fetch(self, path: str) -> Iterator[Iterator[bytes]]:
        """The archive of ``path``, in chunks; empty if there is no such path.

        It is closed when the block is left: a daemon removes no container of which somebody still reads.
        """
        with self._daemon.fault("copy from", self.spec.name):
            try:
                chunks, _ = self._daemon.slow.get_archive(self.id, path, chunk_size=PIECE)
            except docker.errors.NotFound:
                chunks = (piece for piece in tuple[bytes, ...]())
        with closing(chunks):
            yield self._pieces(chunks)

    def _pieces(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        with self._daemon.fault("copy from", self.spec.name):
            for chunk in chunks:
                yield chunk
                self._daemon.give_way()

    def running(self) -> bool:
        """Whether it runs, as ``inspect`` tells it."""
        return bool(self._state()["Running"])

    def exit(self) -> Exit:
        """How it ended, as ``inspect`` tells it."""
        state = self._state()
        status = None if state["Status"] == "created" else int(state["ExitCode"])
        return Exit(status, bool(state["OOMKilled"]), self._killed, life(state))

    def cpu_seconds(self) -> float:
        """CPU time that it has used so far; 0 once it has ended."""
        stats = self._daemon.ask(
            "ask for the CPU time of",
            self.spec.name,
            lambda: self._daemon.quick.stats(self.id, stream=False, one_shot=True),
        )
        return float(stats["cpu_stats"]["cpu_usage"]["total_usage"]) / 1e9

    @property
    def pid(self) -> int:
        """Process id of its first process on the daemon's host."""
        return int(self._state()["Pid"])

    def signal(self, name: str) -> None:
        """Send a signal; nothing happens if it has ended already."""

        def kill() -> None:
            with suppress(docker.errors.APIError):
                self._daemon.quick.kill(self.id, name)

        self._daemon.ask("signal", self.spec.name, kill)

    def stop(self, grace: float) -> None:
        """SIGTERM, and SIGKILL if it still runs after ``grace`` seconds."""
        if not self.running():
            return
        self._killed = True
        for signal, patience in (("SIGTERM", grace), ("SIGKILL", QUICK)):
            self.signal(signal)
            if self.wait(patience):
                return
        raise HarnessFault(ErrorCode.DAEMON_FAULT, f"container {self.spec.name} could not be killed")

    def wait(self, patience: float) -> bool:
        """Whether it ended within ``patience`` seconds. Looks cost CPU time: the longer it takes, the fewer."""
        begin = time.monotonic()
        while self.running():
            waited = time.monotonic() - begin
            if waited > patience:
                return False
            time.sleep(min(0.01 + waited / 4, 0.25))
        return True

    def output(self) -> bytes:
        """What it wrote to its standard output and error; bounded by ``log_bytes``."""
        return bytes(
            self._daemon.ask(
                "read the log of",
                self.spec.name,
                lambda: self._daemon.slow.logs(self.id, stdout=True, stderr=True, timestamps=True),
            )
        )

    def watch(self, events: SimpleQueue[Event], *, lines: bool = False) -> None:
        """Put its end, and with ``lines`` each line of its output, into ``events`` from threads of their own.

        An event is a hint: the daemon's connection may break, so look at :meth:`running` before believing it.
        """
        for target in (self._await_end, self._follow) if lines else (self._await_end,):
            threading.Thread(target=target, args=(events,), daemon=True, name=self.spec.name).start()

    def _await_end(self, events: SimpleQueue[Event]) -> None:
        with suppress(*LIBRARY_ERRORS):
            self._daemon.slow.wait(self.id, timeout=None)
        events.put(Event(self, None))

    def _follow(self, events: SimpleQueue[Event]) -> None:
        """Its lines, each once; a stream that is refused or breaks off while it runs is asked for again."""
        told, deadline = 0, time.monotonic() + SLOW
        while time.monotonic() < deadline:
            with suppress(*LIBRARY_ERRORS):
                for number, line in enumerate(self._lines(), start=1):
                    deadline = time.monotonic() + SLOW
                    if number > told:
                        told = number
                        events.put(Event(self, line.decode(errors="replace")))
            try:
                if not self._daemon.quick.inspect_container(self.id)["State"]["Running"]:
                    return
            except docker.errors.NotFound:
                return
            except LIBRARY_ERRORS:  # the daemon is away
                pass
            time.sleep(RETRY)

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        for chunk in self._daemon.slow.logs(self.id, stream=True, follow=True, stdout=True, stderr=False):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines

    def _state(self) -> dict[str, Any]:
        inspect = self._daemon.quick.inspect_container
        return dict(self._daemon.ask("inspect", self.spec.name, lambda: inspect(self.id))["State"])


class Daemon(Shelf):
    """One Docker daemon, as seen by one campaign."""

    def __init__(self, url: str, campaign: str, tls: Tls | None = None, *, host: str = "") -> None:
        """Connect; raises :class:`MachineError` if no daemon answers at ``url``.

        ``host`` is the name of the other machine on which it runs, if so: its questions are patient then.
        """
        self.url = url
        self.campaign = campaign
        self.host = host
        self.give_way: Callable[[], object] = lambda: None
        """Called between two pieces of an archive that is fetched, which is much work for an engine."""
        self.out_of_reach: float | None = None
        """When it could not be reached the last time, on the monotonic clock; None if it always could."""
        self._tls = tls
        try:
            self.quick = self.client("auto", QUICK)
            version = self.quick.api_version
            self.slow = self.client(version, SLOW)
            self.info: dict[str, Any] = self.quick.info()
        except LIBRARY_ERRORS as error:
            raise MachineError(
                f"No Docker daemon answers at {host or url}: {_first_line(error)}\n"
                + (
                    "Look at its entry in the hosts file, and at the machine itself."
                    if host
                    else "Start it (`make setup` does on a machine without one), or name another with DOCKER_HOST."
                )
            ) from error
        self.api_version = str(version)
        if url.startswith("unix:"):  # an engine that keeps to some of the CPUs tells of these alone
            self.info["NCPU"] = os.cpu_count() or self.info["NCPU"]

    def client(self, version: str | None, timeout: float) -> docker.APIClient:
        patience = max(1, round(timeout))
        if self._tls is None:
            return docker.APIClient(base_url=self.url, version=version, timeout=patience, max_pool_size=32)
        if version == "auto":
            version = str(self.client(OLDEST_API, timeout).version(api_version=False)["ApiVersion"])
        own = (str(self._tls.certificate), str(self._tls.key))
        tls = docker.tls.TLSConfig(client_cert=own, ca_cert=str(self._tls.ca), verify=True)
        client = docker.APIClient(base_url=self.url, version=version, timeout=patience, max_pool_size=32, tls=tls)
        client.trust_env = False  # REQUESTS_CA_BUNDLE must not replace this CA (psf/requests#3829), nor a proxy step in
        return client

    @property
    def id(self) -> str:
        """Identity that the daemon gives itself."""
        return str(self.info["ID"])

    def system_time(self) -> float:
        """What its clock says now, seconds since 1970."""
        with self.fault("ask for the time of", self.host or self.url):
            return datetime.fromisoformat(self.quick.info()["SystemTime"]).timestamp()

    def answers(self) -> bool:
        """Whether it answers now."""
        try:
            return bool(self.quick.ping())
        except LIBRARY_ERRORS:
            return False

    @contextmanager
    def fault(self, verb: str, what: str) -> Iterator[None]:
        """Turn the library's errors into a :class:`HarnessFault`."""
        try:
            yield
        except docker.errors.ImageNotFound as error:
            raise HarnessFault(ErrorCode.IMAGE_MISSING, f"cannot {verb} {what}: {_first_line(error)}") from error
        except docker.errors.NotFound as error:
            reason = f"cannot {verb} {what}: {_first_line(error)}; does somebody else clean up at this daemon?"
            raise HarnessFault(ErrorCode.DAEMON_FAULT, reason) from error
        except LIBRARY_ERRORS as error:
            raise HarnessFault(ErrorCode.DAEMON_FAULT, f"cannot {verb} {what}: {_first_line(error)}") from error

    def ask(self, verb: str, what: str, call: Callable[[], T]) -> T:
        """The answer to a call that may be made twice: of another machine it is waited for, however it is reached."""
        begin = time.monotonic()
        while True:
            try:
                with self.fault(verb, what):
                    return call()
            except HarnessFault as fault:
                if isinstance(fault.__cause__, docker.errors.APIError):
                    raise
                now = self.out_of_reach = time.monotonic()
                if not self.host or now - begin > REMOTE_PATIENCE:
                    raise
                time.sleep(0.5)

    @contextmanager
    def container(self, spec: ContainerSpec) -> Iterator[Container]:
        """A created container, removed with its volumes when the block is left, however it is left."""
        try:
            with self.fault("create", spec.name):
                identity = self._create(spec)
            yield Container(self, identity, spec)
        finally:
            self.remove(spec.name)

    def _create(self, spec: ContainerSpec) -> str:
        host_config = self.slow.create_host_config(
            network_mode=spec.network,
            port_bindings=dict.fromkeys(PORTS, (spec.published, 443)) if spec.published is not None else None,
            extra_hosts=[f"{name}:{address}" for name, address in spec.hosts] or None,
            cap_add=list(spec.capabilities),
            cap_drop=list(spec.without),
            security_opt=["no-new-privileges"],
            sysctls=dict(spec.sysctls),
            pid_mode="host" if spec.host_pids else None,
            mem_limit=spec.memory,
            memswap_limit=spec.memory,
            pids_limit=spec.pids,
            log_config=docker.types.LogConfig(
                type="json-file", config={"max-size": str(spec.log_bytes // 2), "max-file": "2"}
            ),
            ulimits=[docker.types.Ulimit(name="memlock", soft=spec.memlock, hard=spec.memlock)] if spec.memlock else [],
            cpu_shares=spec.weight,
            cgroup_parent="/" if spec.weight and self._shares_one_group() else None,
        )
        created = self.slow.create_container(
            spec.image,
            command=list(spec.command) if spec.command is not None else None,
            name=spec.name,
            hostname=spec.hostname,
            environment=dict(spec.environment),
            labels={LABEL: "1", CAMPAIGN_LABEL: self.campaign},
            ports=[("443", "udp"), ("443", "tcp")] if spec.published is not None else None,
            tty=spec.tty,
            stdin_open=spec.tty,
            host_config=host_config,
        )
        return str(created["Id"])

    def _shares_one_group(self) -> bool:
        """Whether all containers together have the shares of one session, as cgroup v1 without systemd has it."""
        return (self.info.get("CgroupDriver"), self.info.get("CgroupVersion", "1")) == ("cgroupfs", "1")

    def remove(self, name_or_id: str) -> None:
        """Remove a container and its volumes; patient with a removal that is under way (HTTP 409)."""
        deadline = time.monotonic() + (REMOTE_PATIENCE if self.host else QUICK)
        while True:
            try:
                self.slow.remove_container(name_or_id, v=True, force=True)
                return
            except docker.errors.NotFound:
                return
            except LIBRARY_ERRORS as error:
                if time.monotonic() > deadline:
                    reason = f"cannot remove {name_or_id}: {_first_line(error)}"
                    raise HarnessFault(ErrorCode.DAEMON_FAULT, reason) from error
                time.sleep(0.2)

    def leftovers(self, campaign: str | None = None) -> tuple[str, ...]:
        """Ids of the containers of ``campaign``, or of all that bear our label."""
        label = LABEL if campaign is None else f"{CAMPAIGN_LABEL}={campaign}"
        with self.fault("list", "containers"):
            found = self.quick.containers(all=True, filters={"label": label})
        return tuple(container["Id"] for container in found)

    def sweep(self, campaign: str | None = None, *, passes: int = 1, pause: float = 0.5) -> int:
        """Remove what :meth:`leftovers` finds until ``passes`` looks in a row find nothing; how many were removed.

        A create that was under way when its caller died may appear late (docker/docker-py#2266), hence the passes.
        """
        removed, empty = 0, 0
        while empty < passes:
            found = self.leftovers(campaign)
            for identity in found:
                self.remove(identity)
            removed += len(found)
            empty = 0 if found else empty + 1
            if empty < passes:
                time.sleep(pause)
        return removed

    def subnets(self) -> dict[str, tuple[str, ...]]:
        """Subnets of the daemon's networks, by the name of the network."""
        with self.fault("list", "networks"):
            networks = self.quick.networks()
        return {each["Name"]: tuple(one["Subnet"] for one in each["IPAM"].get("Config") or ()) for each in networks}


def _first_line(error: BaseException) -> str:
    text = getattr(error, "explanation", None) or str(error)
    return str(text).strip().splitlines()[0] if str(text).strip() else type(error).__name__
