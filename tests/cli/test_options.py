"""Options of the schedule and of virtual time, and what is wrong with them."""

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quicsat.cli import options
from quicsat.cli.parser import Parser
from quicsat.cli.program import CommandOptions
from quicsat.model.errors import InputError
from quicsat.model.perturbation import NONE, USUAL, Amplitudes
from quicsat.model.results import Schedule
from quicsat.plan.limits import CampaignLimits


def parse(*words: str, wanted: type[CommandOptions] = options.ScheduleOptions) -> Any:
    """Those ``words`` as options of a class; raises ArgumentError if one is wrong."""
    parser = Parser("run")
    parser.exit_on_error = False
    parser.declare(wanted)
    return parser.parse_args(words, wanted())


def test_no_limits() -> None:
    assert options.limits(parse(), {}, Schedule()) == CampaignLimits()


def test_limits_in_a_zone() -> None:
    words = ["--max-runtime", "5h", "--pause", "18:00-23:00", "--pause", "2:00-3:00", "--breaker", "3"]
    found = options.limits(parse(*words, "--budget", "1 h", "--deadline", "06:00"), {"TZ": "Europe/Zurich"}, Schedule())
    assert (found.hours.zone.key, [str(each) for each in found.hours.closed]) == (
        "Europe/Zurich",
        ["18:00-23:00", "02:00-03:00"],
    )
    assert (found.most_seconds, found.breaker, found.budget) == (5 * 3600, 3, 3600)
    assert found.deadline.astimezone(found.hours.zone).hour == 6
    assert timedelta(0) < found.deadline - datetime.now(UTC) <= timedelta(hours=25)
    named = options.limits(parse("--deadline", "06:00", "--time-zone", "UTC"), {"TZ": "Europe/Zurich"}, Schedule())
    assert named.deadline.hour == 6


def test_what_is_not_said_is_as_the_campaign_began() -> None:
    begun = Schedule(None, breaker=3, budget=60.0)
    assert options.most_testbeds(parse(), begun) is None
    assert options.most_testbeds(parse("--parallel", "2"), begun) == 2
    assert options.most_testbeds(parse("--parallel", "auto"), Schedule()) is None
    assert options.limits(parse(), {}, begun) == CampaignLimits(breaker=3, budget=60.0)
    assert options.limits(parse("--breaker", "5"), {}, begun) == CampaignLimits(breaker=5, budget=60.0)
    skipping = Schedule(skip_on_failure=True)
    assert options.limits(parse(), {}, skipping) == CampaignLimits(skip_on_failure=True)
    assert options.limits(parse("--no-skip-on-failure"), {}, skipping) == CampaignLimits()
    assert options.limits(parse("--skip-on-failure"), {}, Schedule()) == CampaignLimits(skip_on_failure=True)


@pytest.mark.parametrize(
    "words",
    [
        ("--pause", "8-9"),
        ("--max-runtime", "5"),
        ("--max-runtime", "0 s"),
        ("--breaker", "0"),
        ("--budget", "-1 s"),
        ("--time-zone", "Mars/Olympus"),
        ("--parallel", "0"),
    ],
)
def test_words_that_are_wrong(words: tuple[str, ...]) -> None:
    with pytest.raises(argparse.ArgumentError):
        parse(*words)


def test_faults_are_told_together() -> None:
    given = parse("--deadline", "2020-01-01T00:00", "--pause", "06:00-18:00", "--pause", "18:00-06:00")
    with pytest.raises(InputError) as caught:
        options.limits(given, {}, Schedule())
    assert [problem.split()[0] for problem in caught.value.problems] == ["--deadline", "--pause"]


def test_the_address_of_a_scheduler_is_not_stored() -> None:
    words = ["run.py", "-t", "sat", "--cluster", "tcp://10.0.0.1:8786", "--seed", "1"]
    assert options.without_addresses(words) == ("run.py", "-t", "sat", "--cluster", "ADDRESS", "--seed", "1")
    assert options.without_addresses(["--cluster=tls://x:1", "-m"]) == ("--cluster=ADDRESS", "-m")
    assert options.without_addresses(["run.py", "-t", "SAT"]) == ("run.py", "-t", "SAT")


def amplitudes(*words: str) -> Amplitudes:
    return options.amplitudes(parse(*words, wanted=options.ClockOptions))


def test_amplitudes_are_the_usual_ones_in_virtual_time() -> None:
    assert amplitudes() == NONE
    assert amplitudes("--clock", "virtual") == USUAL
    assert amplitudes("--clock", "virtual", "--perturb", "0") == NONE
    assert amplitudes("--clock", "virtual", "--perturb", USUAL.words) == USUAL
    own = amplitudes("--clock", "virtual", "--perturb", "delay=0.5%, start=2 ms,wake-up=50%")
    assert own == Amplitudes(0.005, USUAL.rate, 0.002, USUAL.cpu, 0.5)
    assert amplitudes("--clock", "virtual", "--perturb", own.words) == own


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("1%", "is neither 0 nor a list such as"),
        ("delay=1%,delay=2%", "has delay more than once"),
        ("size=1%", 'unknown quantity "size"; known: delay, rate, start, cpu, wake-up'),
        ("delay=", "is neither 0 nor a list such as"),
        ("delay=51%", '"51%" is out of range: 0 % to 50 %'),
        ("start=1", '"1" has no unit'),
    ],
)
def test_amplitudes_that_are_wrong(word: str, fault: str) -> None:
    with pytest.raises(argparse.ArgumentError, match=fault):
        amplitudes("--clock", "virtual", "--perturb", word)
