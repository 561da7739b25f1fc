"""Fixtures of the command line: a checkout with an engine of threads, and stored campaigns."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.cli import main as cli
from quicsat.execution import campaign_setup
from quicsat.model import product_files
from quicsat.model.clock import Clock
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Verdict
from quicsat.model.results import Measurement, ResultSet
from quicsat.model.run import Run
from quicsat.report.plot_request import Draw, Gallery, PlotRequest
from quicsat.results.store import load, write_result_json
from tests.fakes import FakeEngine, end_with, endpoint, install, judge, only_as
from tests.results_builder import SAT, SATLOSS, result_set, runs

ROOT = Path(__file__).resolve().parents[2]

GOOD = ("-s", "good", "-c", "good", "-t", "tiny")
"""A campaign of one run, which succeeds."""
LINK = "scenario: simple-p2p, delay: 15 ms, rate: 20 Mbit/s, queue: 25"
TEST_CASE = f"""\
name: tiny
abbreviation: TY
description: 3 kB over a terrestrial link
link: {{{LINK}}}
file size: 3 kB
repetitions: 1
timeout: 5 s
"""


class CommandLine:
    """The program with the files of a folder; call it with words of the command line."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self._capsys = root, capsys

    def __call__(self, *words: object, draw: Draw | None = None) -> tuple[int, str, str]:
        """Exit status, standard output, standard error."""
        try:
            status = cli.main(self.root, [*map(str, words)], draw)
        except SystemExit as ended:  # of the parser
            assert isinstance(ended.code, int)
            status = ended.code
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    def out(self, *words: object, status: int = 0, draw: Draw | None = None) -> str:
        """Standard output of a command that ends with this status."""
        ended, out, err = self(*words, draw=draw)
        assert ended == status, err
        return out

    def err(self, *words: object, status: int, draw: Draw | None = None) -> str:
        """Standard error of a command that ends with this status."""
        ended, _, err = self(*words, draw=draw)
        assert ended == status, err
        return err

    def refusal(self, *words: object, status: int = 2, draw: Draw | None = None) -> str:
        """Standard error of a command that ends with this status, and prints no result."""
        ended, out, err = self(*words, draw=draw)
        assert (ended, out) == (status, ""), err
        return err


@pytest.fixture
def quicsat(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The program with the files of this repository."""
    return CommandLine(ROOT, capsys)


class Checkout(CommandLine):
    """A checkout of its own, with a fake engine."""

    def __init__(self, root: Path, engine: FakeEngine, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(root, capsys)
        self.engine = engine

    def add_test_case(self, name: str, abbreviation: str, link: str = LINK) -> None:
        """A test case of 3 kB."""
        text = TEST_CASE.replace("name: tiny", f"name: {name}").replace("TY", abbreviation).replace(LINK, link)
        (self.root / f"testcases/{name}.yaml").write_text(text)

    @property
    def results(self) -> Path:
        return self.root / "results" / "latest"

    @property
    def stored(self) -> ResultSet:
        """The results of the newest campaign."""
        return load(self.results).result_set


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Checkout:
    root = tmp_path / "checkout"
    (root / "testcases").mkdir(parents=True)
    for name in ("ns3-scenarios", "virtual-time"):
        (root / name).symlink_to(ROOT / name)
    names = ("good", "bad", "odd")
    known = {name: {"image": f"example/{name}", "url": f"https://{name}.example", "role": "both"} for name in names}
    (root / "implementations.json").write_text(json.dumps(known))
    engine = FakeEngine(good=endpoint, bad=only_as(Role.CLIENT, end_with(1)), odd=end_with(0))
    install(engine, monkeypatch, tmp_path)
    monkeypatch.setattr(product_files, "FILES", root)
    monkeypatch.setattr(sys, "argv", ["run.py"])
    monkeypatch.setattr(campaign_setup, "analyse_once", numbers)
    made = Checkout(root, engine, capsys)
    made.add_test_case("tiny", "TY")
    return made


def numbers(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
    """Without tshark."""
    verdict, measurement = judge(run, evidence, directory)
    return verdict, Measurement({"goodput": 5e6, "efficiency": 0.25}) if measurement else None


FAST = [10e6 + 1e5 * number for number in range(10)]
SLOW = [6e6 + 1e5 * number for number in range(10)]


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    """Two campaigns, the second one slower in sat."""
    found = []
    for name, rates in (("one", FAST), ("two", SLOW)):
        (tmp_path / name).mkdir()
        results = [*runs(*rates), *runs(*(rate / 4 for rate in FAST), test_case="satloss")]
        write_result_json(tmp_path / name, result_set(results, test_cases=(SAT, SATLOSS)))
        found.append(str(tmp_path / name))
    return found


@pytest.fixture
def other_clock(places: list[str], tmp_path: Path) -> str:
    """The first campaign, in virtual time."""
    place = tmp_path / "virtual"
    place.mkdir()
    results = result_set(runs(*FAST), test_cases=(SAT,))
    manifest = replace(results.manifest, id="virtual", clock=Clock.VIRTUAL, cpu_cost=3e-6)
    write_result_json(place, replace(results, manifest=manifest))
    return str(place)


class Draws:
    """Remembers what was wished for."""

    def __init__(self) -> None:
        self.requests: list[PlotRequest] = []

    def __call__(self, plot_request: PlotRequest) -> Gallery:
        self.requests.append(plot_request)
        return Gallery((plot_request.target / "a.svg",), skipped=("strip-plot: nothing.",), warnings=("an old name.",))
