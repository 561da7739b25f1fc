"""The package: its metadata agree with the requirements, and the command ``quicsat`` works from a checkout only."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from quicsat import __version__
from quicsat.cli.entry_point import NEEDED, check_checkout
from quicsat.model.errors import MachineError

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGED = ("quicsat", "LICENSE", "THIRD-PARTY-NOTICES.md", "README.md", "pyproject.toml")


def pinned(name: str) -> set[str]:
    """Names of the packages that a requirements file pins."""
    return set(re.findall(r"^([\w.-]+)==\S+$", (ROOT / name).read_text(), re.M))


def test_metadata_and_requirements_name_the_same_packages() -> None:
    assert set(PROJECT["dependencies"]) == pinned("requirements.txt") - {"pytest"}
    assert set(PROJECT["optional-dependencies"]["cluster"]) == pinned("requirements-cluster.txt")


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-cluster.txt", "requirements-dev.txt"])
def test_requirements_are_pinned(name: str) -> None:
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith(("#", "-r "))]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


def test_all_that_is_installed_runs_on_the_oldest_python() -> None:
    """Also what the pinned packages need: Debian 12 has Python 3.11.2."""
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    wanted = {
        each.name: each.metadata["Requires-Python"] for each in distributions() if "Requires-Python" in each.metadata
    }
    assert [name for name, versions in wanted.items() if not SpecifierSet(versions).contains(oldest)] == []


def test_a_checkout_is_accepted() -> None:
    check_checkout(ROOT)


def test_what_is_no_checkout_is_refused(tmp_path: Path) -> None:
    (tmp_path / "testcases").mkdir()
    with pytest.raises(MachineError, match=r"has no implementations\.json and no web\. In a clone"):
        check_checkout(tmp_path)


def environment(directory: Path) -> Path:
    """The interpreter of a new environment that sees the packages of this one, so that nothing is downloaded."""
    venv.create(directory, with_pip=False, symlinks=True)
    scheme = sysconfig.get_path("purelib", vars={"base": str(directory)})
    Path(scheme, "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory / "bin" / "python"


def install(python: Path, *words: str | Path) -> None:
    """Install a project without downloads and without its dependencies."""
    options = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation")
    command = [str(python), "-m", "pip", "install", *options, *map(str, words)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def quicsat(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command outside the checkout."""
    command = [str(python.with_name("quicsat")), *words]
    return subprocess.run(command, cwd=python.parent, capture_output=True, text=True, check=False)


def test_installed_from_a_checkout_the_command_works(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    install(python, "--editable", ROOT)
    done = quicsat(python, "--version")
    same = subprocess.run([sys.executable, "run.py", "--version"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, same.stdout, "")
    assert done.stdout.startswith(f"quicsat {__version__}")
    done = quicsat(python, "list", "tests")
    assert (done.returncode, done.stderr) == (0, "")
    assert "satloss" in done.stdout


def test_installed_as_a_copy_the_command_says_what_it_lacks(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in PACKAGED:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source)
    python = environment(tmp_path / "venv")
    install(python, source)
    done = quicsat(python, "--version")
    assert (done.returncode, done.stdout) == (3, "")
    assert all(f"no {name}" in done.stderr for name in NEEDED)
    assert "Traceback" not in done.stderr
