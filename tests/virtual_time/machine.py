"""Boots the image of virtual time by itself: a client in the guest, or a program in the place of its kernel."""

import io
import re
import secrets
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import CAMPAIGN_LABEL, CONTRACT_CAPABILITIES, LABEL, remove_container
from quicsat.model.units import MIB

DIRECTORY = "/run/virtual-time"
BLOCK = 4096
SECOND = 1_000_000_000
START = 1_767_225_600
"""Each guest starts in 2026, so that its times are the same with each boot; in seconds since 1970."""
NUMBERS = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8,
    "NET_BIND_SERVICE": 10, "NET_ADMIN": 12, "NET_RAW": 13, "SYS_CHROOT": 18, "MKNOD": 27, "AUDIT_WRITE": 29,
    "SETFCAP": 31,
}  # fmt: skip
"""Docker's default capabilities and NET_ADMIN (linux/capability.h)."""
ENDPOINT = sum(1 << number for name, number in NUMBERS.items() if name not in CONTRACT_CAPABILITIES.dropped)
"""What an endpoint may do, as with containers."""
MEMORY = 384
OVERHEAD = 256
"""MiB of the guest, and of its container beyond that."""
PIDS = 512
COSTS = ("call", "clock", "send", "receive", "wait", "sent", "received", "handshake", "file")
"""What a program pays for, in the order of a description."""
NO_COSTS: Mapping[str, int] = MappingProxyType({})
OUTPUT = 8 * MIB
"""Bytes of the output disk. Engine and test read all of it after each guest, however little it holds."""


@dataclass(frozen=True)
class Ended:
    """What came of a guest."""

    status: int
    """Exit status of its kernel."""
    out_of_memory: bool
    console: str
    output: bytes
    """The whole output disk."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Content of the regular files of the archive on it."""
    members: tuple[tarfile.TarInfo, ...] = ()

    @property
    def result(self) -> dict[str, str]:
        """The guest's report."""
        return dict(line.split("=", 1) for line in self.files.get("result", b"").decode().splitlines())

    @property
    def said(self) -> str:
        """What the client has printed, without times."""
        lines = self.files["client.output"].decode(errors="replace").splitlines()
        return "\n".join(line.partition(" ")[2] for line in lines)


