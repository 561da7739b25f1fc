"""Options that several commands share: selection, schedule, hosts and cluster, output; and what they mean together."""

import argparse
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from quicsat.cli import console
from quicsat.cli.parser import Once
from quicsat.cli.program import CommandOptions, Program, flag, option
from quicsat.config import hosts, quantities
from quicsat.config.flows import parse_flow, parse_pair
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import REAL_TIME_RATE
from quicsat.model.errors import InputError
from quicsat.model.flow import Flow
from quicsat.model.names import did_you_mean
from quicsat.model.perturbation import LARGEST, NONE, USUAL, Amplitudes
from quicsat.model.real_link import Host, Scheduler
from quicsat.model.results import Schedule
from quicsat.model.test_case import TestCase
from quicsat.model.text import quoted
from quicsat.model.units import mbit_per_s, percent
from quicsat.plan import order, time_windows
from quicsat.plan.limits import CampaignLimits

AS_BEGUN = 0
"""Value of ``--parallel`` if it is not given: one run at a time, or as the resumed campaign began."""
MOST_TESTBEDS = 32
"""A larger ``--parallel`` is taken for a typing error."""
HIGHEST_PORT = 65535
LOCK_FILE = Path("images.lock")
"""Usual name of the lock file of images, in the working directory."""
AMPLITUDES = {
    "delay": quantities.within(quantities.share, "0 %", percent(LARGEST.delay)),
    "rate": quantities.within(quantities.share, "0 %", percent(LARGEST.rate)),
    "start": quantities.within(quantities.duration, "0 s", f"{LARGEST.start:g} s"),
    "cpu": quantities.within(quantities.share, "0 %", percent(LARGEST.cpu)),
    "wake-up": quantities.within(quantities.share, "0 %", percent(LARGEST.wake_up)),
}
"""What ``--perturb`` reads, by name."""
ORDER = "order and shards"
QIR, QIR_SE = "qir", "qir-se"
"""Formats of JSON files for other runners' pages and scripts."""
TEXT_FORMATS = ("text", "markdown", "csv", "latex")


# ---- values ---------------------------------------------------------------------------------


def _clock(word: str) -> Clock:
    return Clock(quantities.one_of(Clock)(word))


port = quantities.within(quantities.count, "0", str(HIGHEST_PORT))
"""A TCP port on which to serve; 0 is any free one."""


def _amplitudes(word: str) -> Amplitudes:
    """``delay=2%,start=0s``; what is not named has its usual amplitude. ``0``: there are none."""
    if word == "0":
        return NONE
    found = dict[str, float]()
    for part in word.split(","):
        name, _, value = map(str.strip, part.partition("="))
        if not value:
            raise ValueError(f"is neither 0 nor a list such as {USUAL.words}.")
        if name not in AMPLITUDES:
            known = ", ".join(AMPLITUDES)
            raise ValueError(
                f"has the unknown quantity {quoted(name)}; known: {known}.{did_you_mean(name, AMPLITUDES)}"
            )
        if name in found:
            raise ValueError(f"has {name} more than once.")
        try:
            found[name] = AMPLITUDES[name](value)
        except ValueError as fault:
            raise ValueError(f"is wrong: {quoted(value)} {fault}") from None
    return replace(USUAL, **{name.replace("-", "_"): value for name, value in found.items()})


def _in_help(text: str) -> str:
    return text.replace("%", "%%")


def _shard(word: str) -> str:
    order.shard(word)
    return word


def scheduler_address(word: str) -> str:
    """The address of a Dask scheduler; raises ArgumentTypeError if it is none."""
    match = re.fullmatch(r"([a-z]+://)?(\[[\w:.%]+\]|[^\s/:\[\]]+):([0-9]{1,5})", word)
    if match is not None and not 1 <= int(match[3]) <= HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{word!r} has a wrong port; allowed: 1 to {HIGHEST_PORT}")
    if match is None:
        message = f'{word!r} is not the address of a Dask scheduler; example: "tcp://scheduler:8786"'
        raise argparse.ArgumentTypeError(message)
    return word


