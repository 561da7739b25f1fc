"""Measures what arXiv 2202.08228 measured, and what it could not, with all implementations (`make paper`).

  python -m paper.measure --estimate                  # runs and hours of each part; measures nothing
  python -m paper.measure --part matrix --seeds 1     # all clients with all servers over three links, once
  python -m paper.measure --part matrix --seeds 1 2 3 4 5  # the rest of it: finished campaigns are left as they are
  python -m paper.measure --part matrix --shard 1/2   # one of two machines; `./run.py merge` merges the shards
  python -m paper.measure --part repeat --seeds 1     # on another day: 5 % of the matrix again, with the same seed
                                                      # (and with later seeds a quarter of the part spread)

Each part consists of ordinary campaigns, one for each seed, in ``results/paper/PART-SEED``. A campaign that was
interrupted continues with the next call. Words after ``--`` go to `run` and `resume`, for example
``-- --max-runtime "2 h"``. After a campaign, its traces are removed (about 15 GB for one seed of the matrix); with the
same seed, virtual time makes them again.

Images come from local builds, so that everybody measures the same sources. All parts but ``real`` are measured in
virtual time.
"""
# ruff: noqa: T201 - a script

import argparse
import random
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quicsat.cli import main as cli
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.select_runs import select
from quicsat.config.loader import load_implementations
from quicsat.execution.remaining_work import remaining_work
from quicsat.model.clock import Clock
from quicsat.model.implementation import Implementation, Protocol, Role
from quicsat.model.run import Run
from quicsat.plan.duration_estimate import Durations, Span
from quicsat.report.table import Column, Table, Unit, render
from quicsat.results.store import JOURNAL, load, newest

ROOT = Path(__file__).resolve().parent.parent
LINKS = ("terrestrial", "sat", "satloss")
QUEUES = "testcases/paper/queue.yaml"
SWEEPS = "testcases/paper/sweeps.yaml"
DELAYS = "testcases/paper/delays.yaml"
LIMITS = "testcases/paper/limits.yaml"
CLIENTS_OF_VARIANTS = ("quic-go", "quiche", "ngtcp2", "picoquic")
CLIENTS_OF_WINDOWS = ("quic-go", "openssl", "quiche")
"""Clients with their own windows, beside those that have variants with other windows."""
SERVERS_OF_WINDOWS = ("picoquic", "lsquic", "quinn")
SWEPT = ("quic-go", "picoquic", "quiche", "quinn", "ngtcp2", "s2n-quic")
"""Implementations of the sweeps, each with itself, and of the smaller matrices: spread, delays, and in real time."""
MEASURED = ("aioquic", "msquic")
"""The other servers whose system calls had a measured cost when the report was made."""
SLOW = ("aioquic", "openssl", "go-x-net", "kwik")
"""Servers with Reno that reach the time limit of satloss."""
CLIENT_OF_OTHERS = "ngtcp2"
"""The client of servers that have only one in real time. Its windows are large."""
SEEDS = (1, 2, 3, 4, 5)
REPETITIONS_IN_REAL_TIME = 3
MOST_CAMPAIGNS = 1000
REPEATED = 20
"""One cell of the matrix in so many is measured again."""
REPEATED_OF_SPREAD = 4
"""One cell in so many of the smaller part ``spread``."""
PARALLEL_IN_VIRTUAL_TIME = 2
"""Runs at a time that an estimate assumes for virtual time."""


@dataclass(frozen=True)
class Campaign:
    """An ordinary campaign: its directory below the results, and what `run` is told."""

    name: str
    words: tuple[str, ...]
    clock: Clock = Clock.VIRTUAL

    @property
    def command(self) -> tuple[str, ...]:
        """The words of `run`, without the directory."""
        return ("run", *self.words, "--clock", self.clock.value, "--images", "build", "--no-qlog", "--yes")


def of_role(known: Mapping[str, Implementation], role: Role) -> list[str]:
    """Names of the implementations that can be built here and transfer files over hq in a role."""
    return [
        name
        for name, each in known.items()
        if role in each.roles and each.build is not None and Protocol.HQ in each.protocols
    ]


def congestion_controls(known: Mapping[str, Implementation]) -> list[str]:
    """All variants that select a congestion control of a server, as ``picoquic:bbr``."""
    return [
        f"{name}:{variant.name}"
        for name in of_role(known, Role.SERVER)
        for variant in known[name].variants
        if variant.server and variant.congestion_control == variant.name
    ]


def matrix(known: Mapping[str, Implementation], seed: int) -> list[Campaign]:
    """All clients with all servers: over all links with the first seed, over the link with random loss with others."""
    pairs = ("-s", *of_role(known, Role.SERVER), "-c", *of_role(known, Role.CLIENT))
    links = LINKS if seed == SEEDS[0] else LINKS[-1:]
    return [Campaign(f"matrix-{seed}", (*pairs, "-t", *links, *_once(seed)))]