def description(
    script: str,
    *,
    patience: float = 60,
    limit: int = MIB,
    costs: Mapping[str, int] = NO_COSTS,
    latencies: tuple[int, Sequence[int]] | None = None,
) -> bytes:
    """A client that runs ``script`` for ``patience`` simulated seconds at most, and a simulator that does nothing.

    ``costs``: of the client, those of ``COSTS`` that are not 0, nanoseconds; ``latencies``: its seed and their values.
    """
    seed, values = latencies or (0, ())
    late = {"latency seed": str(seed), "latencies": " ".join(map(str, values))} if latencies else {}
    entries = [
        ("mode", "exits"),
        ("ready event", "ready"),
        *((f"{name} timeout", str(round(patience * SECOND))) for name in ("ready", "transfer")),
        ("output limit", str(limit)),
        ("client.address", "eth0 193.167.0.100/24"),
        ("simulator.address", "eth0 193.167.0.2/24"),
        ("client.costs", " ".join(str(costs.get(name, 0)) for name in COSTS)),
        *((f"client.{key}", value) for key, value in late.items()),
    ]
    for part, command in (("client", script), ("simulator", "exec sleep 1000000")):
        entries += [(f"{part}.argument", word) for word in ("bash", "-c", command)]
        entries += [
            (f"{part}.environment", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
            (f"{part}.directory", "/"),
            (f"{part}.hostname", part),
            (f"{part}.user", ""),
            (f"{part}.capabilities", str(ENDPOINT)),
            (f"{part}.memlock", str(64 * MIB)),
            (f"{part}.collect", "/logs"),
        ]
    return b"".join(f"{key}={value}".encode() + b"\0" for key, value in entries)


def disk(archive: bytes) -> bytes:
    """The archive, filled up to whole blocks."""
    return archive + bytes(-len(archive) % BLOCK)


def input_disk(script: str, **options: Any) -> bytes:
    """The input of a guest whose client runs ``script``."""
    with pack({"run": description(script, **options)}, ["client/logs"]) as archive:
        return disk(archive.read())


class Machines:
    """Guests with the root file system ``base`` for all parts, at one daemon."""

    def __init__(self, daemon: Daemon, image: str, volume: str) -> None:
        self.daemon = daemon
        self.image = image
        self.volume = volume

    @contextmanager
    def container(self, command: Sequence[str], *, entrypoint: str | None = None, **more: Any) -> Iterator[str]:
        """A container as a run has it: no network, no capability, roots that are read-only. Its id."""
        name = f"quicsat-{self.daemon.campaign}-{secrets.token_hex(4)}"
        settings: dict[str, Any] = {
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "mem_limit": (MEMORY + OVERHEAD) * MIB,
            "memswap_limit": (MEMORY + OVERHEAD) * MIB,
            "pids_limit": PIDS,
            "binds": [f"{self.volume}:/roots:ro"],
        }
        api = self.daemon.slow
        try:
            yield api.create_container(
                self.image,
                list(command),
                entrypoint=entrypoint,
                name=name,
                labels={LABEL: "1", CAMPAIGN_LABEL: self.daemon.campaign},
                host_config=api.create_host_config(**(settings | more)),
            )["Id"]
        finally:
            remove_container(self.daemon, name)

    @contextmanager
    def guest(self, files: Mapping[str, bytes], output: int = OUTPUT, parameters: Sequence[str] = ()) -> Iterator[str]:
        """The container of a guest that is not yet started, with files beside its disks. Its id."""
        roots = [f"ubd{number}rc=/roots/base.erofs" for number in (2, 3, 4)]
        kernel = [f"time-travel-start={START * SECOND}", "seed=1", *roots, *parameters]
        command = ["run", f"--memory={MEMORY}", f"--output={output}", "--", *kernel]
        with self.container(command) as identity:
            with pack({f"{DIRECTORY}/{name}": text for name, text in files.items()}) as archive:
                self.daemon.slow.put_archive(identity, "/", archive)
            yield identity

    def boot(
        self, script: str = "", *, archive: bytes | None = None, files: Mapping[str, bytes] | None = None,
        patience: float = 120, output: int = OUTPUT, parameters: Sequence[str] = (), **options: Any,
    ) -> Ended:  # fmt: skip
        """Run a guest to its end; it is killed, and has no status, after ``patience`` seconds of CPU time.

        ``archive``: its input disk, instead of that of ``script``; ``files``: beside the disks, by name;
        ``parameters``: of the kernel, beside those of every guest.
        """
        content = input_disk(script, **options) if archive is None else archive
        api = self.daemon.slow
        with self.guest({"input": content, **(files or {})}, output, parameters) as identity:
            api.start(identity)
            while (state := api.inspect_container(identity)["State"])["Running"]:
                if cpu_seconds(api.stats(identity, stream=False, one_shot=True)) > patience:
                    api.kill(identity)
                    break
                time.sleep(0.1)
            console = api.logs(identity).decode(errors="replace")
            status = -1 if state["Running"] else int(state["ExitCode"])
            chunks, _ = api.get_archive(identity, f"{DIRECTORY}/output")
            with closing(chunks), tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
                [member] = tar.getmembers()
                content = _content(tar, member)
        files, members = _archive(content)
        return Ended(status, bool(state["OOMKilled"]), console, content, files, members)

    def run_beside(self, script: str) -> tuple[int, str]:
        """What a shell does in the place of the guest's kernel: exit status and output."""
        api = self.daemon.slow
        with self.container(["-c", script], entrypoint="bash") as identity:
            api.start(identity)
            status = api.wait(identity, timeout=None)["StatusCode"]
            return status, api.logs(identity).decode(errors="replace")


def cpu_seconds(stats: Mapping[str, Any]) -> float:
    """What a container has used so far, however busy the machine is, by its statistics."""
    return float(stats["cpu_stats"]["cpu_usage"]["total_usage"]) / SECOND


def _archive(disk: bytes) -> tuple[dict[str, bytes], tuple[tarfile.TarInfo, ...]]:
    """Files and members of an output disk; raises ``tarfile.TarError`` if its archive is damaged."""
    if not disk.rstrip(b"\0"):
        return {}, ()
    with tarfile.open(fileobj=io.BytesIO(disk), mode="r:") as tar:
        members = tuple(tar)
        return {member.name: _content(tar, member) for member in members if member.isfile()}, members


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    return stream.read()


def answers(said: str) -> dict[str, str]:
    """What each attempt printed, by its name: the text between ``== NAME`` and the next such line."""
    parts = re.split(r"^== (.+?)\r?$", said, flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}
