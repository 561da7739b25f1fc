"""Counts lost runs, left-over containers and wrong verdicts when ssh is cut during campaigns over a real link.

Run it with `make bench-ssh-cuts`.
The link is the laboratory's (tests/laboratory.py). Most cuts reset the connection; some let nothing through for a time,
which ssh has to notice by itself. A cut counts if a connection that was there before it is gone after it.
"""
# ruff: noqa: T201 - a script

import datetime
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.script import DAEMON, ROOT, counts_table, options_parser, run
from quicsat.docker.client import Daemon
from quicsat.docker.containers import list_containers
from quicsat.model.outcomes import Outcome
from quicsat.model.results import RunResult
from quicsat.results.document import StoredResults
from quicsat.results.store import load
from tests.laboratory import Laboratory, images_of, lab_case, laboratory, prepare

REPETITIONS = 3
"""Of a campaign; campaigns follow each other until there were cuts enough."""
LONGEST_PAUSE = 40.0
"""Seconds between two cuts at most."""
SILENCE, SHARE_OF_SILENCES = 25.0, 0.2
"""Seconds for which nothing gets through, and in what share of the cuts it is so: ssh gives up after 15 to 20."""
RECOVERY = 30.0
"""Seconds within which a connection is there to be cut."""
OURS = (Outcome.SUCCEEDED, Outcome.ERROR)
"""Outcomes of runs that cuts may have; all others blame the pair, which is sound."""


@dataclass(frozen=True)
class Cut:
    """One that has cut something."""

    time: float
    """Seconds since 1970."""
    silent: bool


@dataclass
class Case:
    """One campaign, and what became of it."""

    directory: Path
    cuts: list[Cut] = field(default_factory=list)
    vain: int = 0
    """Attempts to cut that found nothing to cut."""
    seen: bytes = b""
    """Its journal just before the last cut."""
    status: int | None = None
    left: int = 0
    """Containers on both hosts after its end."""
    said: str = ""

    @property
    def journal(self) -> bytes:
        """All that it has put down."""
        path = self.directory / "journal.jsonl"
        return path.read_bytes() if path.exists() else b""

    @property
    def record(self) -> StoredResults:
        """The same, as the program reads it."""
        return load(self.directory)

    @property
    def lost(self) -> int:
        """Lines that were in the journal before a cut and are not any more, or cannot be read."""
        before = [line for line in self.seen.splitlines(keepends=True) if line.endswith(b"\n")]
        now = self.journal.splitlines(keepends=True)
        return sum(one != other for one, other in zip(before, now, strict=False)) + max(0, len(before) - len(now))

    @property
    def blamed(self) -> list[str]:
        """Whom the campaign says to be at fault, and why: nobody is."""
        record = self.record
        found = [
            f"{result.test_case}/{result.repetition}: {result.verdict.outcome}: {result.verdict.reason}"
            for result in record.history
            if result.verdict.outcome not in OURS
        ]
        return found + [each.reason for each in record.result_set.compliance if not each.compliant]


# ---- cutting --------------------------------------------------------------------------------


def cut(lab: Laboratory, *, silent: bool) -> bool:
    """Cut what is there; whether something was, and is gone."""
    deadline = time.monotonic() + RECOVERY
    while not (before := lab.ssh_connections()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    if silent:
        with lab.silence():
            time.sleep(SILENCE)
    else:
        lab.reset_ssh()
    return bool(before - lab.ssh_connections())


def campaign(lab: Laboratory, words: list[str], case: Case, wanted: int, chance: random.Random) -> None:
    """Carry out a campaign and cut its connections until ``wanted`` cuts were made or it ends."""
    options = ["--hosts", str(lab.hosts), "--images", "local", "-l", str(case.directory)]
    command = lab.command(sys.executable, "run.py", "run", *words, *options)
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, cwd=ROOT, env=lab.environment(), stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
        )
        try:
            while process.poll() is None and not case.journal:
                time.sleep(0.1)
            while len(case.cuts) < wanted and ended_not(process, chance.uniform(0, LONGEST_PAUSE)):
                case.seen = case.journal
                now, silent = time.time(), chance.random() < SHARE_OF_SILENCES
                if cut(lab, silent=silent):
                    case.cuts.append(Cut(now, silent))
                else:
                    case.vain += 1
            case.status = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        said.seek(0)
        case.said = said.read().decode(errors="replace")
    case.left = sum(len(list_containers(Daemon(url, "cuts"))) for url in lab.sockets.values())


