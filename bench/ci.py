"""Tries the GitHub action with images of changed and unchanged builds: are changes found, and how long does it take?

  python -m bench.ci -o DIR --baseline me/quic-go:main --images me/quic-go:change --unchanged 10

It runs the action's step "Measure" as GitHub does, first with the image of ``--baseline`` to get a baseline, then with
each of ``--images``, and then ``--unchanged`` times with the first image again. It prints a Markdown table. All images
must exist at the daemon. Reports are in DIR.
"""
# ruff: noqa: T201 - a script

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import yaml

from bench.script import ROOT
from quicsat.report.table import Column, Table, Unit, render
from quicsat.results.store import load
from quicsat.statistics.samples import GOODPUT, samples

EXPRESSION = re.compile(r"\$\{\{ ([\w.-]+) \}\}")


@dataclass(frozen=True)
class ActionStep:
    """A step of ``ci/github/action.yml`` that runs a script."""

    name: str

    def run(
        self, inputs: Mapping[str, str], folder: Path, environment: Mapping[str, str], action: Path
    ) -> subprocess.CompletedProcess[str]:
        """Run it in ``folder`` as GitHub does: the values of expressions only come in as variables.

        ``action``: its folder; ``environment``: further variables.
        """
        declared = yaml.safe_load((action / "action.yml").read_text())
        step = next(each for each in declared["runs"]["steps"] if each["name"] == self.name)
        values = {key: str(entry.get("default", "")) for key, entry in declared["inputs"].items()} | dict(inputs)
        contexts = {f"inputs.{key}": value for key, value in values.items()}
        contexts |= {"runner.temp": str(folder), "github.repository": "me/it", "github.token": "none"}
        contexts |= {"github.event.pull_request.number": "7"}
        own = {
            key: EXPRESSION.sub(lambda match: contexts[match[1]], value) for key, value in step.get("env", {}).items()
        }
        script = folder / "step.sh"
        script.write_text(step["run"])
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        variables = {**environment, "GITHUB_ACTION_PATH": str(action), **own}
        return subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class Try:
    """One call of the action."""

    image: str
    status: int
    duration: float
    """Seconds."""
    findings: str
    """The last line of its output."""
    goodputs: dict[tuple[str, str, str], float | None]
    """Mean goodput by server, client and test case, bit/s."""


def call(folder: Path, inputs: Mapping[str, str]) -> Try:
    """Run the action's step in a folder."""
    folder.mkdir(parents=True)
    summary = folder / "summary.md"
    environment = {**os.environ, "GITHUB_STEP_SUMMARY": str(summary)}
    began = time.monotonic()
    done = ActionStep("Measure").run(inputs, folder, environment, ROOT / "ci/github")
    duration = time.monotonic() - began
    (folder / "output.txt").write_text(f"{done.stdout}\n{done.stderr}")
    results = load(folder / "quicsat-report/campaign").result_set
    found = [sample for case in results.manifest.test_cases for sample in samples(results, case.name, GOODPUT)]
    goodputs = {(each.server, each.client, each.test_case): each.mean for each in found if each.outcomes}
    return Try(inputs["image"], done.returncode, duration, _findings(folder), goodputs)


def _findings(folder: Path) -> str:
    """``4 failures, 0 errors of 7 cells``, from the JUnit report."""
    report = folder / "quicsat-report/junit.xml"
    if not report.is_file():
        return "no report"
    root = ElementTree.parse(report).getroot()
    return f"{root.get('failures')} failures, {root.get('errors')} errors of {root.get('tests')} cells"


def table(tries: list[Try]) -> Table:
    """A row per call."""
    columns = (
        Column("image"), Column("exit status", Unit.COUNT), Column("duration", Unit.SECONDS, 0), Column("report"),
        Column("cells with exactly the goodput of the baseline", Unit.COUNT),
    )  # fmt: skip
    first = tries[0].goodputs
    rows = tuple(
        (
            each.image,
            each.status,
            each.duration,
            each.findings,
            sum(first[key] == each.goodputs.get(key) for key in first),
        )
        for each in tries
    )
    return Table("ci", "Calls of the action; the first one makes the baseline", columns, rows)


def main() -> int:
    """Run the calls, and print the table after each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory, which must not exist")
    parser.add_argument("--implementation", default="quic-go", help="implementation under test")
    parser.add_argument("--baseline", required=True, help="image for the baseline")
    parser.add_argument("--images", nargs="*", default=[], help="images of changes")
    parser.add_argument("--unchanged", type=int, default=0, help="further calls with the first image")
    parser.add_argument("--partners", default="picoquic quinn ngtcp2", help="partners in one word")
    parser.add_argument("--tests", default="sat", help="test cases in one word")
    parser.add_argument("--repetitions", default="1", help="repetitions of each cell")
    parser.add_argument("--expect", default="", help="further lines of the file of expectations")
    arguments = parser.parse_args()
    root: Path = arguments.output.absolute()
    inputs = {name: getattr(arguments, name) for name in ("implementation", "partners", "tests", "repetitions")}
    tries = [call(root / "baseline", {**inputs, "image": arguments.baseline})]
    expect = root / "quicsat.yml"
    expect.write_text(f"baseline: baseline/quicsat-report/baseline.json\n{arguments.expect}\n")
    for number, image in enumerate([*arguments.images, *([arguments.baseline] * arguments.unchanged)], start=1):
        tries.append(call(root / str(number), {**inputs, "image": image, "expect": str(expect)}))
        print(render(table(tries), "markdown"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
