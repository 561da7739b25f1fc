"""A connection to one Docker daemon: how it is reached, how long it is waited for, and what its errors become."""

import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import docker
import docker.errors
import docker.tls
import requests.exceptions
import urllib3

from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.outcomes import ErrorCode
from quicsat.model.real_link import Tls

T = TypeVar("T")

QUICK = 15
"""Seconds within which a daemon answers a query."""
SLOW = 120
"""Seconds within which a daemon creates, starts or archives (docker/docker-py#2266 saw a create take two minutes)."""
REMOTE_PATIENCE = 60
"""Seconds for which the daemon of another machine may be unreachable before a run is given up."""
OLDEST_API = "1.40"
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Go's names of architectures, which podman reports, and the kernel's, which Docker reports."""
LIBRARY_ERRORS = (docker.errors.DockerException, requests.exceptions.RequestException, OSError)


class Daemon:
    """A connection to one Docker daemon for one campaign; see ``containers`` and ``images`` for operations."""

    def __init__(self, url: str, campaign: str, tls: Tls | None = None, *, host: str = "", named_by: str = "") -> None:
        """Connect; raises :class:`MachineError` if no daemon answers at ``url``.

        ``host`` is the name of another machine on which the daemon runs, empty for this one: queries that fail because
        the daemon is unreachable are retried for ``REMOTE_PATIENCE`` seconds then. ``named_by``: see ``Host``.
        """
        self.url = url
        self.campaign = campaign
        self.host = host
        self.throttle: Callable[[], object] = lambda: None
        """Called between two chunks of an archive being fetched, which costs the engine much CPU time."""
        self.unreachable_at: float | None = None
        """When a query last failed because the daemon was unreachable, on the monotonic clock; None if none has."""
        self._tls = tls
        try:
            self.quick: Any = self.connect("auto", QUICK)
            version = str(self.quick.api_version)
            self.slow: Any = self.connect(version, SLOW)
            self.info: dict[str, Any] = self.quick.info()
            components = self.quick.version().get("Components") or ()
            self.podman = any("podman" in str(each.get("Name")).lower() for each in components)
        except LIBRARY_ERRORS as error:
            where = f"{host} ({url})" if host and not url.startswith("unix:") else host or url
            raise MachineError(f"No Docker daemon answers at {where}: {reason(error)}\n{_remedy(named_by)}") from error
        self.api_version = version
        if self.podman:
            self.info["ServerVersion"] = f"podman {self.info['ServerVersion']}"
            self.info["Architecture"] = ARCHITECTURES.get(self.info["Architecture"], self.info["Architecture"])
        if url.startswith("unix:") and not host:  # an engine confined to some CPUs reports only those
            self.info["NCPU"] = os.cpu_count() or self.info["NCPU"]

    def connect(self, version: str | None, timeout: float) -> Any:
        """Another client of the library for API ``version``; each of its requests fails after ``timeout`` seconds."""
        patience = max(1, round(timeout))
        if self._tls is None:
            return docker.APIClient(base_url=self.url, version=version, timeout=patience, max_pool_size=32)
        if version == "auto":
            version = str(self.connect(OLDEST_API, timeout).version(api_version=False)["ApiVersion"])
        certificate, key = self._tls.certificate, self._tls.key
        own = (str(certificate), str(key)) if certificate and key else None
        ca = str(self._tls.ca) if self._tls.ca else None
        tls = docker.tls.TLSConfig(client_cert=own, ca_cert=ca, verify=self._tls.verify)
        if not self._tls.verify:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # one per request
        client = docker.APIClient(base_url=self.url, version=version, timeout=patience, max_pool_size=32, tls=tls)
        client.trust_env = False  # REQUESTS_CA_BUNDLE must not replace this CA (psf/requests#3829), nor a proxy step in
        return client

    @property
    def id(self) -> str:
        """What tells it from other daemons: two daemons of one machine may have the same key, but not the same data."""
        own = f"podman {self.info['Name']}" if self.podman else self.info["ID"]  # podman's changes at each request
        return f"{own} {self.info['DockerRootDir']}"

    @property
    def where(self) -> str:
        """The machine on which it runs, or its address on this machine, for messages."""
        return self.host or self.url

    @property
    def limits_containers(self) -> bool:
        """Whether limits of memory and processes hold; podman claims so, but cgroup v1 needs root for it."""
        return self.info.get("CgroupVersion", "1") != "1" or not self.rootless

    @property
    def rootless(self) -> bool:
        """Whether it runs as an ordinary user: Docker says so, and the socket of podman belongs to that user."""
        if "name=rootless" in (self.info.get("SecurityOptions") or ()):
            return True
        local = self.url.startswith("unix:") and not self.host
        return self.podman and local and _owner(self.url.removeprefix("unix://")) > 0

    def check_rights(self) -> None:
        """Raise :class:`MachineError` without root access, which real time and real links need."""
        if self.rootless:
            raise MachineError(
                f"The engine at {self.where} runs without root access. Such an engine measures only in "
                "virtual time: ./run.py --clock virtual. Real time and real links need an engine with root access."
            )

    def system_time(self) -> float:
        """Time of the daemon's clock now, seconds since 1970."""
        with self.translate_errors("ask for the time of", self.where):
            return datetime.fromisoformat(self.quick.info()["SystemTime"]).timestamp()

    def answers(self) -> bool:
        """Whether the daemon answers a ping now."""
        try:
            return bool(self.quick.ping())
        except LIBRARY_ERRORS:
            return False

    @contextmanager
    def translate_errors(self, verb: str, what: str) -> Iterator[None]:
        """Raise errors of the library as :class:`HarnessFault`, "cannot ``verb`` ``what``: …"."""
        try:
            yield
        except LIBRARY_ERRORS as error:
            missing = isinstance(error, docker.errors.ImageNotFound)
            removed = isinstance(error, docker.errors.NotFound) and not missing
            hint = "; does another program remove containers at this daemon?" if removed else ""
            code = ErrorCode.IMAGE_MISSING if missing else ErrorCode.DAEMON_FAULT
            raise HarnessFault(code, f"cannot {verb} {what}: {first_line(error)}{hint}") from error

    def query(self, verb: str, what: str, call: Callable[[], T]) -> T:
        """The result of an idempotent ``call``; retried while the daemon of another machine is unreachable."""
        begin = time.monotonic()
        while True:
            try:
                with self.translate_errors(verb, what):
                    return call()
            except HarnessFault as fault:
                if isinstance(fault.__cause__, docker.errors.APIError):
                    raise
                now = self.unreachable_at = time.monotonic()
                if not self.host or now - begin > REMOTE_PATIENCE:
                    raise
                time.sleep(0.5)

    def subnets(self) -> dict[str, tuple[str, ...]]:
        """Subnets of the daemon's networks, by the name of the network."""
        with self.translate_errors("list", "networks"):
            networks = self.quick.networks()
        return {each["Name"]: tuple(one["Subnet"] for one in each["IPAM"].get("Config") or ()) for each in networks}


def _owner(path: str) -> int:
    """User id of a file's owner; 0 if it cannot be told."""
    try:
        return Path(path).stat().st_uid
    except OSError:
        return 0


def _remedy(named_by: str) -> str:
    if named_by:
        return f"Look at {named_by}, and at the machine itself."
    return "Start it (`make setup` does on a machine without one), or name another with DOCKER_HOST or a context."


def reason(error: BaseException) -> str:
    """Why a connection failed: what the system or TLS reported, without the wrappings of the libraries."""
    inner: BaseException | None = error
    while inner is not None:
        error = inner
        if isinstance(error, ssl.SSLError):
            return f"TLS: {getattr(error, 'verify_message', '') or error.reason or first_line(error)}"
        if type(error).__module__ == "builtins" and isinstance(error, OSError) and error.strerror:
            return error.strerror
        wrapped = (getattr(error, "reason", None), *error.args, error.__cause__, error.__context__)
        inner = next((each for each in wrapped if isinstance(each, BaseException)), None)
    return first_line(error)


def first_line(error: BaseException) -> str:
    """The first line of the library's message, or the name of the error's class if it has none."""
    text = getattr(error, "explanation", None) or str(error)
    return str(text).strip().splitlines()[0] if str(text).strip() else type(error).__name__
