"""Closed hours and deadlines, across midnight and when clocks are changed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from quicsat.plan.time_windows import Hours, Window, clock, deadline, window, zone, zone_of

ZURICH, NEW_YORK, LORD_HOWE = ZoneInfo("Europe/Zurich"), ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")
# Europe: forward on 2026-03-29 at 01:00 UTC (02:00 -> 03:00), back on 2026-10-25 at 01:00 UTC (03:00 -> 02:00).


def hours(place: ZoneInfo, *windows: str) -> Hours:
    return Hours(place, tuple(map(window, windows)))


@pytest.mark.parametrize(
    ("place", "closed", "opened", "shut"),
    [
        # a plain evening, in winter (UTC+1) and in summer (UTC+2), and the same hours elsewhere
        (ZURICH, "18:00-23:00", "01-15T16:59:59 01-15T22:00", "01-15T17:00 01-15T21:59:59"),
        (ZURICH, "18:00-23:00", "07-15T15:59:59 07-15T21:00", "07-15T16:00 07-15T20:59:59"),
        (NEW_YORK, "18:00-23:00", "01-15T22:59 01-16T04:00", "01-15T23:00 01-16T03:59"),
        # across midnight
        (ZURICH, "22:30-06:00", "01-15T21:29 01-16T05:00", "01-15T21:30 01-15T23:00 01-16T04:59"),
        (ZURICH, "23:00-00:00", "01-15T23:00", "01-15T22:59"),
        (ZURICH, "00:00-01:00", "", "01-15T23:00"),
        # clocks are put forward: 02:00-03:00 does not happen
        (ZURICH, "02:00-03:00", "03-29T00:59:59 03-29T01:00", ""),
        (ZURICH, "01:30-03:30", "03-29T01:30", "03-29T00:30 03-29T01:29"),
        (ZURICH, "22:00-06:00", "03-29T04:00", "03-29T03:59"),
        # clocks are put back: 02:00-03:00 happens twice
        (ZURICH, "02:00-03:00", "10-24T23:59 10-25T02:00", "10-25T00:00 10-25T01:59"),
        (ZURICH, "01:00-02:30", "10-25T00:30 10-25T01:30", "10-25T00:29 10-25T01:00"),
        (NEW_YORK, "01:00-02:00", "11-01T04:59 11-01T07:00", "11-01T05:00 11-01T06:59"),
        # half an hour back on the first Sunday of April, 02:00 -> 01:30, 15:00 UTC
        (LORD_HOWE, "01:30-02:00", "04-04T15:30", "04-04T14:30 04-04T15:29"),
    ],
)
def test_open_or_closed(place: ZoneInfo, closed: str, opened: str, shut: str) -> None:
    for moments, are_open in ((opened, True), (shut, False)):
        for moment in moments.split():
            found = hours(place, closed).are_open(datetime.fromisoformat(f"2026-{moment}Z"))
            assert found is are_open, moment


@pytest.mark.parametrize(
    ("closed", "now", "opens"),
    [
        ("18:00-23:00", "2026-01-15T12:00:30", "2026-01-15T12:00:30"),
        ("18:00-23:00", "2026-01-15T18:00:30", "2026-01-15T22:00"),
        ("22:30-06:00", "2026-01-15T22:00", "2026-01-16T05:00"),
        ("22:00-06:00", "2026-03-28T22:00", "2026-03-29T04:00"),
        ("22:00-06:00", "2026-10-24T22:00", "2026-10-25T05:00"),
        ("01:00-02:30", "2026-10-24T23:30", "2026-10-25T00:30"),
    ],
)
def test_when_it_opens(closed: str, now: str, opens: str) -> None:
    found = hours(ZURICH, closed).opening(datetime.fromisoformat(now).replace(tzinfo=UTC))
    assert found == datetime.fromisoformat(opens).replace(tzinfo=UTC)


def test_when_it_closes() -> None:
    now = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert hours(ZURICH).closing(now) is None
    assert hours(ZURICH, "18:00-23:00").closing(now) == now.replace(hour=17)
    # the next 02:00-03:00 but one: that of the 29th does not happen
    assert hours(ZURICH, "02:00-03:00").closing(now) == datetime(2026, 3, 30, 0, tzinfo=UTC)


def test_hours_that_never_open() -> None:
    assert hours(ZURICH, "06:00-18:00", "18:00-06:00").opening(datetime(2026, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("text", "now", "moment"),
    [
        ("06:00", "2026-01-15T04:00", "2026-01-15T05:00"),
        ("06:00", "2026-01-15T05:00", "2026-01-16T05:00"),
        ("6:00", "2026-03-28T22:00", "2026-03-29T04:00"),
        ("06:00", "2026-10-24T22:00", "2026-10-25T05:00"),
        ("02:30", "2026-10-24T22:00", "2026-10-25T00:30"),
        ("02:30", "2026-10-25T00:45", "2026-10-25T01:30"),  # it shows it a second time
        ("02:30", "2026-03-28T22:00", "2026-03-29T01:30"),  # it never shows it: half an hour after the change
        ("2026-11-22T06:00", "2026-11-21T12:00", "2026-11-22T05:00"),
        ("2026-11-22 06:00+00:00", "2026-11-21T12:00", "2026-11-22T06:00"),
    ],
)
def test_deadlines(text: str, now: str, moment: str) -> None:
    found = deadline(text, ZURICH, datetime.fromisoformat(now).replace(tzinfo=UTC))
    assert found == datetime.fromisoformat(moment).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("25:00", "^is neither a time of day, such as 06:00, nor a date with a time, such as 2026-11-22T06:00.$"),
        ("six", "neither"),
        ("2026-11-22", "neither"),
        ("2026-11-31T06:00", "neither"),
        ("2020-01-01T00:00", "passed"),
    ],
)
def test_deadlines_that_are_none(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        deadline(text, ZURICH, datetime(2026, 11, 21, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "words"),
    [("18:00", "no part of a day"), ("18:00-18:00", "begins when it ends"), ("18:00-24:00", "no time of day")],
)
def test_windows_that_are_none(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        window(text)


def test_words() -> None:
    assert window(" 8:05 - 23:00 ") == Window(clock("08:05"), clock("23:00"))
    assert str(window("8:05-23:00")) == "08:05-23:00"


def test_zones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Did you mean Europe/Zurich"):
        zone("Europe/Zurch")
    for wrong in ("", "../../etc/passwd", "/etc/passwd", "Europe", "\0"):
        with pytest.raises(ValueError, match="is no time zone"):
            zone(wrong)
    localtime = tmp_path / "localtime"
    assert zone_of(None, localtime).key == "UTC"
    localtime.symlink_to("/usr/share/zoneinfo/Europe/Zurich")
    assert zone_of(None, localtime).key == "Europe/Zurich"
    assert zone_of(":America/New_York", localtime).key == "America/New_York"
    assert zone_of("nonsense", localtime).key == "Europe/Zurich"


def test_a_window_keeps_its_length_but_when_clocks_change() -> None:
    """Every minute of two years: what is closed is what the wall shows."""
    night, minute = hours(ZURICH, "22:30-06:00"), timedelta(minutes=1)
    closed: dict[str, int] = {}
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    while now.year < 2027:
        begin = night.closing(now)
        end = night.opening(begin)
        closed[f"{begin:%m-%d}"] = round((end - begin) / minute)
        now = end
    odd = {day: length for day, length in closed.items() if length != 450}
    assert odd == {"03-28": 390, "10-24": 510}
