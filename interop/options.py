"""The options of the commands that measure: run, plan and resume."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from interop import hours, order, quantities
from interop.errors import InputError
from interop.limits import Limits
from interop.model import Outcome, Schedule, Scheduler
from interop.names import quoted

T = TypeVar("T")

AS_BEGUN = 0
"""For ``--parallel`` that is not given: one run after another, or as the campaign that is continued began."""
MOST_TESTBEDS = 32
"""More than that is taken for a slip of the finger."""


def add_selection(parser: argparse.ArgumentParser) -> None:
    """What is to be run with what."""
    several = {"nargs": "+", "action": "extend", "default": [], "metavar": "NAME"}
    parser.add_argument("-s", "--server", help="implementations that serve", **several)  # type: ignore[arg-type]
    parser.add_argument("-c", "--client", help="implementations that fetch", **several)  # type: ignore[arg-type]
    parser.add_argument("-t", "--test", help="test cases, abbreviations or YAML files", **several)  # type: ignore[arg-type]
    parser.add_argument(
        "-r", "--replace", nargs="+", action="extend", default=[], metavar="NAME=IMAGE", help="use another image"
    )
    parser.add_argument("--repetitions", type=int, metavar="N", help="instead of the test cases' own")
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="of a transfer, instead of the test cases' own"
    )
    parser.add_argument(
        "--strict-upstream", action="store_true", help="judge functional tests by the QUIC Interop Runner's own rules"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="of the links' losses and of --shuffle; drawn and recorded if not given"
    )
    parser.add_argument(
        "--shuffle", action="store_true", help="pairs and test cases in random order, repetition by repetition"
    )
    parser.add_argument(
        "--shard",
        type=worded(_shard),
        metavar="I/N",
        help="only the I-th of N parts of the plan, the same for the same --seed; see merge",
    )


def add_images(parser: argparse.ArgumentParser) -> None:
    """What is done with which images."""
    parser.add_argument(
        "action",
        choices=("list", "sources", "build", "pull", "check"),
        help="sources: version, commit, patches and build type; check: compliance and two transfers",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="implementations, or simulator; all if none is named")
    parser.add_argument("-m", "--markdown", action="store_true", help="for sources: as Markdown")


def add_execution(parser: argparse.ArgumentParser) -> None:
    """How a new campaign is to be carried out."""
    parser.add_argument("-l", "--log-dir", type=Path, metavar="DIR", help="campaign directory; default: results/<date>")
    parser.add_argument("-f", "--save-files", action="store_true", help="keep the files of runs that do not succeed")
    parser.add_argument(
        "--images", choices=("auto", "local", "pull", "build"), default="auto", help="where images come from"
    )
    parser.add_argument(
        "--bare-link", type=float, default=0.0, metavar="SECONDS", help="fill real links with TCP first (iperf3)"
    )
    parser.add_argument("--no-qlog", action="store_true", help="ask the endpoints for no qlog, which slows some down")
    parser.add_argument("--skip-compliance-check", action="store_true", help="trust the images")
    _add_common(parser)


def add_resume(parser: argparse.ArgumentParser) -> None:
    """How a campaign is to be continued."""
    parser.add_argument("directory", type=Path, nargs="?", default=Path("results", "latest"), metavar="DIR")
    parser.add_argument(
        "--retry",
        nargs="+",
        action="extend",
        default=[],
        choices=[
            each.value
            for each in (Outcome.FAILED, Outcome.TIMEOUT, Outcome.UNSUPPORTED, Outcome.SKIPPED, Outcome.ERROR)
        ],
        help="make runs that ended so again, too; those that ended by a fault of ours always are",
    )
    _add_common(parser)


def add_schedule(parser: argparse.ArgumentParser) -> None:
    """When runs may begin, and how many side by side."""
    parser.add_argument(
        "--deadline", metavar="TIME", help="begin no run that is not likely to end before, 06:00 or 2026-11-22T06:00"
    )
    parser.add_argument(
        "--max-runtime",
        type=worded(quantities.within(quantities.duration, "1 s", "8760 h")),
        metavar="DURATION",
        help='begin no run that is not likely to end in this time, "5 h"',
    )
    parser.add_argument(
        "--pause",
        type=worded(hours.window),
        action="append",
        default=[],
        metavar="HOURS",
        help="begin no run in these hours of the day, 18:00-23:00; may be given several times",
    )
    parser.add_argument(
        "--time-zone", type=worded(hours.zone), metavar="NAME", help="of the times above; default: this machine's"
    )
    parser.add_argument(
        "--breaker",
        type=worded(quantities.within(quantities.count, "1", "1000")),
        metavar="N",
        help="when N runs of an implementation in a row timed out or ended by a fault, skip its stalled pairs",
    )
    parser.add_argument(
        "--budget",
        type=worded(quantities.within(quantities.duration, "1 s", "8760 h")),
        metavar="DURATION",
        help="skip what is left of an implementation when its runs have taken this long together",
    )
    parser.add_argument(
        "--parallel",
        type=testbeds,
        default=AS_BEGUN,
        metavar="N|auto",
        help="runs at a time (default: 1, or as the campaign began); auto: as many as the CPUs have time for",
    )


def add_hosts(parser: argparse.ArgumentParser) -> None:
    """Where the ends of real links are, and testbeds of other machines."""
    parser.add_argument("--hosts", type=Path, metavar="FILE", help="other machines, for real links or with testbeds")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Whose workers carry the runs out."""
    parser.add_argument(
        "--cluster",
        type=scheduler_address,
        metavar="ADDRESS",
        help="of a Dask scheduler: its workers (run.py worker) carry the runs out, as many at a time as they offer",
    )
    parser.add_argument("--cluster-tls", type=Path, metavar="DIR", help="ca.pem, cert.pem and key.pem, for tls://")