def parallel(word: str) -> int | None:
    """A number of runs at a time; None for ``auto``."""
    if word.casefold() == "auto":
        return None
    if word.isdecimal() and 1 <= int(word) <= MOST_TESTBEDS:
        return int(word)
    message = f"{word} is neither auto nor a number from 1 to {MOST_TESTBEDS}"
    raise argparse.ArgumentTypeError(message)


# ---- declarations ---------------------------------------------------------------------------

CAMPAIGN = option(
    type=Path, nargs="?", metavar="DIR",
    help="Directory of the campaign (default: results/latest; example: results/a).",
)  # fmt: skip
MARKDOWN = flag("-m", "--markdown", help="Print tables as Markdown.")
FORMAT = option(
    "--format", choices=TEXT_FORMATS, default="text", metavar="FORMAT",
    help=f"Print tables in this format: {', '.join(TEXT_FORMATS)} (default: text; example: csv).",
)  # fmt: skip
CLUSTER_TLS = option(
    "--cluster-tls", type=Path, metavar="DIR",
    help="Directory with ca.pem, cert.pem and key.pem, for a tls:// address (default: none; example: ~/tls).",
)  # fmt: skip


class SelectionOptions(CommandOptions, group="selection"):
    """What is run: implementations, test cases, images, and how the runs are ordered and shared out."""

    server: list[str] = option(
        "-s", "--server", nargs="+", action="extend", default=[], metavar="NAME",
        help="Implementations to measure as servers (default: all that can act as servers; "
        "example: quic-go picoquic:bbr quic-go@v0.54.1).",
    )  # fmt: skip
    client: list[str] = option(
        "-c", "--client", nargs="+", action="extend", default=[], metavar="NAME",
        help="Implementations to measure as clients (default: all that can act as clients; example: aioquic).",
    )  # fmt: skip
    test: list[str] = option(
        "-t", "--test", nargs="+", action="extend", default=[], metavar="NAME",
        help="Test cases or families by name or abbreviation, or your own YAML files "
        "(default: the tests and measurements of the QUIC Interop Runner, terrestrial, sat and satloss; "
        "example: sat ./my-link.yaml).",
    )  # fmt: skip
    beside: list[list[Flow]] = option(
        "--with", nargs="+", action="append", default=[], parse=parse_flow, metavar="FLOW",
        help="Add flows that share the link, each as SERVER/CLIENT or same, optionally followed by @ and a start "
        "delay; each --with defines another set of flows (default: none; example: nginx-tcp/curl@2s).",
    )  # fmt: skip
    replace: list[str] = option(
        "-r", "--replace", nargs="+", action="extend", default=[], metavar="NAME=IMAGE",
        help="Use another image for an implementation (default: the image in implementations.json; "
        "example: quic-go=me/my-build:dev).",
    )  # fmt: skip
    must_include: list[str] = option(
        "-i", "--must-include", nargs="+", action="extend", default=[], metavar="NAME",
        help="Measure only pairs that contain at least one of these implementations, as the server or as the client "
        "(default: all pairs; example: quic-go).",
    )  # fmt: skip
    pairs: list[str] = option(
        "--pairs", nargs="+", action="extend", default=[], parse=parse_pair, metavar="SERVER/CLIENT",
        help="Measure only these pairs, which also select their servers and clients "
        "(default: each server with each client; example: quic-go/aioquic picoquic:bbr/quic-go).",
    )  # fmt: skip
    repetitions: int | None = option(
        "--repetitions", parse=quantities.count, metavar="N",
        help="Measure each pair and test case N times (default: as in the test case; example: 10).",
    )  # fmt: skip
    timeout: float | None = option(
        "--timeout", parse=quantities.within(quantities.duration_or_seconds, "1 ms", "24 h"), metavar="DURATION",
        help="End each transfer after this time, in seconds if it has no unit (default: as in the test case; "
        'example: 2min).',
    )  # fmt: skip
    strict_upstream: bool = flag(
        "--strict-upstream",
        help="Apply the rules of the QUIC Interop Runner to functional tests (default: quicsat's rules).",
    )
    seed: int | None = option(
        "--seed", group=ORDER, parse=quantities.count, metavar="N",
        help="Seed for the random losses on links, for --shuffle, and for all random values in virtual time "
        "(default: a random seed; example: 7).",
    )  # fmt: skip
    shuffle: bool = flag(
        "--shuffle", group=ORDER, help="Run pairs and test cases in random order within each repetition."
    )
    shard: str | None = option(
        "--shard", group=ORDER, parse=_shard, metavar="I/N",
        help="Run only the I-th of N parts of the plan; all parts need the same --seed (default: 1/1; example: 2/4).",
    )  # fmt: skip


