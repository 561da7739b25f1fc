"""What tests in the laboratory need; where it cannot be raised they are skipped, aloud."""

import csv
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from quicsat.model.errors import MachineError
from quicsat.results.store import load
from quicsat.traces.run_traces import TCP_INFO
from tests.collected import below
from tests.dockerds import LaboratoryError
from tests.engine_lock import URL
from tests.laboratory import ROOT, Laboratory, images_of, lab_case, laboratory, prepare

OVER_TCP = ("nginx-tcp", "curl")
"""Server and client."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need the laboratory."""
    for item in below(Path(__file__).parent, items):
        item.add_marker(pytest.mark.engine)
        item.add_marker(pytest.mark.laboratory)


@dataclass(frozen=True)
class Bench:
    """The laboratory, and the command in it."""

    lab: Laboratory
    cases: Path
    hosts: Path

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        """The command, under way."""
        command = self.lab.command(sys.executable, "run.py", *words, "--hosts", self.hosts)
        return subprocess.Popen(
            command, cwd=ROOT, env=self.lab.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def measure(
        self, directory: Path, *words: str | Path, pair: tuple[str, str] = ("quic-go", "quic-go")
    ) -> subprocess.Popen[str]:
        """A campaign of a server and a client, under way."""
        selected = ("-s", pair[0], "-c", pair[1], "-t", self.cases)
        return self.start("run", *selected, "-l", directory, "--images", "local", "--no-qlog", *words)

    def finish(self, process: subprocess.Popen[str], patience: float = 280) -> tuple[int, str, str]:
        """Exit status and both streams."""
        out, err = process.communicate(timeout=patience)
        assert "Traceback" not in err, err
        return process.returncode, out, err

    def wait_for_runs(self, directory: Path, count: int, process: subprocess.Popen[str]) -> None:
        """Until so many runs are on disk."""
        deadline = time.monotonic() + 200
        while process.poll() is None and time.monotonic() < deadline:
            if (directory / "journal.jsonl").exists() and len(load(directory).result_set.results) >= count:
                return
            time.sleep(0.2)
        pytest.fail(f"no run came to its end: {process.communicate() if process.poll() is not None else ''}")


def sampled(run: Path) -> list[dict[str, str]]:
    """Samples of TCP at the server, in the directory of a run."""
    with (run / TCP_INFO).open(newline="") as file:
        return [*csv.DictReader(file)]


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The laboratory with the endpoints at the server's daemon alone."""
    with ExitStack() as stack:
        try:
            prepare(URL, ["quic-go", *OVER_TCP])
            lab = stack.enter_context(laboratory(URL, images_of(ROOT, "link-tools", "quic-go", "nginx", "curl")))
        except (LaboratoryError, MachineError) as error:
            pytest.skip(f"NO LABORATORY, nothing of tests/real_link was run: {error}")
        cases = tmp_path_factory.mktemp("cases") / "lab.yaml"
        cases.write_text(lab_case("lab", "1 MiB"))
        yield Bench(lab, cases, lab.hosts)
