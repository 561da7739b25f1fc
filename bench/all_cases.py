"""Runs each built-in test case once, with a pair that suits it, and prints the outcomes (`make test-all-cases`).

Ready are the test cases in testcases/ and its subfolders with an emulated link, members of families too, and each
workload over the link of ``terrestrial``. Files of measurements are shortened to ``--largest``. The script ends with
status 1 if a test case does not succeed.
"""
# ruff: noqa: T201 - a script

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.script import ROOT
from quicsat.cli import campaign_report, new_campaign
from quicsat.cli import main as cli
from quicsat.cli.continuous_integration import CiRequest
from quicsat.cli.program import Program
from quicsat.cli.select_runs import ChosenRuns
from quicsat.config import loader, quantities
from quicsat.execution.run_campaign import run_campaign
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import REAL_TIME_RATE
from quicsat.model.outcomes import Check, Outcome
from quicsat.model.results import RunResult
from quicsat.model.test_case import TestCase, with_workload
from quicsat.model.units import byte_size, mbit_per_s
from quicsat.plan.make_plan import make_plan
from quicsat.plan.selection import Selection
from quicsat.report.table import Column, Table, Unit, render
from quicsat.results.store import load

QUIC, MORE_TESTS = ("picoquic", "picoquic"), ("ngtcp2", "ngtcp2")
"""Servers and clients: the first pair supports all but two functional tests over QUIC, the second one these two."""
WEBTRANSPORT, TCP = ("aioquic", "aioquic"), ("nginx-tcp", "curl")
"""Pairs for tests of WebTransport, and for links with proxies."""
LINK_OF_WORKLOADS = "terrestrial"
LARGEST = "1 MiB"
WORKLOADS = "testcases/workloads"


@dataclass(frozen=True)
class Planned:
    """A test case, and the pair that runs it."""

    case: TestCase
    pair: tuple[str, str]
    shortened: bool
    """Whether its files are smaller than they should be."""


def ready_cases(root: Path) -> list[TestCase]:
    """All test cases with an emulated link, and the workloads over one of them."""
    known = loader.load_known_test_cases(root / "testcases")
    cases = [*known.values(), *loader.load_cases_on_request(root / "testcases", known).values()]
    cases = [case for case in cases if not case.real]
    link = known[LINK_OF_WORKLOADS]
    return cases + [with_workload(link, files) for files in loader.known_workloads(root / WORKLOADS).values()]


def planned(case: TestCase, largest: int) -> Planned:
    """How a test case is run; its files have ``largest`` bytes together if they should have more."""
    shortened = not case.functional and case.workload is None and case.total_size > largest
    pair = QUIC
    if case.check in (Check.ECN, Check.MIGRATION):
        pair = MORE_TESTS
    elif case.check is Check.WEBTRANSPORT:
        pair = WEBTRANSPORT
    elif case.emulated.pep is not None:
        pair = TCP
    return Planned(replace(case, file_sizes=(largest,)) if shortened else case, pair, shortened)


def cannot_run(case: TestCase, clock: Clock) -> str:
    """Why a test case cannot run with a clock, as a sentence; empty if it can."""
    rate = case.emulated.highest_rate
    if clock is Clock.REAL and rate > REAL_TIME_RATE:
        return f"In real time, links carry at most {mbit_per_s(REAL_TIME_RATE)}, and this one {mbit_per_s(rate)}."
    return ""


def outcomes(plans: Sequence[Planned], results: Mapping[str, RunResult], clock: Clock) -> Table:
    """A row per test case."""
    columns = (
        Column("test case"), Column("server, client"), Column("files"), Column("outcome"), Column("goodput", Unit.RATE),
        Column("transfer", Unit.SECONDS, 1), Column("attempts", Unit.COUNT), Column("why"),
    )  # fmt: skip
    rows = []
    for each in plans:
        result, case = results.get(each.case.name), each.case
        outcome = result.verdict.outcome.value if result else "not run"
        rows.append(
            (
                case.name,
                ", ".join(dict.fromkeys(each.pair)),
                byte_size(case.total_size) + (" (shortened)" if each.shortened else ""),
                outcome,
                result.measurement.values.get("goodput") if result and result.measurement else None,
                result.evidence.phases.get("transfer") if result else None,
                result.attempt if result else None,
                result.verdict.reason if result else cannot_run(case, clock),
            )
        )
    return Table("cases", f"Each built-in test case once, {clock.value} time", columns, tuple(rows))


def campaign(pair: tuple[str, str], cases: Sequence[TestCase], arguments: argparse.Namespace) -> Iterator[RunResult]:
    """The results of these test cases with one pair; those that a campaign has left in the folder are kept."""
    folder = arguments.output / "-".join(dict.fromkeys(pair))
    words = ["run", "-s", pair[0], "-c", pair[1], "--clock", arguments.clock.value, "--skip-compliance-check"]
    words += ["--parallel", arguments.parallel, "-l", str(folder)]
    options = cli.parse(words)
    implementations = loader.load_implementations(ROOT / "implementations.json")
    server, client = (implementations[name] for name in pair)
    selection = Selection((server,), (client,), tuple(cases))
    runs = make_plan((server,), (client,), cases, repetitions=1, seed=arguments.seed)
    selection = replace(selection, test_cases=tuple(dict.fromkeys(run.test_case for run in runs)))
    program, chosen = Program(ROOT, tuple(words)), ChosenRuns(selection, runs, arguments.seed)
    with new_campaign.conditions(options, program, selection) as how, campaign_report.view(how.past) as observer:
        run_campaign(new_campaign.new_campaign(options, program, chosen, CiRequest()), how, observer)
    yield from load(folder).result_set.results


def main() -> int:
    """Run them, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--clock", type=Clock, default=Clock.VIRTUAL, help="virtual (default) or real")
    parser.add_argument("--largest", type=quantities.size, default=quantities.size(LARGEST), help=f"default: {LARGEST}")
    parser.add_argument("--parallel", default="1", help="runs at a time (default: 1)")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("-o", "--output", type=Path, required=True, help="an empty folder")
    arguments = parser.parse_args()
    plans = [planned(case, arguments.largest) for case in ready_cases(ROOT)]
    able = [each for each in plans if not cannot_run(each.case, arguments.clock)]
    results: dict[str, RunResult] = {}
    for pair in dict.fromkeys(each.pair for each in able):
        mine = [each.case for each in able if each.pair == pair]
        results |= {result.test_case: result for result in campaign(pair, mine, arguments)}
    print(render(outcomes(plans, results, arguments.clock), "markdown"))
    succeeded = sum(result.verdict.outcome is Outcome.SUCCEEDED for result in results.values())
    print(f"\n{succeeded} of {len(able)} succeeded; {len(plans) - len(able)} cannot run with this clock.")
    return int(succeeded < len(able))


if __name__ == "__main__":
    sys.exit(main())