def spread(_: Mapping[str, Implementation], seed: int) -> list[Campaign]:
    """Six clients with six servers over the links without random loss, with the seeds after the first."""
    words = ("-s", *SWEPT, "-c", *SWEPT, "-t", *LINKS[:-1], *_once(seed))
    return [] if seed == SEEDS[0] else [Campaign(f"spread-{seed}", words)]


def queues(known: Mapping[str, Implementation], seed: int) -> list[Campaign]:
    """The same pairs with the queue of the paper's simulator."""
    pairs = ("-s", *of_role(known, Role.SERVER), "-c", *of_role(known, Role.CLIENT))
    return [Campaign(f"queues-{seed}", (*pairs, "-t", str(ROOT / QUEUES), *_once(seed)))]


def variants(known: Mapping[str, Implementation], seed: int) -> list[Campaign]:
    """All congestion control algorithms of all servers, with four clients."""
    pairs = ("-s", *congestion_controls(known), "-c", *CLIENTS_OF_VARIANTS)
    return [Campaign(f"variants-{seed}", (*pairs, "-t", *LINKS[1:], *_once(seed)))]


def sweeps(_: Mapping[str, Implementation], seed: int) -> list[Campaign]:
    """Queue, delay, loss and size, each of six implementations with itself."""
    return [
        Campaign(f"sweeps-{name}-{seed}", ("-s", name, "-c", name, "-t", str(ROOT / SWEEPS), *_once(seed)))
        for name in SWEPT
    ]


def delays(_: Mapping[str, Implementation], seed: int) -> list[Campaign]:
    """Six clients with six servers over links whose delay hardly differs."""
    words = ("-s", *SWEPT, "-c", *SWEPT, "-t", str(ROOT / DELAYS), *_once(seed))
    return [Campaign(f"delays-{seed}", words)]


def limits(_: Mapping[str, Implementation], seed: int) -> list[Campaign]:
    """Servers that reach the time limit of satloss, with more time and the first seed of the matrix."""
    words = ("-s", *SLOW, "-c", *CLIENTS_OF_VARIANTS, "-t", str(ROOT / LIMITS), *_once(seed))
    return [Campaign(f"limits-{seed}", words)] if seed == SEEDS[0] else []


def windows(known: Mapping[str, Implementation], seed: int) -> list[Campaign]:
    """Clients with smaller and larger receive windows over sat."""
    variants_of = {
        name: [f"{name}:{variant.name}" for variant in known[name].variants if variant.name.startswith("window-")]
        for name in of_role(known, Role.CLIENT)
    }
    clients = [word for name, mine in variants_of.items() if mine for word in (name, *mine)]
    pairs = ("-s", *SERVERS_OF_WINDOWS, "-c", *CLIENTS_OF_WINDOWS, *clients)
    return [Campaign(f"windows-{seed}", (*pairs, "-t", "sat", *_once(seed)))]


def real(known: Mapping[str, Implementation], seed: int) -> list[Campaign]:
    """Runs in real time, with the first seeds: the link drops the same packets as in matrix.

    Six clients with six servers; over the links without random loss, the same clients with two other servers, and one
    client with the rest; over the link with random loss, one client with the other servers that are fast enough for
    its time limit.
    """
    if seed not in SEEDS[:REPETITIONS_IN_REAL_TIME]:
        return []
    rest = [name for name in of_role(known, Role.SERVER) if name not in SWEPT]
    others = [name for name in rest if name not in MEASURED]
    fast = [name for name in rest if name not in SLOW]
    plans = {
        "real": ("-s", *SWEPT, "-c", *SWEPT, "-t", *LINKS),
        "real-others": ("-s", *others, "-c", CLIENT_OF_OTHERS, "-t", *LINKS[:-1]),
        "real-measured": ("-s", *MEASURED, "-c", *SWEPT, "-t", *LINKS[:-1]),
        "real-loss": ("-s", *fast, "-c", CLIENT_OF_OTHERS, "-t", LINKS[-1]),
    }
    return [Campaign(f"{name}-{seed}", (*words, *_once(seed)), Clock.REAL) for name, words in plans.items()]


def repeat(known: Mapping[str, Implementation], seed: int) -> list[Campaign]:
    """Every so many-th cell of matrix and spread again, from a random one on, with the same seed, in random order."""
    again = [_sample(each, f"repeat-{seed}", REPEATED, seed) for each in matrix(known, seed)]
    return again + [_sample(each, f"repeat-spread-{seed}", REPEATED_OF_SPREAD, seed) for each in spread(known, seed)]


def _sample(campaign: Campaign, name: str, one_in: int, seed: int) -> Campaign:
    shard = f"{random.Random(seed).randint(1, one_in)}/{one_in}"
    return Campaign(name, (*campaign.words, "--shuffle", *_shard(shard)))


PARTS: Mapping[str, Callable[[Mapping[str, Implementation], int], list[Campaign]]] = {
    "matrix": matrix,
    "spread": spread,
    "queues": queues,
    "variants": variants,
    "sweeps": sweeps,
    "delays": delays,
    "limits": limits,
    "windows": windows,
    "real": real,
    "repeat": repeat,
}