CLOCK: Clock = option(
    "--clock", parse=_clock, choices=tuple(Clock), default=Clock.REAL, metavar="CLOCK",
    help="Clock for endpoints and emulated links: real, or virtual, which is a simulated clock that the load on "
    "this machine cannot disturb (default: real; example: virtual).",
)  # fmt: skip


class ClockOptions(CommandOptions, group="clock"):
    """The clock of the runs."""

    clock: Clock = CLOCK
    cpu_cost_factor: float | None = option(
        "--cpu-cost-factor", parse=quantities.within(quantities.decimal, "0", "100"), metavar="FACTOR",
        help="In virtual time, factor of all CPU costs, above 1 for a slower machine, and 0 for one that takes no time "
        "to compute (default: 1; example: 2).",
    )  # fmt: skip
    perturb: Amplitudes | None = option(
        "--perturb", parse=_amplitudes, metavar="AMPLITUDES",
        help="In virtual time, the largest differences of further repetitions from the first one, each with its unit, "
        f"or 0 for none; at most {_in_help(LARGEST.words)} "
        f"(default: {_in_help(USUAL.words)}; example: delay=2%%,cpu=0%%).",
    )  # fmt: skip
    placebo: bool = flag("--placebo", help="Draw other CPU costs and latencies for each repetition, and nothing else.")


class ScheduleOptions(CommandOptions, group="schedule"):
    """When runs may start, and how many run at a time."""

    parallel: int | None = option(
        "--parallel", type=parallel, default=AS_BEGUN, metavar="N|auto",
        help=f"Number of parallel runs, 1 to {MOST_TESTBEDS}, or auto for as many as the CPUs allow "
        "(default: 1, auto in virtual time, or as in the resumed campaign; example: auto).",
    )  # fmt: skip
    deadline: str | None = option(
        "--deadline", metavar="TIME",
        help="Do not start runs that are unlikely to end before this time of day or date "
        "(default: none; example: 06:00 or 2026-11-22T06:00).",
    )  # fmt: skip
    max_runtime: float | None = option(
        "--max-runtime", parse=quantities.within(quantities.duration, "1 s", "8760 h"), metavar="DURATION",
        help="Do not start runs that are unlikely to end within this time from now "
        '(default: none; example: "5 h").',
    )  # fmt: skip
    pause: list[time_windows.Window] = option(
        "--pause", "--pause-between", parse=time_windows.window, action="append", default=[], metavar="HOURS",
        help="Do not start runs during these hours of the day; can be repeated "
        "(default: none; example: 18:00-23:00).",
    )  # fmt: skip
    time_zone: ZoneInfo | None = option(
        "--time-zone", parse=time_windows.zone, metavar="NAME",
        help="Time zone for --deadline and --pause (default: this machine's time zone; example: Europe/Zurich).",
    )  # fmt: skip
    breaker: int | None = option(
        "--breaker", parse=quantities.within(quantities.count, "1", "1000"), metavar="N",
        help="After N consecutive runs of an implementation that timed out or ended in an error, skip its "
        "pairs whose last run also timed out or ended in an error (default: never; example: 3).",
    )  # fmt: skip
    skip_on_failure: bool | None = option(
        "--skip-on-failure", action=argparse.BooleanOptionalAction, default=None,
        help="Skip further repetitions of a pair in a test case after one that did not succeed (default: run them).",
    )  # fmt: skip
    require: str | None = option(
        "--require", metavar="TEST",
        help="Begin with this test case, and skip all other test cases of the pairs that do not succeed in it "
        "(default: none; example: transfer).",
    )  # fmt: skip
    budget: float | None = option(
        "--budget", parse=quantities.within(quantities.duration, "1 s", "8760 h"), metavar="DURATION",
        help="Skip the remaining runs of an implementation once its runs have taken this long in total "
        '(default: no limit; example: "1 h").',
    )  # fmt: skip


