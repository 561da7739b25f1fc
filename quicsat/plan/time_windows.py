"""When runs may begin: hours of the day that are closed, by the clock of a named time zone, and deadlines; pure.

All moments are aware ``datetime`` values. Hours are local time of the zone: when clocks go back,
an hour occurs twice and is closed twice; when they go forward, a skipped hour closes nothing.
"""

import re
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from quicsat.model.names import did_you_mean
from quicsat.model.text import quoted

LOCALTIME = Path("/etc/localtime")
MINUTE = timedelta(minutes=1)
LOOK_AHEAD = 3 * 24 * 60
"""Minutes within which every time of day occurs, despite changes of the clocks."""
NO_DEADLINE = "is neither a time of day, such as 06:00, nor a date with a time, such as 2026-11-22T06:00."
_HOURS = re.compile(r"([0-9]{1,2}:[0-9]{2})\s*-\s*([0-9]{1,2}:[0-9]{2})")


@dataclass(frozen=True)
class Window:
    """A part of every day; it crosses midnight if it ends before it begins."""

    begin: time
    end: time
    """The first minute after it."""

    def __contains__(self, moment: time) -> bool:
        if self.begin < self.end:
            return self.begin <= moment < self.end
        return moment >= self.begin or moment < self.end

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M}"


@dataclass(frozen=True)
class Hours:
    """Windows in which no run may begin."""

    zone: ZoneInfo
    closed: tuple[Window, ...] = ()

    def are_open(self, now: datetime) -> bool:
        """Whether a run may begin."""
        shown = now.astimezone(self.zone).time()
        return not any(shown in window for window in self.closed)

    def opening(self, now: datetime) -> datetime | None:
        """The first moment from ``now`` on at which a run may begin; None if there is none."""
        return self._first(now, are_open=True)

    def closing(self, now: datetime) -> datetime | None:
        """The first moment from ``now`` on at which no run may begin; None if there is none."""
        return self._first(now, are_open=False) if self.closed else None

    def _first(self, now: datetime, *, are_open: bool) -> datetime | None:
        if self.are_open(now) is are_open:
            return now
        minute = now.astimezone(UTC).replace(second=0, microsecond=0)  # in UTC, since local time can jump
        for number in range(1, LOOK_AHEAD):
            if self.are_open(minute + number * MINUTE) is are_open:
                return minute + number * MINUTE
        return None


def zone(name: str) -> ZoneInfo:
    """``"Europe/Zurich"``; ValueError, worded to follow the name, if there is no such zone."""
    try:
        return ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        hint = did_you_mean(name, zoneinfo.available_timezones())
        raise ValueError(f"is no time zone; write for example Europe/Zurich or UTC.{hint}") from error


def zone_of(variable: str | None, localtime: Path = LOCALTIME) -> ZoneInfo:
    """The zone of this machine: from TZ, else from ``localtime``; UTC if neither names one."""
    target = str(localtime.resolve()).partition("zoneinfo/")[2] if localtime.is_symlink() else ""
    for name in filter(None, ((variable or "").removeprefix(":"), target)):
        try:
            return zone(name)
        except ValueError:
            continue
    return zone("UTC")


def window(text: str) -> Window:
    """``"18:00-23:00"`` or, across midnight, ``"22:30-06:00"``; ValueError, worded to follow the text."""
    match = _HOURS.fullmatch(text.strip())
    if match is None:
        raise ValueError('is no part of a day; write for example "18:00-23:00".')
    begin, end = map(clock, match.groups())
    if begin == end:
        raise ValueError("begins when it ends; it must not be empty or a whole day.")
    return Window(begin, end)


def clock(text: str) -> time:
    """``"06:00"``; ValueError, worded to follow the text."""
    hour, _, minute = text.strip().partition(":")
    if not (hour.isdecimal() and minute.isdecimal() and int(hour) < 24 and int(minute) < 60):
        raise ValueError(f"has no time of day in {quoted(text)}; write for example 06:00.")
    return time(int(hour), int(minute))


def deadline(text: str, here: ZoneInfo, now: datetime) -> datetime:
    """``"06:00"``: the next such time by the clock of ``here``; or a date with a time, ``"2026-11-22T06:00"``.

    A date with an offset of its own keeps it. Raises ValueError, worded to follow the text.
    """
    if "T" in text or " " in text.strip():
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError as error:
            raise ValueError(NO_DEADLINE) from error
        moment = moment.replace(tzinfo=here) if moment.tzinfo is None else moment
        if moment.astimezone(UTC) <= now:
            raise ValueError("has passed already.")
        return moment.astimezone(UTC)
    try:
        shown = clock(text)
    except ValueError as error:
        raise ValueError(NO_DEADLINE) from error
    today = now.astimezone(here).date()
    days = (datetime.combine(today + timedelta(days=days), shown, here) for days in range(3))
    moments = (day.replace(fold=fold).astimezone(UTC) for day in days for fold in (0, 1))
    return next(moment for moment in moments if moment > now)
