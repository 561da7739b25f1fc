"""Checks of ``./run.py doctor``: what a campaign needs, whether the machine has it, and a remedy if not."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from ipaddress import ip_network
from pathlib import Path

from quicsat.docker.client import Daemon
from quicsat.docker.containers import LABEL, list_containers
from quicsat.docker.daemon_images import DaemonImages
from quicsat.docker.processors import foreign, is_native
from quicsat.docker.ssh_tunnel import connected
from quicsat.links.ns3_testbed import probe
from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.real_link import Host
from quicsat.model.text import counted
from quicsat.model.units import byte_size, seconds
from quicsat.traces.tshark import tshark_version

OLDEST_API = (1, 40)
LOCAL_SOCKET = "unix:///var/run/docker.sock"
CONTRACT_NETWORKS = (ip_network("193.167.0.0/16"), ip_network("fd00:cafe:cafe::/48"))
CLOCK_MARGIN = 0.05
"""Seconds by which the clock of a host may be wrong without a warning."""
ROOM = 5 * 1024**3
"""Free bytes that images and a first campaign need."""


class State(StrEnum):
    """Result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class MachineCheck:
    """One line of the doctor's report."""

    what: str
    text: str
    remedy: str = ""
    """Empty if all is well."""
    fails: bool = False
    """Whether the problem prevents measurements."""

    @property
    def state(self) -> State:
        """The result."""
        return State.FAIL if self.fails else State.WARN if self.remedy else State.OK


def examine(host: Host, images: dict[str, str], results: Path) -> Iterator[MachineCheck]:
    """Check this machine and the daemon of ``host``.

    ``images``: name → image reference of what a campaign needs, with ``simulator``; the images may be missing.
    """
    yield MachineCheck("python", ".".join(map(str, sys.version_info[:3])))  # run.py does not start with an older one
    yield _tshark()
    yield _disk("results", results)
    yield from _connected("engine", host, lambda daemon: _examine_daemon(daemon, images))


def _connected(
    name: str, host: Host, examine_daemon: Callable[[Daemon], Iterator[MachineCheck]]
) -> Iterator[MachineCheck]:
    """What ``examine_daemon`` finds, or that the daemon does not answer."""
    try:
        with connected(host, "doctor") as daemon:
            yield from examine_daemon(daemon)
    except MachineError as error:
        first, *rest = str(error).splitlines()
        yield MachineCheck(name, first, " ".join(rest), fails=True)
    except HarnessFault as fault:
        yield MachineCheck(name, fault.reason, "see the daemon's log, and restart it", fails=True)


def _examine_daemon(daemon: Daemon, images: dict[str, str]) -> Iterator[MachineCheck]:
    yield _engine(daemon)
    yield _limits(daemon)
    if daemon.url == LOCAL_SOCKET:
        yield _disk("images", Path(daemon.info["DockerRootDir"]))
    yield _subnets(daemon)
    yield _leftovers(daemon)
    if not daemon.host:
        yield _load(daemon)
    for name, reference in images.items():
        yield _image(daemon, name, reference)
    if DaemonImages(daemon).find(images["simulator"]):
        yield from _abilities(daemon, images["simulator"])


# ---- machines of real links -----------------------------------------------------------------


def examine_hosts(hosts: Iterable[Host]) -> Iterator[MachineCheck]:
    """Check the hosts of a hosts file, over their connections."""
    for host in hosts:
        yield from _connected(host.name, host, partial(_examine_host, host))


def _examine_host(host: Host, daemon: Daemon) -> Iterator[MachineCheck]:
    engine = _engine(daemon)
    yield replace(engine, what=host.name, text=engine.text.replace(f"at {daemon.where}", f"identity {daemon.id}"))
    if host.host_network:
        text = "endpoints use its network: they see its addresses and can reach services on its loopback"
        yield MachineCheck(host.name, text, "run only images that you trust, or remove network: host")
    elif "bridge" not in daemon.subnets():
        remedy = "start dockerd without --bridge=none, or set network: host; endpoints need a port of the host"
        yield MachineCheck(host.name, "there is no network bridge", remedy, fails=True)
    yield replace(_leftovers(daemon), what=host.name)
    yield _clock(host, daemon)


