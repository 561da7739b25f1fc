"""What a real link does with no endpoint on it: whether it carries packets at all, round trips, and how fast TCP is."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from interop.errors import HarnessFault
from interop.execution.archive import Limits, unpack
from interop.execution.daemon import Container, ContainerSpec
from interop.links.tools import Ends, container_name, last_words, start_until
from interop.model import Baseline, ErrorCode, Role
from interop.units import MIB, MS

PACKETS, INTERVAL = 20, 0.1
"""Of a series of round trips; seconds between two packets."""
ANSWER = ("answer",)
"""What the probe at the server's end is told."""
LOCAL = ("route", "offloads")
"""Words for what a host knows by itself."""
PATIENCE = 60.0
"""Seconds within which a probe has come to its end, beyond what it is to last."""


def take(ends: Ends, fill: float = 0.0) -> Baseline:
    """A series of round trips, and if ``fill`` is not 0 so many seconds of TCP from server to client.

    Raises :class:`HarnessFault` (link-down) if nothing comes back, or if packets leave the client's host by another way
    than its entry in the hosts file says.
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
        series = _ask(ends, "ask", _bracketed(ends.address), interval, f"{duration:g}s", patience=duration)
        round_trips = _round_trips(series)
        rate = _ask(ends, "fill", ends.address, f"{fill:.0f}", patience=fill) if fill else None
    return Baseline(taken, round_trips, INTERVAL, _rate(rate))


def _check_route(ends: Ends) -> None:
    client = ends.hosts[Role.CLIENT]
    if not client.interface and not client.source_address:
        return
    route = _ask(ends, "route", ends.address, network="host")[0]
    for what, wanted, found in (
        ("over", client.interface, route.get("dev")),
        ("from", client.source_address, route.get("prefsrc")),
    ):
        if wanted and wanted != found:
            reason = f"packets of {client.name} would leave {what} {found}, not {wanted}: mend its routes, or its entry"
            raise HarnessFault(ErrorCode.LINK_DOWN, reason)


def _check_offloads(ends: Ends, role: Role) -> None:
    """Raise :class:`HarnessFault` if the interface of a host's own network joins packets, which nobody takes apart."""
    towards = ends.address if role is Role.CLIENT else ""
    told = _ask(ends, "offloads", ends.interface(role), towards, role=role)
    if told["joining"]:
        name, device = ends.hosts[role].name, told["interface"]
        mend = " ".join(f"{each} off" for each in told["joining"])
        reason = (
            f"{device} of {name} joins packets, so that captures in the host's own network would show several as one: "
            f"there, ethtool -K {device} {mend}"
        )
        raise HarnessFault(ErrorCode.CAPTURE_FAILED, reason)


# ---- asking ---------------------------------------------------------------------------------


def _ask(ends: Ends, *words: str, role: Role = Role.CLIENT, network: str = "", patience: float = 0.0) -> Any:
    """What a probe at an end has written, as JSON; ``network`` is the end's own if none is named.

    The first of ``words`` says what is asked; raises :class:`HarnessFault` if there is no answer.
    """
    with _container(ends, role, words, network) as probe, TemporaryDirectory(prefix="quicsat-probe-") as folder:
        probe.start()
        if not probe.wait(PATIENCE + patience) or probe.exit().status != 0:
            told = ends.hosts[role].name if words[0] in LOCAL else f"the link {ends.name}"
            what = "does not tell of its network" if words[0] in LOCAL else "carries nothing to UDP or TCP port 443"
            reason = f"{told} {what}: {last_words(probe)}"
            raise HarnessFault(ErrorCode.LINK_DOWN, reason)
        with probe.fetch("/logs") as archive:
            unpack(archive, Path(folder), Limits(total=64 * MIB))
        try:
            return json.loads(Path(folder, "probe.json").read_bytes())
        except (OSError, ValueError) as error:
            raise HarnessFault(ErrorCode.LINK_DOWN, f"the probe of {ends.name} left no answer: {error}") from error


def _round_trips(document: Any) -> tuple[float | None, ...]:
    """Those of irtt's JSON, seconds."""
    try:
        return tuple(
            each["delay"]["rtt"] / 1e9 if each["lost"] == "false" else None for each in document["round_trips"]
        )
    except (KeyError, TypeError) as error:
        raise HarnessFault(ErrorCode.LINK_DOWN, f"the probe's answer makes no sense: {error!r}") from error


def _rate(document: Any) -> float | None:
    """Of iperf3's JSON, bit/s."""
    try:
        return None if document is None else float(document["end"]["sum_received"]["bits_per_second"])
    except (KeyError, TypeError) as error:
        raise HarnessFault(ErrorCode.LINK_DOWN, f"iperf3's answer makes no sense: {error!r}") from error


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


@contextmanager
def _container(ends: Ends, role: Role, words: tuple[str, ...], network: str = "") -> Iterator[Container]:
    daemon = ends.daemons[role]
    spec = ContainerSpec(
        name=container_name(daemon, f"{role}-probe"),
        image=ends.image,
        command=("probe", *words),
        network=network or ends.network(role),
        published=ends.published if words == ANSWER else None,
        capabilities=("NET_BIND_SERVICE",),
        without=("ALL",),
        pids=64,
    )
    with daemon.container(spec) as container:
        yield container