def _add_common(parser: argparse.ArgumentParser) -> None:
    add_hosts(parser)
    add_cluster(parser)
    parser.add_argument("-j", "--json", type=Path, metavar="FILE", help="write the results for tools made for QIR-SE")
    parser.add_argument("-m", "--markdown", action="store_true", help="show the matrices as Markdown")
    add_schedule(parser)


def cluster(given: argparse.Namespace) -> Scheduler | None:
    """What the options of :func:`add_cluster` name."""
    return Scheduler(given.cluster, given.cluster_tls) if given.cluster else None


def public(words: Sequence[str]) -> tuple[str, ...]:
    """A command line as it is stored with results, which are made to be given away: without a scheduler's address."""
    told = [re.sub(r"^--cluster=.*", "--cluster=ADDRESS", word, flags=re.S) for word in words]
    return tuple("ADDRESS" if before == "--cluster" else word for before, word in zip(["", *told], told, strict=False))


def most_testbeds(given: argparse.Namespace, begun: Schedule) -> int | None:
    """What ``--parallel`` says, else as a campaign was ``begun``; None for as many as the machine has time for."""
    return begun.testbeds if given.parallel == AS_BEGUN else given.parallel


def limits(given: argparse.Namespace, environment: Mapping[str, str], begun: Schedule) -> Limits:
    """What the options of :func:`add_schedule` allow; breaker and budget, if not said, are as a campaign was ``begun``.

    Raises InputError with what is wrong with them together.
    """
    now = datetime.now(UTC)
    here = given.time_zone or hours.zone_of(environment.get("TZ"))
    moment, problems = None, []
    if given.deadline is not None:
        try:
            moment = hours.deadline(given.deadline, here, now)
        except ValueError as fault:
            problems.append(f"--deadline {quoted(given.deadline)} {fault}")
    closed = hours.Hours(here, tuple(given.pause)) if given.pause else None
    if closed is not None and closed.opening(now) is None:
        problems.append("--pause leaves no time of the day in which a run may begin.")
    if problems:
        raise InputError(*problems)
    return Limits(closed, moment, given.max_runtime, given.breaker or begun.breaker, given.budget or begun.budget)


def worded(parse: Callable[[str], T]) -> Callable[[str], T]:
    """A type for argparse, of a parser whose faults are worded to stand behind the text."""

    def parse_word(word: str) -> T:
        try:
            return parse(word)
        except ValueError as fault:
            message = f"{quoted(word)} {str(fault).removesuffix('.')}"
            raise argparse.ArgumentTypeError(message) from fault

    return parse_word


def _shard(word: str) -> str:
    order.shard(word)
    return word


def scheduler_address(word: str) -> str:
    """Where a Dask scheduler is, as it stands there."""
    if re.fullmatch(r"([a-z]+://)?(\[[\w:.%]+\]|[^\s/:\[\]]+):\d{1,5}", word) is None:
        message = f'{word!r} is no address of a Dask scheduler; write for example "tcp://scheduler:8786"'
        raise argparse.ArgumentTypeError(message)
    return word


def testbeds(word: str) -> int | None:
    """A number of testbeds; None for ``auto``."""
    if word.casefold() == "auto":
        return None
    if word.isdecimal() and 1 <= int(word) <= MOST_TESTBEDS:
        return int(word)
    message = f"{word} is neither auto nor a number from 1 to {MOST_TESTBEDS}"
    raise argparse.ArgumentTypeError(message)