def _clock(host: Host, daemon: Daemon) -> MachineCheck:
    begin = time.time()
    there = daemon.system_time()
    end = time.time()
    ahead, error = there - (begin + end) / 2 - host.clock_skew, (end - begin) / 2
    text = f"its clock is {seconds(abs(ahead))} {'ahead' if ahead > 0 else 'behind'}, ± {seconds(error)}"
    remedy = "synchronise it (chrony, systemd-timesyncd), or set clock skew; one-way delays are corrected in any case"
    return MachineCheck(host.name, text, remedy if abs(ahead) > CLOCK_MARGIN + error else "")


# ---- this machine ---------------------------------------------------------------------------


def _tshark() -> MachineCheck:
    try:
        return MachineCheck("tshark", tshark_version())
    except MachineError as error:
        first, *rest = str(error).splitlines()
        return MachineCheck("tshark", first, " ".join(rest) or "run `make setup`")


def _disk(what: str, path: Path) -> MachineCheck:
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    remedy = f"free disk space; a first campaign needs {byte_size(ROOM)}" if free < ROOM else ""
    return MachineCheck(f"disk for {what}", f"{byte_size(free)} free in {path}", remedy)


def _engine(daemon: Daemon) -> MachineCheck:
    text = f"{daemon.info['ServerVersion']}, API {daemon.api_version}, at {daemon.where}"
    if tuple(map(int, daemon.api_version.split("."))) < OLDEST_API:
        return MachineCheck("engine", text, "install a newer Docker engine; API 1.40 is the oldest that is tested")
    if daemon.info["Architecture"] != "x86_64":
        return MachineCheck("engine", f"{text}, {daemon.info['Architecture']}", "only x86-64 is tested")
    return MachineCheck("engine", text)


def _limits(daemon: Daemon) -> MachineCheck:
    if not daemon.limits_containers:
        text = "without root, cgroup v1 limits neither memory nor processes of containers"
        return MachineCheck("limits", text, "run only images that you trust, or boot with cgroup v2")
    return MachineCheck("limits", "memory and processes of containers are limited")


def _subnets(daemon: Daemon) -> MachineCheck:
    clashes = [
        f"{name} ({subnet})"
        for name, subnets in daemon.subnets().items()
        for subnet in map(ip_network, subnets)
        if any(subnet.version == ours.version and subnet.overlaps(ours) for ours in CONTRACT_NETWORKS)
    ]
    if clashes:
        text = f"networks with addresses of the endpoint contract, which do no harm here: {', '.join(clashes)}"
        return MachineCheck("subnets", text)
    return MachineCheck("subnets", "no network uses addresses of the endpoint contract")


def _leftovers(daemon: Daemon) -> MachineCheck:
    if count := len(list_containers(daemon)):
        remedy = "run `./run.py clean`, unless a campaign is running"
        return MachineCheck("leftovers", f"{counted(count, 'container')} with the label {LABEL}", remedy)
    return MachineCheck("leftovers", "none")


def _load(daemon: Daemon) -> MachineCheck:
    load, cpus = os.getloadavg()[0], int(daemon.info["NCPU"])
    remedy = "stop other programs; they distort what is measured" if load > 0.7 * cpus else ""
    return MachineCheck("load", f"load {load:.1f} on {counted(cpus, 'CPU')}", remedy)


def _image(daemon: Daemon, name: str, reference: str) -> MachineCheck:
    image, what = DaemonImages(daemon).find(reference), f"image {name}"
    if image is None:
        return MachineCheck(what, f"{reference} is not here; a campaign builds or pulls it")
    if not is_native(image, daemon):
        remedy = f"use an image for {daemon.info['Architecture']}; an emulated one is many times slower"
        return MachineCheck(what, foreign(image, daemon), remedy)
    return MachineCheck(what, f"{reference}, {byte_size(image.size)}, version {image.version or 'unknown'}")


def _abilities(daemon: Daemon, simulator: str) -> Iterator[MachineCheck]:
    abilities = probe(daemon, simulator)
    if abilities.memlock:
        yield MachineCheck("memlock", "endpoints get 64 MiB of locked memory")
    else:
        text = (
            "endpoints cannot get 64 MiB of locked memory, which few images need; with CAP_SYS_RESOURCE, the daemon can"
        )
        yield MachineCheck("memlock", text)
    if abilities.realtime_priority:
        yield MachineCheck("real time", "the simulator runs with real-time priority")
    else:
        remedy = "the daemon refuses CAP_SYS_NICE or deadline scheduling (sched(7)); keep its machine idle"
        yield MachineCheck("real time", "the simulator cannot run with real-time priority", remedy)