def ended_not(process: subprocess.Popen[bytes], patience: float) -> bool:
    """Whether a process still runs after ``patience`` seconds."""
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        return True
    return False


# ---- telling --------------------------------------------------------------------------------


def moments(case: Case) -> Iterator[str]:
    """In which phase of a run each cut fell."""
    history = case.record.history
    for each in case.cuts:
        yield next((phase for result in history if (phase := phase_at(result, each.time))), "between runs")


def phase_at(result: RunResult, moment: float) -> str:
    """The phase of a run at a time; empty if it was not under way."""
    if not result.evidence.started:
        return ""
    begin = datetime.datetime.fromisoformat(result.evidence.started).timestamp()
    for phase, duration in result.evidence.phases.items():
        if begin <= moment < begin + duration:
            return phase
        begin += duration
    return ""


def report(cases: list[Case], wanted: int) -> int:
    """Print the figures; the exit status."""
    attempts = [result for case in cases for result in case.record.history]
    results = [result for case in cases for result in case.record.result_set.results]
    cuts = [each for case in cases for each in case.cuts]
    blamed = [words for case in cases for words in case.blamed]
    odd = [case for case in cases if case.status not in (0, 3)]
    lost, left = sum(case.lost for case in cases), sum(case.left for case in cases)
    where = Counter(moment for case in cases for moment in moments(case))
    print(
        counts_table(
            [
                ("cuts that have cut a connection", len(cuts)),
                ("  of which by silence", sum(each.silent for each in cuts)),
                ("cuts that found none", sum(case.vain for case in cases)),
                *((f"  in phase {phase}", count) for phase, count in where.most_common()),
                ("campaigns", len(cases)),
                ("  that ended otherwise than by their plan", len(odd)),
                ("runs finished", len(results)),
                ("  that succeeded", sum(result.verdict.outcome is Outcome.SUCCEEDED for result in results)),
                ("  that are errors of ours", sum(result.verdict.outcome is Outcome.ERROR for result in results)),
                ("attempts that were repeated", len(attempts) - len(results)),
                ("finished results lost", lost),
                ("containers left on both hosts", left),
                ("pairs or images blamed", len(blamed)),
            ]
        )
    )
    for words in blamed:
        print(words)
    for case in odd:
        print(f"{case.directory.name}: exit status {case.status}: {case.said[-1000:]}")
    return int(bool(lost or left or blamed or odd) or len(cuts) < wanted)


def main() -> int:
    """Exit status: 0 nothing was lost or left and nobody blamed, 1 otherwise."""
    parser = options_parser(__doc__, {"--cuts": 30, "--seed": 20220208})
    parser.add_argument("--endpoint", default="quic-go", help="server and client")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    chance, cases = random.Random(options.seed), list[Case]()
    prepare(DAEMON, [options.endpoint])
    with tempfile.TemporaryDirectory(prefix="quicsat-cuts-") as folder:
        with laboratory(DAEMON, images_of(ROOT, "link-tools", options.endpoint)) as lab:
            test = Path(folder, "cuts.yaml")
            test.write_text(lab_case("cuts", "1 MiB"), encoding="utf-8")
            words = ["-s", options.endpoint, "-c", options.endpoint, "-t", str(test), "--no-qlog"]
            while (made := sum(len(case.cuts) for case in cases)) < options.cuts:
                case = Case(Path(folder, str(len(cases))))
                cases.append(case)
                campaign(lab, [*words, "--repetitions", str(REPETITIONS)], case, options.cuts - made, chance)
                if not case.journal:
                    sys.exit(f"bench-ssh-cuts: a campaign never began: {case.said[-1000:]}")
                print(f"campaign {len(cases)}: {len(case.cuts)} cuts, exit status {case.status}", flush=True)
        return report(cases, options.cuts)


if __name__ == "__main__":
    run(main)
