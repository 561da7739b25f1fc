"""The Docker daemon: containers that clean up after themselves, and nothing of the library leaks out of here."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import IO, Any

import docker
import docker.errors
import requests.exceptions

from interop.errors import HarnessFault, MachineError
from interop.execution.spec import ContainerSpec as ContainerSpec
from interop.execution.spec import Realtime as Realtime
from interop.model import ErrorCode, Exit, ImageFacts
from interop.units import MIB

LABEL = "quicsat"
"""Label of all that this project creates at a daemon."""
CAMPAIGN_LABEL = "quicsat.campaign"
QUICK = 15
"""Seconds within which a daemon answers a question."""
SLOW = 120
"""Seconds within which a daemon creates, starts or archives (docker/docker-py#2266 saw a create take two minutes)."""
RETRY = 0.2
"""Seconds between two attempts to ask for the same."""
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
            with self._daemon.fault("start", self.spec.name):
                self._daemon.slow.start(self.id)
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

    def fetch(self, path: str) -> Iterator[bytes]:
        """The archive of ``path``, in chunks; empty if there is no such path."""
        with self._daemon.fault("copy from", self.spec.name):
            try:
                chunks, _ = self._daemon.slow.get_archive(self.id, path, chunk_size=MIB)
            except docker.errors.NotFound:
                return
            yield from chunks

    def running(self) -> bool:
        """Whether it runs, as ``inspect`` tells it."""
        return bool(self._state()["Running"])

    def exit(self) -> Exit:
        """How it ended, as ``inspect`` tells it."""
        state = self._state()
        status = None if state["Status"] == "created" else int(state["ExitCode"])
        return Exit(status, bool(state["OOMKilled"]), self._killed)

    def cpu_seconds(self) -> float:
        """CPU time that it has used so far; 0 once it has ended."""
        with self._daemon.fault("ask for the CPU time of", self.spec.name):
            stats = self._daemon.quick.stats(self.id, stream=False, one_shot=True)
        return float(stats["cpu_stats"]["cpu_usage"]["total_usage"]) / 1e9

    @property
    def pid(self) -> int:
        """Process id of its first process on the daemon's host."""
        return int(self._state()["Pid"])

    def signal(self, name: str) -> None:
        """Send a signal; nothing happens if it has ended already."""
        with self._daemon.fault("signal", self.spec.name), suppress(docker.errors.APIError):
            self._daemon.quick.kill(self.id, name)

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
        """Whether it ended within ``patience`` seconds."""
        deadline = time.monotonic() + patience
        while self.running():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def output(self) -> bytes:
        """What it wrote to its standard output and error; bounded by ``log_bytes``."""
        with self._daemon.fault("read the log of", self.spec.name):
            return bytes(self._daemon.slow.logs(self.id, stdout=True, stderr=True, timestamps=True))

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
        with self._daemon.fault("inspect", self.spec.name):
            return dict(self._daemon.quick.inspect_container(self.id)["State"])


class Daemon:
    """One Docker daemon, as seen by one campaign."""

    def __init__(self, url: str, campaign: str) -> None:
        """Connect; raises :class:`MachineError` if no daemon answers at ``url``."""
        self.url = url
        self.campaign = campaign
        try:
            self.quick = docker.APIClient(base_url=url, version="auto", timeout=QUICK, max_pool_size=32)
            version = self.quick.api_version
            self.slow = docker.APIClient(base_url=url, version=version, timeout=SLOW, max_pool_size=32)
            self.info: dict[str, Any] = self.quick.info()
        except LIBRARY_ERRORS as error:
            raise MachineError(
                f"No Docker daemon answers at {url}: {_first_line(error)}\n"
                "Start it (`make setup` does on a machine without one), or name another with DOCKER_HOST."
            ) from error
        self.api_version = str(version)

    @property
    def id(self) -> str:
        """Identity that the daemon gives itself."""
        return str(self.info["ID"])

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
            cpu_rt_period=spec.realtime.period if spec.realtime else None,
            cpu_rt_runtime=spec.realtime.runtime if spec.realtime else None,
        )
        created = self.slow.create_container(
            spec.image,
            command=list(spec.command) if spec.command is not None else None,
            name=spec.name,
            hostname=spec.hostname,
            environment=dict(spec.environment),
            labels={LABEL: "1", CAMPAIGN_LABEL: self.campaign},
            tty=spec.tty,
            stdin_open=spec.tty,
            host_config=host_config,
        )
        return str(created["Id"])

    def remove(self, name_or_id: str) -> None:
        """Remove a container and its volumes; patient with a removal that is under way (HTTP 409)."""
        deadline = time.monotonic() + QUICK
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

    def find(self, reference: str) -> ImageFacts | None:
        """The image at the daemon, or None."""
        with self.fault("inspect image", reference):
            try:
                image: dict[str, Any] = self.quick.inspect_image(reference)  # type: ignore[no-untyped-call]
            except docker.errors.ImageNotFound:
                return None
        labels = image["Config"].get("Labels") or {}
        return ImageFacts(
            reference=reference,
            id=image["Id"],
            digests=tuple(image.get("RepoDigests") or ()),
            created=image["Created"],
            size=image["Size"],
            version=labels.get("org.opencontainers.image.version", ""),
        )

    def pull(self, reference: str, patience: float) -> ImageFacts | None:
        """Pull from the image's registry; None if nothing came for ``patience`` seconds or it was refused."""
        client = docker.APIClient(base_url=self.url, version=self.api_version, timeout=max(1, round(patience)))
        try:
            for line in client.pull(reference, stream=True, decode=True):
                if "error" in line:
                    return None
        except LIBRARY_ERRORS:
            return None
        finally:
            client.close()
        return self.find(reference)

    def build(
        self, context: IO[bytes], tag: str, arguments: Mapping[str, str], on_line: Callable[[str], None]
    ) -> ImageFacts:
        """Build an uncompressed context archive; each line of output goes to ``on_line``.

        Raises :class:`HarnessFault` (image-missing) with the step's own message if a step fails.
        """
        with self.fault("build", tag):
            stream = self.slow.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                buildargs=dict(arguments),
                labels={"quicsat.image": "1"},
                network_mode="host",
                rm=True,
                forcerm=True,
                timeout=3600,
                decode=True,
            )
            for message in stream:
                if "error" in message:
                    raise HarnessFault(ErrorCode.IMAGE_MISSING, str(message["error"]).strip())
                for line in str(message.get("stream", "")).splitlines():
                    on_line(line)
        image = self.find(tag)
        if image is None:
            raise HarnessFault(ErrorCode.IMAGE_MISSING, f"the build of {tag} ended without an image")
        return image

    def import_rootfs(self, archive: IO[bytes], tag: str) -> ImageFacts:
        """Make an image of one layer from a root file system."""
        repository, _, name = tag.rpartition(":")
        with self.fault("import", tag):
            answer = self.slow.import_image_from_data(archive, repository=repository, tag=name)
            error = next((line for line in str(answer).splitlines() if "error" in json.loads(line)), None)
        image = self.find(tag)
        if image is None or error:
            raise HarnessFault(ErrorCode.IMAGE_MISSING, f"cannot import {tag}: {error}")
        return image

    def tag(self, image: str, tag: str) -> None:
        """Give an image another name."""
        repository, _, name = tag.rpartition(":")
        with self.fault("tag", tag):
            self.quick.tag(image, repository, name)


def _first_line(error: BaseException) -> str:
    text = getattr(error, "explanation", None) or str(error)
    return str(text).strip().splitlines()[0] if str(text).strip() else type(error).__name__
