"""Looks a machine over: what a campaign needs, what is missing, and what to do about it, a line each."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import ip_network
from pathlib import Path

from interop.errors import HarnessFault, MachineError
from interop.execution.daemon import LABEL, Daemon
from interop.execution.remote import connected
from interop.links.ns3 import probe
from interop.model import Host
from interop.traces.tshark import tshark_version
from interop.units import byte_size, seconds

OLDEST_API = (1, 40)
LOCAL_SOCKET = "unix:///var/run/docker.sock"
CONTRACT_NETWORKS = (ip_network("193.167.0.0/16"), ip_network("fd00:cafe:cafe::/48"))
CLOCK_MARGIN = 0.05
"""Seconds by which the clock of a host may be wrong before it is told."""
ROOM = 5 * 1024**3
"""Bytes that images and a first campaign take."""


class State(StrEnum):
    """How well something is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report."""

    what: str
    state: State
    text: str
    remedy: str = ""


def examine(url: str, images: dict[str, str], results: Path) -> Iterator[Finding]:
    """All findings about this machine and the daemon at ``url``.

    ``images`` maps what a campaign needs to image references that may or may not be there; ``simulator`` among them.
    """
    yield _python()
    yield _tshark()
    yield _disk("results", results)
    try:
        daemon = Daemon(url, "doctor")
    except MachineError as error:
        first, *rest = str(error).splitlines()
        yield Finding("engine", State.FAIL, first, " ".join(rest))
        return
    try:
        yield from _examine_daemon(daemon, images)
    except HarnessFault as fault:
        yield Finding("engine", State.FAIL, fault.reason, "look into the daemon's log and start it again")


def _examine_daemon(daemon: Daemon, images: dict[str, str]) -> Iterator[Finding]:
    yield _engine(daemon)
    if daemon.url == LOCAL_SOCKET:
        yield _disk("images", Path(daemon.info["DockerRootDir"]))
    yield _subnets(daemon)
    yield _leftovers(daemon)
    yield _load(daemon)
    for name, reference in images.items():
        yield _image(daemon, name, reference)
    if daemon.find(images["simulator"]):
        yield from _abilities(daemon, images["simulator"])


# ---- machines of real links -----------------------------------------------------------------


def examine_hosts(hosts: Iterable[Host]) -> Iterator[Finding]:
    """All findings about the hosts of a hosts file, each of which is visited."""
    for host in hosts:
        try:
            with connected(host, "doctor") as daemon:
                yield from _examine_host(host, daemon)
        except MachineError as error:
            first, *rest = str(error).splitlines()
            yield Finding(host.name, State.FAIL, first, " ".join(rest))
        except HarnessFault as fault:
            yield Finding(host.name, State.FAIL, fault.reason, "look into its daemon's log and start it again")


def _examine_host(host: Host, daemon: Daemon) -> Iterator[Finding]:
    engine = _engine(daemon)
    text = engine.text.replace(f"at {daemon.url}", f"identity {daemon.id}")  # a tunnel's address tells nothing
    yield replace(engine, what=host.name, text=text)
    if host.host_network:
        text = "endpoints are in its own network: they see its addresses and reach what listens on its loopback"
        yield Finding(host.name, State.WARN, text, "run images there that you trust, or leave network: host out")
    elif "bridge" not in daemon.subnets():
        remedy = "start dockerd without --bridge=none, by which endpoints are published, or say network: host"
        yield Finding(host.name, State.FAIL, "there is no network bridge", remedy)
    yield replace(_leftovers(daemon), what=host.name)
    yield _clock(host, daemon)


def _clock(host: Host, daemon: Daemon) -> Finding:
    begin = time.time()
    there = daemon.system_time()
    end = time.time()
    ahead, margin = there - (begin + end) / 2 - host.clock_skew, CLOCK_MARGIN + (end - begin) / 2
    text = f"its clock is {seconds(abs(ahead))} {'ahead' if ahead > 0 else 'behind'}, ± {seconds((end - begin) / 2)}"
    if abs(ahead) > margin:
        remedy = "let it be set (chrony, systemd-timesyncd), or say clock skew; one-way delays are corrected anyhow"
        return Finding(host.name, State.WARN, text, remedy)
    return Finding(host.name, State.OK, text)


# ---- this machine ---------------------------------------------------------------------------


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", State.OK, version)  # run.py does not start with an older one


def _tshark() -> Finding:
    try:
        return Finding("tshark", State.OK, tshark_version())
    except MachineError as error:
        first, *rest = str(error).splitlines()
        return Finding("tshark", State.WARN, first, " ".join(rest) or "run `make setup`")


def _disk(what: str, path: Path) -> Finding:
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    text = f"{byte_size(free)} free in {path}"
    if free < ROOM:
        return Finding(f"disk for {what}", State.WARN, text, f"make room: {byte_size(ROOM)} are needed to begin")
    return Finding(f"disk for {what}", State.OK, text)


def _engine(daemon: Daemon) -> Finding:
    text = f"{daemon.info['ServerVersion']}, API {daemon.api_version}, at {daemon.url}"
    if tuple(map(int, daemon.api_version.split("."))) < OLDEST_API:
        return Finding("engine", State.WARN, text, "install a newer engine: API 1.40 is the oldest that is tried")
    if daemon.info["Architecture"] != "x86_64":
        return Finding("engine", State.WARN, f"{text}, {daemon.info['Architecture']}", "only x86-64 is tried")
    return Finding("engine", State.OK, text)


def _subnets(daemon: Daemon) -> Finding:
    clashes = [
        f"{name} ({subnet})"
        for name, subnets in daemon.subnets().items()
        for subnet in map(ip_network, subnets)
        if any(subnet.version == ours.version and subnet.overlaps(ours) for ours in CONTRACT_NETWORKS)
    ]
    if clashes:
        remedy = (
            "harmless to testbeds, which have no network of the host, but of another runner: see `docker network ls`"
        )
        return Finding("subnets", State.WARN, f"addresses of the contract in use by {', '.join(clashes)}", remedy)
    return Finding("subnets", State.OK, "no network of the daemon uses the contract's addresses")


def _leftovers(daemon: Daemon) -> Finding:
    count = len(daemon.leftovers())
    if count:
        remedy = "`./run.py clean`, unless a campaign is under way"
        return Finding("leftovers", State.WARN, f"{count} containers with the label {LABEL}", remedy)
    return Finding("leftovers", State.OK, "none")


def _load(daemon: Daemon) -> Finding:
    load, cpus = os.getloadavg()[0], int(daemon.info["NCPU"])
    text = f"load {load:.1f} on {cpus} CPUs"
    if load > 0.7 * cpus:
        return Finding("load", State.WARN, text, "end what else runs here: a busy machine measures itself")
    return Finding("load", State.OK, text)


def _image(daemon: Daemon, name: str, reference: str) -> Finding:
    image = daemon.find(reference)
    if image is None:
        return Finding(
            f"image {name}", State.WARN, f"{reference} is not here yet", "a campaign gets it when it needs it"
        )
    return Finding(
        f"image {name}", State.OK, f"{reference}, {byte_size(image.size)}, version {image.version or 'unknown'}"
    )


def _abilities(daemon: Daemon, simulator: str) -> Iterator[Finding]:
    abilities = probe(daemon, simulator)
    if abilities.memlock:
        yield Finding("memlock", State.OK, "endpoints get 64 MiB of locked memory")
    else:
        remedy = (
            "needed by few images only; give the daemon CAP_SYS_RESOURCE or a higher hard limit if one of yours asks"
        )
        yield Finding("memlock", State.WARN, "endpoints cannot get 64 MiB of locked memory", remedy)
    if abilities.realtime_priority:
        yield Finding("real time", State.OK, "the simulator runs with real-time priority")
    else:
        remedy = "this daemon refuses CAP_SYS_NICE or deadline scheduling (sched(7)): keep its machine idle"
        yield Finding("real time", State.WARN, "the simulator cannot run with real-time priority", remedy)
