"""The simulator's report link.json: what the link did, as values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

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

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")
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
    demand = document.get("demand")
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
        cross_traffic=None if cross is None else _record(CrossTrafficReport, cross),
        lateness=None if lateness is None else _lateness(lateness, started, client, _number(document["stopped"])),
        demand=None if demand is None else _record(DemandReport, demand),
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


READERS: Mapping[str, Callable[[Any], Any]] = {
    "int": _count,
    "float": _number,
    "float | None": lambda value: None if value is None else _number(value),
    "tuple[int, ...]": lambda values: tuple(map(_count, values)),
    "str": str,
}
"""Type of a field -> how its value is read."""


def _record(kind: type[R], document: dict[str, Any]) -> R:
    """A part of the report with the names and types of the fields of ``kind``."""
    return kind(**{field.name: READERS[str(field.type)](document[field.name]) for field in fields(kind)})


def _direction(document: dict[str, Any], way: str) -> DirectionReport:
    """``way``: ``forward`` or ``return``."""
    profile, others = (document.get(f"{way}_{element}") for element in ("profile", "udp_cross_traffic"))
    return replace(
        _counters(document[way]),
        profile=None if profile is None else _record(ProfileReport, profile),
        udp_cross_traffic=None if others is None else _record(UdpCrossTrafficReport, others),
    )


def _counters(document: dict[str, Any]) -> DirectionReport:
    """Counters of one direction; those in ``LATER_COUNTERS`` are 0 in reports of older simulators."""
    counters: dict[str, Any] = {
        name: _count(document.get(name, 0) if name in LATER_COUNTERS else document[name]) for name in COUNTERS
    }
    return DirectionReport(**counters)


def _rebinding(document: dict[str, Any]) -> Rebinding:
    return Rebinding(_number(document["time"]), tuple(_record(NatMapping, one) for one in document["mappings"]))
