"""The package: its metadata agree with the requirements, and a wheel brings all that a run needs."""

import json
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

from quicsat.images import build_recipes

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


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


def environment(directory: Path) -> Path:
    """The interpreter of a new environment that sees the packages of this one, so that nothing is downloaded."""
    venv.create(directory, with_pip=False, symlinks=True)
    scheme = sysconfig.get_path("purelib", vars={"base": str(directory)})
    Path(scheme, "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory / "bin" / "python"


def install(python: Path, *words: str | Path) -> None:
    """Install a project without downloads and without its dependencies."""
    options = (
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--no-compile",
    )
    command = [str(python), "-m", "pip", "install", *options, *map(str, words)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def quicsat(python: Path, *words: str, work: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the installed command outside the checkout, in the directory ``work``."""
    command = [str(python.with_name("quicsat")), *words]
    return subprocess.run(command, cwd=work or python.parent, capture_output=True, text=True, check=False)


def test_installed_from_a_checkout_the_command_works(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    install(python, "--editable", ROOT)
    done = quicsat(python, "--version")
    same = subprocess.run([sys.executable, "run.py", "--version"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, same.stdout, "")
    done = quicsat(python, "list", "tests")
    assert (done.returncode, done.stderr) == (0, "")
    assert "satloss" in done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel of the source distribution of this checkout."""
    place = tmp_path_factory.mktemp("dist")
    for source, target in ((ROOT, "sdist"), (place / "source", "wheel")):
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(place)],
            cwd=source, check=True, capture_output=True,
        )  # fmt: skip
        if target == "sdist":
            shutil.unpack_archive(next(place.glob("*.tar.gz")), place)
            next(place.glob("quicsat-*/")).rename(place / "source")
    python = environment(place / "venv")
    install(python, next(place.glob("*.whl")))
    return python


def test_a_wheel_brings_one_package_and_its_files_as_they_are_in_the_checkout(installed: Path, tmp_path: Path) -> None:
    [packages] = installed.parents[1].glob("lib/python*/site-packages")
    assert {path.name.partition("-")[0] for path in packages.iterdir()} == {"quicsat", "shared.pth"}
    brought = packages / "quicsat" / "files"
    tags = build_recipes.expected()
    program = (
        "import json; from quicsat.images.build_recipes import expected, find_recipe, OWN_FOLDERS; "
        "own = {name: find_recipe(name, folder).tag for name, folder in OWN_FOLDERS.items()}; "
        "print(json.dumps(expected() | own))"
    )
    done = subprocess.run([installed, "-I", "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True)
    own = {name: build_recipes.find_recipe(name, folder).tag for name, folder in build_recipes.OWN_FOLDERS.items()}
    assert json.loads(done.stdout) == tags | own
    for name in ("implementations.json", "web", "testcases", "scripts/setup"):
        assert same(brought / name, ROOT / name)


def same(one: Path, other: Path) -> bool:
    """Whether two files or all files of two folders are alike."""
    if one.is_file():
        return one.read_bytes() == other.read_bytes()
    files = [{path.relative_to(each) for path in each.rglob("*") if path.is_file()} for each in (one, other)]
    return files[0] == files[1] and all(same(one / name, other / name) for name in files[0])


def test_the_installed_command_uses_the_files_of_its_working_directory_first(installed: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "testcases").mkdir(parents=True)
    (work / "testcases" / "mine.yaml").write_text(
        "name: mine\nabbreviation: MINE\ndescription: mine\nextends: sat\nfile size: 1 MiB\n"
    )
    mine = {"my-quic": {"image": "me/my-quic:1", "url": "https://example.org", "role": "both"}}
    (work / "implementations.json").write_text(json.dumps(mine))
    listed = quicsat(installed, "list", work=work)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert all(re.search(rf"^  {name} ", listed.stdout, re.MULTILINE) for name in ("mine", "sat", "my-quic", "quic-go"))
    site = quicsat(
        installed, "site", str(ROOT / "tests/data/campaign-before-packages"), "-o", "site", "--no-plots", work=work
    )
    assert site.returncode == 0
    assert (work / "site" / "index.html").is_file()