class WaitOptions(CommandOptions, group="schedule"):
    """What happens if another campaign uses the Docker daemon."""

    wait: float = option(
        "--wait", nargs="?", parse=quantities.within(quantities.duration, "1 s", "8760 h"), default=0.0,
        const=math.inf, metavar="DURATION",
        help="If other campaigns use this Docker daemon, wait until they have ended, in the order of arrival, for this "
        'time or without a limit (default: end with exit status 75; example: "2 h").',
    )  # fmt: skip


class HostsOptions(CommandOptions, group="machines"):
    """The hosts file."""

    hosts: Path | None = option(
        "--hosts", type=Path, metavar="FILE",
        help="YAML file that lists the machines of real links (default: none; example: hosts.yml).",
    )  # fmt: skip


class MachineOptions(HostsOptions, WaitOptions, group="machines"):
    """Which machines carry runs out besides this one."""

    cluster: str | None = option(
        "--cluster", type=scheduler_address, metavar="ADDRESS",
        help="Run on the workers of this Dask scheduler (default: on this machine; example: tcp://scheduler:8786).",
    )  # fmt: skip
    cluster_tls: Path | None = CLUSTER_TLS


class OutputOptions(CommandOptions, group="output"):
    """What a campaign prints and writes at its end."""

    json: Path | None = option(
        "-j", "--json", type=Path, action=Once, metavar="FILE",
        help="Also write the results as JSON for pages and scripts of another runner (default: no file; "
        "example: results.json).",
    )  # fmt: skip
    json_format: str | None = option(
        "--json-format", choices=(QIR, QIR_SE), metavar="FORMAT",
        help=f"Format of -j: {QIR}, the QUIC Interop Runner's, or {QIR_SE}, that of the runner of arXiv 2202.08228 "
        f"(default: {QIR_SE}; example: {QIR}).",
    )  # fmt: skip
    markdown: bool = MARKDOWN


# ---- meaning --------------------------------------------------------------------------------


def looks(first: int, second: int | None, usual: int) -> tuple[int, int]:
    """Members of the first look, and of both together; the second number is 0 if there is no second look.

    ``usual``: of both, if none is asked for (None). Raises InputError if the second look has no further members.
    """
    if second and second <= first:
        raise InputError(f"--second-look {second}: name more than the {first} of --repetitions, or 0 for none.")
    both = usual if second is None else second
    return first, both if both > first else 0


def daemon() -> Host:
    """The Docker daemon that the user has chosen, else a local one; raises :class:`InputError`."""
    from quicsat.docker import address

    return address.default_daemon(os.environ)


def engine_for_itself(options: MachineOptions, program: Program) -> AbstractContextManager[None]:
    """Hold the lock of this machine's daemon during a campaign, unless it runs on a cluster; raises LockedError.

    It needs no large library, so that a second campaign fails at once.
    """
    from quicsat.execution import lock

    patience = lock.Patience(options.wait, console.message)
    return nullcontext() if options.cluster else lock.early(program.words[1:], os.environ, patience)


def cluster(options: MachineOptions) -> Scheduler | None:
    """The Dask scheduler of ``--cluster``, None if it is not given."""
    return Scheduler(options.cluster, options.cluster_tls) if options.cluster else None


def machines(options: MachineOptions, test_cases: Sequence[TestCase]) -> Mapping[str, Host]:
    """The hosts that the test cases need, by name; raises InputError, also if a cluster is to use them."""
    if options.hosts and options.cluster:
        raise InputError("--hosts and --cluster exclude each other: a cluster has no real links.")
    return hosts.hosts_of(test_cases, hosts.known(options.hosts), options.hosts)


