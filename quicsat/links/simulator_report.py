"""The simulator's report link.json: what the link did, as values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from quicsat.docker.archive import ArchiveLimits, unpack
from quicsat.links.artefact_limits import LARGEST_REPORT
from quicsat.model.emulated_link import (
    ClientSideReport,
    CrossTrafficReport,
    DemandReport,
    DirectionLateness,
    DirectionReport,
    Interval,
    Lateness,
    NatMapping,
    ProfileReport,
    Rebinding,
    SimulatorReport,
    UdpCrossTrafficReport,
)
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.model.stored_files import read_file

COUNTERS = tuple(field.name for field in fields(DirectionReport) if field.type == "int")
LATER_COUNTERS = frozenset({"ecn_marks", "duplicated", "reordered", "out_of_order"})
"""Counters that simulators before version 3 of the image do not have."""
TRACES = "sim"
"""Directory of traces and report, below that of a run."""
LARGEST = 1e18
"""Upper limit of every number of a report."""


class Stall(NamedTuple):
    """An interval in which late frames waited: from when the first was due until the last was sent."""

    begin: float
    end: float
    """Seconds since 1970."""
    forward: float
    back: float
    """Late frames of each direction."""
    maximum: float
    """Largest lateness, seconds."""


def unpack_report(
    archive: Iterable[bytes],
    directory: Path,
    limits: ArchiveLimits,
    client: Interval | None,
    last_words: Callable[[], str],
) -> SimulatorReport:
    """Write the simulator's traces and report below ``directory/sim`` and read the report.

    ``client``: as in :func:`read_report`; ``last_words``: the end of the simulator's output. Raises
    :class:`HarnessFault` (simulator-failed) if there is no report.
    """
    target = directory / TRACES
    target.mkdir(parents=True, exist_ok=True)
    unpack(archive, target, limits)
    try:
        return read_report(json.loads(read_file(target / "link.json", LARGEST_REPORT)), client)
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"the simulator left no report ({error}); its last output: {last_words()}"
        raise HarnessFault(ErrorCode.SIMULATOR_FAILED, reason) from error


def read_report(document: dict[str, Any], client: Interval | None = None) -> SimulatorReport:
    """The simulator's link.json as a value; raises KeyError, TypeError or ValueError if something is missing or wrong.

    ``client``: from the client's start to its end; lateness counts in this interval only. None: the whole run.
    """
    cross, lateness, client_side = document["cross_traffic"], document.get("lateness"), document.get("client_side")
    started = _number(document["started"])
    return SimulatorReport(
        started=started,
        realtime_priority=bool(document["realtime_priority"]),
        lag_mean=_number(document["lag"]["mean"]),
        lag_max=_number(document["lag"]["max"]),
        receive_overflows=_count(document["receive_overflows"]),
        forward=_direction(document, "forward"),
        back=_direction(document, "return"),
        blackholes=tuple(Interval(_number(begin), _number(end)) for begin, end in document["blackholes"]),
        rebinds=tuple(_rebinding(rebind) for rebind in document["rebinds"]),
        cross_traffic=None if cross is None else _cross_traffic(cross),
        lateness=None if lateness is None else _lateness(lateness, started, client, _number(document["stopped"])),
        demand=_demand(document.get("demand")),
        client_side=client_side and ClientSideReport(*(_counters(client_side[way]) for way in ("forward", "return"))),
    )


def _lateness(document: dict[str, Any], started: float, client: Interval | None, stopped: float) -> Lateness:
    """Lateness in the interval ``client``; ``started``, ``stopped``: of the simulator, seconds since 1970."""
    life = client or Interval(started, stopped)
    stalls = [Stall(*map(_number, stall)) for stall in document["stalls"]]
    touched = [overlap for stall in stalls if (overlap := min(stall.end, life.end) - max(stall.begin, life.begin)) > 0]
    begun = [stall for stall in stalls if life.begin <= stall.begin <= life.end]
    interval = _number(document["interval"])
    if interval <= 0:
        raise ValueError(f"an interval of {interval:g} s")
    rows = slice(max(0, int((life.begin - started) / interval)), max(0, int((life.end - started) / interval) + 1))
    return Lateness(
        bound=_number(document["bound"]),
        life=life.end - life.begin,
        stalled=sum(touched),
        stalls=len(touched),
        longest_stall=max(touched, default=0.0),
        forward=_direction_lateness(document["forward"], rows, int(sum(stall.forward for stall in begun))),
        back=_direction_lateness(document["return"], rows, int(sum(stall.back for stall in begun))),
    )


def _direction_lateness(document: dict[str, Any], rows: slice, late: int) -> DirectionLateness:
    return DirectionLateness(
        frames=sum(_count(count) for count in document["frames_per_interval"][rows]),
        late=late,
        maximum=max((_number(value) for value in document["max_per_interval"][rows]), default=0.0),
        p50=_number(document["p50"]),
        p99=_number(document["p99"]),
        p999=_number(document["p999"]),
    )


def _number(value: Any) -> float:
    """``value``, which must be finite: comparisons with NaN are false, and sums with an infinity mean nothing."""
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError("a number that is too large") from error
    if not abs(number) < LARGEST:
        raise ValueError(f"{number} is not a number of a report")
    return number


def _count(value: Any) -> int:
    return int(_number(value))


def _direction(document: dict[str, Any], way: str) -> DirectionReport:
    """``way``: ``forward`` or ``return``."""
    profile, others = (document.get(f"{way}_{element}") for element in ("profile", "udp_cross_traffic"))
    return replace(
        _counters(document[way]),
        profile=None if profile is None else _profile(profile),
        udp_cross_traffic=None if others is None else _udp_cross_traffic(others),
    )


def _counters(document: dict[str, Any]) -> DirectionReport:
    """Counters of one direction; those in ``LATER_COUNTERS`` are 0 in reports of older simulators."""
    counters: dict[str, Any] = {
        name: _count(document.get(name, 0) if name in LATER_COUNTERS else document[name]) for name in COUNTERS
    }
    return DirectionReport(**counters)


def _profile(document: dict[str, Any]) -> ProfileReport:
    began = document["began"]
    return ProfileReport(None if began is None else _number(began), _count(document["changes"]))


def _demand(document: dict[str, Any] | None) -> DemandReport | None:
    if document is None:
        return None
    return DemandReport(**{name: _count(document[name]) for name in DemandReport.__dataclass_fields__})


def _udp_cross_traffic(document: dict[str, Any]) -> UdpCrossTrafficReport:
    return UdpCrossTrafficReport(
        begin=_number(document["begin"]),
        end=_number(document["end"]),
        sent=_count(document["sent"]),
        queue_drops=_count(document["queue_drops"]),
        delivered=_count(document["delivered"]),
    )


def _rebinding(document: dict[str, Any]) -> Rebinding:
    mappings = tuple(NatMapping(str(one["inside"]), str(one["outside"])) for one in document["mappings"])
    return Rebinding(_number(document["time"]), mappings)


def _cross_traffic(document: dict[str, Any]) -> CrossTrafficReport:
    return CrossTrafficReport(
        begin=_number(document["begin"]),
        end=_number(document["end"]),
        acknowledged=_count(document["acknowledged"]),
        goodput=_number(document["goodput"]),
        per_second=tuple(_count(count) for count in document["per_second"]),
        delivered=_count(document["delivered"]),
        queue_drops=_count(document["queue_drops"]),
    )
