"""What a real link does with no endpoint on it: whether it carries packets at all, round trips, and how fast TCP is."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from interop.errors import HarnessFault
from interop.execution.archive import Limits, unpack
from interop.execution.daemon import Container, ContainerSpec
from interop.links.tools import Ends, container_name, last_words, start_until
from interop.model import Baseline, ErrorCode, Role
from interop.units import MIB, MS, mbit_per_s, seconds

PACKETS, INTERVAL = 20, 0.1
"""Of a series of round trips; seconds between two packets."""
PATIENCE = 60.0
"""Seconds within which a probe has come to its end, beyond what it is to last."""


def take(ends: Ends, fill: float = 0.0) -> Baseline:
    """A series of round trips, and if ``fill`` is not 0 so many seconds of TCP from server to client.

    Raises :class:`HarnessFault` (link-down) if nothing comes back, or if packets leave the client's host by another way
    than its entry in the hosts file says.
    """
    taken = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    _check_route(ends)
    with _container(ends, Role.SERVER, ("answer",)) as answering:
        start_until(answering, "answering", PATIENCE)
        duration = PACKETS * INTERVAL
        interval = f"{INTERVAL / MS:.0f}ms"
        series = _ask(ends, "ask", _bracketed(ends.address), interval, f"{duration:g}s", patience=duration)
        round_trips = _round_trips(series)
        rate = _ask(ends, "fill", ends.address, f"{fill:.0f}", patience=fill) if fill else None
    return Baseline(taken, round_trips, INTERVAL, _rate(rate))


def in_words(baseline: Baseline) -> str:
    """``RTT 601.2 ms (600.4 ms to 633.0 ms), 0 of 20 packets lost, TCP 12.30 Mbit/s``."""
    came = [each for each in baseline.round_trips if each is not None]
    sent = len(baseline.round_trips)
    words = f"RTT {seconds(median(came))} ({seconds(min(came))} to {seconds(max(came))})" if came else "no RTT"
    fast = f", TCP {mbit_per_s(baseline.goodput)}" if baseline.goodput is not None else ""
    return f"{words}, {sent - len(came)} of {sent} packets lost{fast}"


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


# ---- asking ---------------------------------------------------------------------------------


def _ask(ends: Ends, *words: str, network: str = "bridge", patience: float = 0.0) -> Any:
    """What a probe at the client's end has written, as JSON."""
    with _container(ends, Role.CLIENT, words, network) as probe, TemporaryDirectory(prefix="quicsat-probe-") as folder:
        probe.start()
        if not probe.wait(PATIENCE + patience) or probe.exit().status != 0:
            reason = f"the link {ends.name} carries nothing to UDP or TCP port 443: {last_words(probe)}"
            raise HarnessFault(ErrorCode.LINK_DOWN, reason)
        unpack(probe.fetch("/logs"), Path(folder), Limits(total=64 * MIB))
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
def _container(ends: Ends, role: Role, words: tuple[str, ...], network: str = "bridge") -> Iterator[Container]:
    daemon = ends.daemons[role]
    spec = ContainerSpec(
        name=container_name(daemon, f"{role}-probe"),
        image=ends.image,
        command=("probe", *words),
        network=network,
        published=ends.hosts[role].source_address if role is Role.SERVER else None,
        capabilities=("NET_BIND_SERVICE",),
        without=("ALL",),
        pids=64,
    )
    with daemon.container(spec) as container:
        yield container