def without_addresses(words: Sequence[str]) -> tuple[str, ...]:
    """A command line to store with results, which may be published: the scheduler's address is replaced."""
    kept = [re.sub(r"^--cluster=.*", "--cluster=ADDRESS", word, flags=re.S) for word in words]
    return tuple("ADDRESS" if before == "--cluster" else word for before, word in zip(["", *kept], kept, strict=False))


def cpu_cost_factor(options: ClockOptions) -> float:
    """``--cpu-cost-factor`` or its default."""
    return 1.0 if options.cpu_cost_factor is None else options.cpu_cost_factor


def amplitudes(options: ClockOptions) -> Amplitudes:
    """Of ``--perturb`` or its default, which is none in real time."""
    usual = USUAL if options.clock is Clock.VIRTUAL else NONE
    return usual if options.perturb is None else options.perturb


def check_clock(options: ClockOptions, test_cases: Sequence[TestCase]) -> None:
    """Raise :class:`InputError` if the options ask for what one clock cannot do."""
    real = [case.name for case in test_cases if case.real]
    if options.clock is Clock.VIRTUAL and real:
        raise InputError(f"Real links have no virtual time: leave out --clock virtual, or {' and '.join(real)}.")
    if options.clock is Clock.REAL:
        fast = [
            f"{case.name} ({mbit_per_s(case.emulated.highest_rate)})"
            for case in test_cases
            if not case.real and case.emulated.highest_rate > REAL_TIME_RATE
        ]
        if fast:
            limit = mbit_per_s(REAL_TIME_RATE)
            fault = f"In real time, links carry at most {limit}; use --clock virtual for {', '.join(fast)}."
            raise InputError(fault)
    if options.clock is Clock.REAL and options.cpu_cost_factor is not None:
        raise InputError("--cpu-cost-factor needs --clock virtual: in real time, computing takes the time it takes.")
    if options.clock is Clock.REAL and (options.perturb is not None or options.placebo):
        raise InputError("--perturb and --placebo need --clock virtual: in real time, runs differ anyway.")
    if options.placebo and not amplitudes(options).cpu:
        raise InputError("--placebo needs other CPU costs: leave --perturb out, or let it change cpu.")


def usual_schedule(clock: Clock) -> Schedule:
    """The schedule of a campaign without options: one run at a time in real time, one for each CPU in virtual time."""
    return Schedule(None if clock is Clock.VIRTUAL else 1)


def most_testbeds(options: ScheduleOptions, begun: Schedule) -> int | None:
    """Runs at a time: ``--parallel``, else as the campaign was ``begun``; None for as many as the CPUs allow."""
    return begun.testbeds if options.parallel == AS_BEGUN else options.parallel


def limits(
    options: ScheduleOptions, environment: Mapping[str, str], begun: Schedule, test_cases: Sequence[TestCase] = ()
) -> CampaignLimits:
    """The limits of the schedule; some of them default to those that the campaign was ``begun`` with.

    ``test_cases`` are those of the campaign. Raises InputError with all that is wrong with the options together.
    """
    now = datetime.now(UTC)
    here = options.time_zone or time_windows.zone_of(environment.get("TZ"))
    moment, problems = None, []
    if options.deadline is not None:
        try:
            moment = time_windows.deadline(options.deadline, here, now)
        except ValueError as fault:
            problems.append(f"--deadline {quoted(options.deadline)} {fault}")
    closed = time_windows.Hours(here, tuple(options.pause)) if options.pause else None
    if closed is not None and closed.opening(now) is None:
        problems.append("--pause leaves no time of the day in which a run may start.")
    required = begun.required
    if options.require is not None:
        found = [case.name for case in test_cases if case.has_label(options.require)]
        required = found[0] if len(found) == 1 else None
        if required is None:
            problems.append(f"--require {quoted(options.require)} is none of the selected test cases.")
    if problems:
        raise InputError(*problems)
    return CampaignLimits(
        closed,
        moment,
        options.max_runtime,
        options.breaker or begun.breaker,
        options.budget or begun.budget,
        required,
        begun.skip_on_failure if options.skip_on_failure is None else options.skip_on_failure,
    )