def _once(seed: int) -> tuple[str, ...]:
    return ("--repetitions", "1", "--seed", str(seed))


def campaigns(part: str, seeds: Sequence[int]) -> list[Campaign]:
    """The campaigns of a part, those of the first seed first."""
    known = load_implementations(ROOT / "implementations.json")
    return [each for seed in seeds for each in PARTS[part](known, seed)]


@cache
def planned(campaign: Campaign, shard: str) -> tuple[Run, ...]:
    """The runs of a campaign."""
    options = cli.parse([*campaign.command, *_shard(shard)])
    return select(options, ROOT).runs


def _shard(shard: str) -> list[str]:
    return ["--shard", shard] if shard else []


@dataclass(frozen=True)
class Estimate:
    """What is left of a part."""

    part: str
    runs: int
    left: int
    wall: Span
    """Seconds."""


def left_of(campaign: Campaign, results: Path, shard: str) -> Sequence[Run]:
    """The runs of a campaign that have no result yet, or that ended in an error."""
    if has_begun(campaign, results):
        return remaining_work(load(results / campaign.name), ()).runs
    return planned(campaign, shard)


def has_begun(campaign: Campaign, results: Path) -> bool:
    """Whether the campaign has a directory."""
    return (results / campaign.name / JOURNAL).is_file()


def estimate(part: str, many: Sequence[Campaign], results: Path, shard: str) -> Estimate:
    """Runs and duration of a part, from what has been measured below ``results``."""
    past = newest(results, MOST_CAMPAIGNS)
    runs, left, wall = 0, 0, Span(0.0, 0.0)
    for campaign in many:
        durations = Durations(each for each in past if each.manifest.clock is campaign.clock)
        plan, rest = planned(campaign, shard), left_of(campaign, results, shard)
        at_a_time = PARALLEL_IN_VIRTUAL_TIME if campaign.clock is Clock.VIRTUAL else 1
        span = durations.total(rest)
        wall = Span(wall.low + span.low / at_a_time, wall.high + span.high / at_a_time)
        runs, left = runs + len(plan), left + len(rest)
    return Estimate(part, runs, left, wall)


def table(estimates: Sequence[Estimate]) -> Table:
    """A row per part."""
    columns = (
        Column("part"), Column("runs", Unit.COUNT), Column("left", Unit.COUNT), Column("duration of those"),
    )  # fmt: skip
    note = (
        "From campaigns in the results that have runs of the same test cases. "
        f"{PARALLEL_IN_VIRTUAL_TIME} runs at a time in virtual time, one in real time."
    )
    rows = tuple((each.part, each.runs, each.left, str(each.wall)) for each in estimates)
    return Table("estimate", "What is left to measure", columns, rows, (note,))


def measure(campaign: Campaign, results: Path, shard: str, words: Sequence[str]) -> int:
    """Run or resume a campaign, and remove its traces; its exit status."""
    directory = results / campaign.name
    if has_begun(campaign, results):
        command = ["resume", str(directory), *words]
    else:
        command = [*campaign.command, "-l", str(directory), *_shard(shard), *words]
    status = call(*command)
    if call("prune", str(results), "--traces", "0", "--yes"):
        print("The traces could not be removed.", flush=True)
    return status


def call(*words: str) -> int:
    """Call the command line, and show the command; its exit status."""
    print(f"\n./run.py {shlex.join(words)}", flush=True)
    return subprocess.run([sys.executable, str(ROOT / "run.py"), *words], check=False).returncode


def main() -> int:
    """Print the estimate, then measure part by part; stops where a campaign could not be measured to its end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), help="default: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS), metavar="N", help="default: 1 2 3 4 5")
    parser.add_argument("--shard", default="", metavar="I/N", help="measure only this part of each campaign")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "results" / "paper", metavar="DIR", help="default: results/paper"
    )  # fmt: skip
    parser.add_argument("--estimate", action="store_true", help="measure nothing")
    parser.add_argument("words", nargs="*", metavar="-- WORD", help="for `run` and `resume`")
    options = parser.parse_args()
    if options.shard and "repeat" in options.part:
        parser.error("--shard: the part repeat has no shards; name the other parts with --part.")
    parts = {part: campaigns(part, options.seeds) for part in options.part}
    estimates = [estimate(part, many, options.results, options.shard) for part, many in parts.items()]
    print(render(table(estimates), "text"), flush=True)
    worst = 0
    left = [each for many in parts.values() for each in many if left_of(each, options.results, options.shard)]
    for campaign in [] if options.estimate else left:
        status = measure(campaign, options.results, options.shard, options.words)
        if status not in (ExitStatus.SUCCESS, ExitStatus.FAILURE, ExitStatus.MACHINE):
            return status
        worst = max(worst, status)
    return worst


if __name__ == "__main__":
    sys.exit(main())
