"""The baseline of a real link without endpoints: reachability, round-trip times and TCP throughput."""

import datetime
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from quicsat.docker.archive import ArchiveLimits, unpack
from quicsat.docker.containers import Container, ContainerSpec, create_container
from quicsat.links.artefact_limits import LARGEST_REPORT
from quicsat.links.host_pair import HostPair
from quicsat.links.link_containers import container_name, last_words, start_until
from quicsat.model.errors import HarnessFault
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.real_link import Baseline
from quicsat.model.stored_files import read_file
from quicsat.model.units import MIB, MS
from quicsat.model.whole_file import scratch_directory

PACKETS, INTERVAL = 20, 0.1
"""Seconds between two packets of a series of round trips."""
ANSWER = ("answer",)
"""Arguments of the probe at the server's end."""
LOCAL = ("route", "offloads")
"""Probes that need only one host."""
PATIENCE = 60.0
"""Seconds that a probe may take beyond its planned duration."""


def take(ends: HostPair, fill: float = 0.0) -> Baseline:
    """Measure a series of round trips and, if ``fill`` is not 0, ``fill`` seconds of TCP in each direction.

    Raises :class:`HarnessFault` (link-down) if nothing comes back, or if packets leave the client's host by a route
    other than the one in the hosts file.
    """
    taken = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    _check_route(ends)
    for role in Role:
        if ends.hosts[role].host_network:
            _check_offloads(ends, role)
    with _container(ends, Role.SERVER, ANSWER) as answering:
        start_until(answering, "answering", PATIENCE)
        duration = PACKETS * INTERVAL
        interval = f"{INTERVAL / MS:.0f}ms"
        address = f"[{ends.address}]" if ":" in ends.address else ends.address
        series = _ask(ends, "ask", address, interval, f"{duration:g}s", patience=duration)
        round_trips = _round_trips(series)
        rates = [_filled(ends, direction, fill) if fill else None for direction in ("forward", "return")]
    return Baseline(taken, round_trips, INTERVAL, *rates)


def _filled(ends: HostPair, direction: str, fill: float) -> float:
    """Goodput of ``fill`` seconds of TCP in a direction, bit/s."""
    return _rate(_ask(ends, "fill", ends.address, str(math.ceil(fill)), direction, patience=fill))


def _check_route(ends: HostPair) -> None:
    client = ends.hosts[Role.CLIENT]
    if not client.interface and not client.source_address:
        return
    route = _ask(ends, "route", ends.address, network="host")[0]
    for what, wanted, found in (
        ("over", client.interface, route.get("dev")),
        ("from", client.source_address, route.get("prefsrc")),
    ):
        if wanted and wanted != found:
            reason = f"packets of {client.name} would leave {what} {found}, not {wanted}: fix its routes or its entry"
            raise HarnessFault(ErrorCode.LINK_DOWN, reason)


def _check_offloads(ends: HostPair, role: Role) -> None:
    """Raise :class:`HarnessFault` if the interface of a host's own network merges packets into larger ones."""
    towards = ends.address if role is Role.CLIENT else ""
    answer = _ask(ends, "offloads", ends.interface(role), towards, role=role)
    if answer["joining"]:
        name, device = ends.hosts[role].name, answer["interface"]
        mend = " ".join(f"{each} off" for each in answer["joining"])
        reason = (
            f"{device} of {name} merges packets, so captures in the host's network would show several as one: "
            f"run `ethtool -K {device} {mend}` there"
        )
        raise HarnessFault(ErrorCode.CAPTURE_FAILED, reason)


# ---- probes ---------------------------------------------------------------------------------


def _ask(ends: HostPair, *words: str, role: Role = Role.CLIENT, network: str = "", patience: float = 0.0) -> Any:
    """Run a probe at one end and return the JSON that it writes; ``network`` defaults to that of the end.

    The first of ``words`` names the probe. Raises :class:`HarnessFault` if it gives no answer.
    """
    with _container(ends, role, words, network) as probe, scratch_directory() as folder:
        probe.start()
        if not probe.wait(PATIENCE + patience) or probe.exit().status != 0:
            place = ends.hosts[role].name if words[0] in LOCAL else f"the link {ends.name}"
            what = "does not report its network" if words[0] in LOCAL else "carries no packets to UDP or TCP port 443"
            reason = f"{place} {what}: {last_words(probe)}"
            raise HarnessFault(ErrorCode.LINK_DOWN, reason)
        with probe.fetch("/logs") as archive:
            unpack(archive, folder, ArchiveLimits(total=64 * MIB))
        try:
            return json.loads(read_file(folder / "probe.json", LARGEST_REPORT))
        except (OSError, ValueError) as error:
            raise HarnessFault(ErrorCode.LINK_DOWN, f"the probe of {ends.name} left no answer: {error}") from error


def _round_trips(document: Any) -> tuple[float | None, ...]:
    """Round-trip times in irtt's JSON, seconds; None for a lost packet."""
    try:
        return tuple(
            each["delay"]["rtt"] / 1e9 if each["lost"] == "false" else None for each in document["round_trips"]
        )
    except (KeyError, TypeError) as error:
        raise HarnessFault(ErrorCode.LINK_DOWN, f"the probe's answer is invalid: {error!r}") from error


def _rate(document: Any) -> float:
    """Goodput in iperf3's JSON, bit/s."""
    try:
        return float(document["end"]["sum_received"]["bits_per_second"])
    except (KeyError, TypeError) as error:
        raise HarnessFault(ErrorCode.LINK_DOWN, f"iperf3's answer is invalid: {error!r}") from error


@contextmanager
def _container(ends: HostPair, role: Role, words: tuple[str, ...], network: str = "") -> Iterator[Container]:
    daemon = ends.daemons[role]
    spec = ContainerSpec(
        name=container_name(daemon, f"{role}-probe"),
        image=ends.image,
        command=("probe", *words),
        network=network or ends.network(role),
        published=ends.published if words == ANSWER else None,
        capabilities=("NET_BIND_SERVICE",),
        dropped_capabilities=("ALL",),
        pids=64,
    )
    with create_container(daemon, spec) as container:
        yield container
