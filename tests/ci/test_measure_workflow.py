"""The first workflow of ci/example with the action, run by act; quicsat, Docker and the set-up are replaced.

The scripts of ci/ are the real ones. ``tests/workflow_runner.py`` says what else is real.
"""

import shutil
import zipfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from quicsat.cli.exit_status import ExitStatus
from tests.example_repository import (
    HALF,
    IMPLEMENTATION,
    PARTNER,
    PULL_REQUEST,
    SOURCE,
    TESTS,
    ExampleRepository,
    source,
)
from tests.workflow_runner import WorkflowRunner

ROOT = Path(__file__).resolve().parents[2]
QUICSAT = """\
#!/bin/bash
echo "run.py $*" >>"$CALLS"
command=$1
while (($#)); do
    case $1 in
    --comment | --junit) echo "$1" >"$2" ;;
    -l) mkdir -p "$2/base" && touch "$2/base/result.json" "$2/base/left.pcap" ;;
    --lock-file) echo '"reference": "quicsat/partner:1"' >"$2" ;;
    esac
    shift
done
[[ $command != gate ]] || exit "$STATUS"
"""
DOCKER = """\
#!/bin/bash
words=$*
while (($#)); do
    [[ $1 != --output ]] || touch "$2"
    [[ $1 != build ]] || words+=" with $(grep -o '[0-9]*$' "${@: -1}/sitecustomize.py")"
    shift
done
echo "docker $words" >>"$CALLS"
"""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkflowRunner:
    """A machine with the pull request of someone who has halved the initial window."""
    quicsat = tmp_path / "quicsat"
    shutil.copytree(ROOT / "ci", quicsat / "ci")
    programs = {"quicsat/run.py": QUICSAT, "quicsat/scripts/setup": "#!/bin/bash\n", "bin/docker": DOCKER}
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    for name in ("endpoints", "ns3-scenarios", "virtual-time"):
        (quicsat / name).mkdir()
    repository = ExampleRepository(tmp_path, "scratch")
    repository.open_pull_request({SOURCE: source(HALF)})
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}", prepend=":")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return WorkflowRunner(repository.clone, tmp_path, own=quicsat, variables={"ORIGIN": repository.origin.as_uri()})


@pytest.mark.parametrize("status", [ExitStatus.SUCCESS, ExitStatus.FAILURE, ExitStatus.UNDECIDED])
def test_both_images_are_built_and_measured_and_reports_are_kept(
    runner: WorkflowRunner, tmp_path: Path, status: ExitStatus
) -> None:
    """The images of partners are cached, and the reports uploaded, whatever the exit status is."""
    runner = replace(runner, variables={**runner.variables, "STATUS": str(status.value)})
    done = runner.run("quicsat.yml", "pull_request", PULL_REQUEST)
    assert done.status == (0 if status == ExitStatus.SUCCESS else 1), done.output
    assert done.failed_with == (None if status == ExitStatus.SUCCESS else status)
    change, base, built, locked, saved, measured = (tmp_path / "calls").read_text().splitlines()
    assert change == f"docker build -t {IMPLEMENTATION}:change -f interop/Dockerfile . with 5"
    assert base == f"docker build -t {IMPLEMENTATION}:base -f interop/Dockerfile base with 10"
    assert built == f"run.py images build simulator virtual-time {PARTNER}"
    assert locked.startswith(f"run.py images lock simulator virtual-time {PARTNER} --lock-file ")
    assert saved.startswith("docker save ")
    assert saved.endswith(" quicsat/partner:1")
    words = measured.split()
    assert words[1] == "gate"
    after = dict(pairwise(words))
    assert (after["--against"], after["-r"]) == (f"{IMPLEMENTATION}:base", f"{IMPLEMENTATION}={IMPLEMENTATION}:change")
    assert (Path(after["-t"]).name, Path(after["--expect"]).name) == (TESTS, "quicsat.yml")
    assert words[-1] == "--github"
    with zipfile.ZipFile(tmp_path / "artifacts/quicsat.zip") as archive:
        assert set(archive.namelist()) == {"comment.md", "junit.xml", "campaign/base/result.json"}
    [cached] = (tmp_path / "caches").iterdir()
    assert cached.read_text().splitlines() == ["images.lock", "images.tar"]
