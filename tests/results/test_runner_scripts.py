"""QIR-SE's own scripts, and the one with which QIR joins results, read what ``export`` writes, without an error.

The scripts are not part of this repository, and neither are the packages that those of QIR-SE need. So these tests need
copies of both, and a campaign with traces over at least two emulated links, with two repetitions or more:

    make test-runner-pages QIR_PAGE=quic-interop-runner/web QIR_SE=quic-interop-runner-sat \
        QIR_SE_PYTHON=venv/bin/python CAMPAIGN=results/latest

``QIR_SE_PYTHON`` is a Python that imports what the pyproject.toml of QIR-SE lists, in about the versions of its
poetry.lock. The scripts of QIR-SE write next to the traces, and therefore get a copy of the campaign.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from quicsat.results.qir_export import to_qir_se, write_json
from quicsat.results.store import load
from tests.results_builder import SAT, result_set, run_result

FIGURES = {
    "boxplot": ["--plot-type=boxplot"],
    "densities": ["--plot-type=kdes"],
    "densities of the efficiency": ["--plot-type=kdes", "--prop=efficiency"],
    "heat map": ["--plot-type=heatmap", "--measurement={first}"],
    "ridgeline": ["--plot-type=ridgeline", "--measurement={first}"],
    "points": ["--plot-type=swarm", "--measurement", "{first}", "{second}"],
    "violins": ["--plot-type=violins", "--measurement={first}"],
    "distribution with failures": ["--plot-type=cdf", "--include-failed=true"],
    "distribution without failures": ["--plot-type=cdf", "--include-failed=false"],
}


@dataclass(frozen=True)
class Scripts:
    """The scripts of QIR-SE, with an export of the campaign."""

    folder: Path
    python: str
    export: Path
    document: dict[str, Any]

    @property
    def measurements(self) -> list[str]:
        """Abbreviations of the test cases that are measurements."""
        return [abbreviation for abbreviation, case in self.document["tests"].items() if "repetitions" in case]

    def __call__(self, script: str, *words: str | Path) -> str:
        """What a script says, which must end with exit status 0."""
        done = subprocess.run(
            [self.python, self.folder / script, *words],
            cwd=self.folder, env={**os.environ, "MPLBACKEND": "Agg"}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
        assert done.returncode == 0, said[-2000:]
        return said


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    folder, python, campaign = (os.environ.get(name) for name in ("QIR_SE", "QIR_SE_PYTHON", "CAMPAIGN"))
    if not (folder and python and campaign):
        pytest.skip("QIR_SE, QIR_SE_PYTHON and CAMPAIGN name no copies and no campaign; see this module")
    copy = tmp_path_factory.mktemp("qir-se") / "logs"
    shutil.copytree(campaign, copy)
    document = to_qir_se(load(copy).result_set, copy.name)
    write_json(copy.with_name("all.json"), document)
    return Scripts(Path(folder).resolve(), str(Path(python).absolute()), copy.with_name("all.json"), document)


def test_the_check_of_files_finds_no_fault_but_missing_goodputs_in_the_output(scripts: Scripts) -> None:
    """QIR-SE's runner writes the goodput into output.txt, and its script looks for it there."""
    said = scripts("fsck.py", scripts.export)
    warnings = [line for line in said.splitlines() if "Ran" not in line]
    assert "assertions." in said
    assert [line for line in warnings if "Goodputs are not all available: ['failed'" not in line] == []


def test_results_go_into_the_database(scripts: Scripts, tmp_path: Path) -> None:
    said = scripts("gather_results.py", "--database", f"sqlite:///{tmp_path}/all.sql", scripts.export)
    count = sum(map(len, scripts.document["measurements"]))
    assert f"Inserted/Updated {count} measurement runs" in said


@pytest.mark.parametrize("name", FIGURES)
def test_figures(scripts: Scripts, tmp_path: Path, name: str) -> None:
    first, second, *_ = scripts.measurements
    words = [word.format(first=first, second=second) for word in FIGURES[name]]
    scripts("plot_stats.py", "--no-interactive", f"--img-path={tmp_path}", *words, "--", scripts.export)
    assert [path.stat().st_size > 5000 for path in tmp_path.glob("*.png")].count(True) >= 1


def test_pairs_of_measurements(scripts: Scripts, tmp_path: Path) -> None:
    scripts("plot_pairplot.py", "--no-interactive", f"--img-path={tmp_path}", scripts.export)
    assert list(tmp_path.glob("pairplot*.png"))


def test_the_means_of_a_measurement(scripts: Scripts, tmp_path: Path) -> None:
    first, second, *_ = scripts.measurements
    output = tmp_path / "two.png"
    said = scripts("compare_measurements.py", "--plot", "--output", output, scripts.export, first, second)
    found = dict(re.findall(r"The average value of the averages in (\S+) is ([\d.]+) kbps", said))
    for name in (first, second):
        means = [
            round(mean(cell["values"]))
            for pair in scripts.document["measurements"]
            for cell in pair
            if cell["abbr"] == name and cell["result"] == "succeeded"
        ]
        assert float(found[name]) == pytest.approx(mean(means), abs=0.1)
    assert output.stat().st_size > 5000


def test_two_results_are_compared(scripts: Scripts, tmp_path: Path) -> None:
    output = tmp_path / "two.png"
    labels = ("--label1", "a", "--label2", "b")
    scripts("compare_results.py", "--plot", "--output", output, *labels, scripts.export, scripts.export,
            scripts.measurements[0])  # fmt: skip
    assert output.stat().st_size > 5000


def test_keys_go_into_all_traces(scripts: Scripts) -> None:
    """The script calls editcap."""
    said = scripts("post_process_logs.py", scripts.export)
    count = 2 * sum(len(cell["values"]) for pair in scripts.document["measurements"] for cell in pair)
    assert f"inj.: {count}, fail: 0" in said
    assert len(list(scripts.export.parent.glob("logs/*/*/*/sim/*_with_secrets.pcapng"))) == count


def test_qir_joins_the_results_of_pairs(tmp_path: Path) -> None:
    """As QIR's continuous integration does, with a file of each pair for tests and another one for measurements."""
    script = Path(os.environ.get("QIR_PAGE") or tmp_path).resolve().parent / ".github/workflows/aggregate.py"
    if not script.is_file():
        pytest.skip("QIR_PAGE is not the folder web of a copy of QIR")
    servers, clients = ("quinn", "picoquic"), ("quic-go", "aioquic")
    documents = {}
    for server in servers:
        for client in clients:
            results = [run_result(5e6, server=server, client=client)]
            documents[server, client] = to_qir_se(
                result_set(results, servers=(server,), clients=(client,), test_cases=(SAT,), repetitions=1)
            )
            for part in ("results", "measurements"):
                write_json(tmp_path / f"{server}_{client}_{part}.json", documents[server, client])
    words = ["-s", ",".join(servers), "-c", ",".join(clients), "-t", "1", "-l", "logs", "-o", "all"]
    subprocess.run([sys.executable, script, *words], cwd=tmp_path, check=True)
    joined = json.loads((tmp_path / "all").read_text())
    pairs = [(server, client) for client in clients for server in servers]
    assert joined["measurements"] == [documents[pair]["measurements"][0] for pair in pairs]
    assert joined["urls"].keys() == {*servers, *clients}
