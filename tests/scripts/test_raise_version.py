"""Raising the version of an implementation: which files change, and which steps follow."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from quicsat.config.loader import load_implementations
from quicsat.docker.provenance import SOURCE, arguments_of, labels_of
from quicsat.images.registries import upstream
from quicsat.images.releases import Release, ReleaseState, pinned_version
from quicsat.model.package import Package, Registry
from scripts import raise_version

ROOT = Path(__file__).resolve().parents[2]
KNOWN = load_implementations(ROOT / "implementations.json")
BUILT = sorted(name for name, each in KNOWN.items() if each.build and name != "neqo" and not each.build_arguments)
NEW = "77.8.9"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folders, in which no command runs."""
    shutil.copytree(ROOT / "endpoints", tmp_path / "endpoints", ignore=shutil.ignore_patterns("target"))
    shutil.copy(ROOT / "implementations.json", tmp_path)
    monkeypatch.setattr(raise_version, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", BUILT)
def test_the_new_version_stands_wherever_the_old_one_was_pinned(checkout: Path, name: str) -> None:
    implementation = KNOWN[name]
    assert implementation.package
    folder = checkout / (implementation.build or "")
    old = pinned_version(checkout, implementation)
    changed = raise_version.raise_pin(folder, implementation.package, old, NEW)
    assert pinned_version(checkout, implementation) == NEW
    assert NEW in labels_of(folder / "Dockerfile")[SOURCE]
    for manifest in changed:
        text = manifest.read_text(encoding="utf-8")
        assert NEW in text
        assert f"={old}\n" not in text


def test_a_version_in_the_build_arguments_of_an_entry_is_raised_there(checkout: Path) -> None:
    folder = checkout / "endpoints/openssl"
    before = (folder / "Dockerfile").read_bytes()
    raise_version.raise_argument(KNOWN["openssl-newest"], "VERSION", NEW)
    raised = load_implementations(checkout / "implementations.json")
    assert pinned_version(checkout, raised["openssl-newest"]) == NEW
    assert raised["openssl"] == KNOWN["openssl"]
    assert (folder / "Dockerfile").read_bytes() == before


def test_a_version_that_is_not_pinned_as_expected_is_left_alone(checkout: Path) -> None:
    folder = checkout / "endpoints/quinn"
    before = (folder / "Dockerfile").read_bytes()
    with pytest.raises(ValueError, match="by hand"):
        raise_version.raise_pin(folder, Package(Registry.CRATES, "quinn"), "0.0.1", NEW)
    assert (folder / "Dockerfile").read_bytes() == before


def test_labels_follow_the_lock_file_and_the_crate(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crate = checkout / "crate"
    crate.mkdir()
    (crate / ".cargo_vcs_info.json").write_text(json.dumps({"git": {"sha1": "c0ffee"}}))
    packages = [
        {"name": "quinn", "version": NEW, "manifest_path": str(crate / "Cargo.toml")},
        {"name": "quinn-proto", "version": "55.5.5", "manifest_path": ""},
    ]
    monkeypatch.setattr(raise_version, "run", lambda *_command, **_options: json.dumps({"packages": packages}))
    raise_version.write_labels_of_crates(checkout / "endpoints/quinn", Package(Registry.CRATES, "quinn"))
    labels = labels_of(checkout / "endpoints/quinn/Dockerfile")
    assert labels["org.opencontainers.image.revision"] == "c0ffee"
    assert labels[SOURCE].endswith(", quinn-proto 55.5.5")


def test_it_raises_builds_tests_and_writes_what_follows(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[str] = []

    def run(*command: str, **_options: object) -> str:
        commands.append(" ".join(command[1:]))
        return json.dumps({"packages": [{"name": "quinn", "version": NEW, "manifest_path": "/none"}]})

    def releases_of(_root: Path, chosen: list[object]) -> list[Release]:
        assert chosen
        return [Release("quinn", Package(Registry.CRATES, "quinn"), "", ReleaseState.OUTDATED, NEW)]

    monkeypatch.setattr(raise_version, "run", run)
    monkeypatch.setattr(raise_version, "releases_of", releases_of)
    assert raise_version.main(["quinn"]) == 0
    assert commands == [
        f"update --quiet --package quinn --precise {NEW}",
        "metadata --format-version 1 --locked",
        "run.py images build quinn",
        "run.py images check quinn --clock virtual --wait",
        "-m pytest -q -m endpoints -k quinn tests/endpoints",
        "-m bench.variants quinn",
        "-m scripts.generate",
    ]
    again = commands.copy()
    commands.clear()
    assert raise_version.main(["quinn"]) == 0
    assert commands == []
    assert raise_version.main(["quinn", NEW]) == 0
    assert commands == again


@pytest.mark.parametrize("name", ["ngtcp2", "picoquic"])
def test_the_checksum_of_the_new_archive_is_written(
    name: str, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dockerfile, log = checkout / f"endpoints/{name}/Dockerfile", tmp_path / f"build/logs/{name}.log"
    before, commands = dockerfile.read_text(encoding="utf-8"), list[str]()

    def run(*command: str, **_options: object) -> str:
        commands.append(" ".join(command[1:]))
        assert "sha256sum -c" not in dockerfile.read_text(encoding="utf-8")
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"Step 3\n{'ab' * 32}  archive.tar.gz\n" if len(commands) == 1 else "no network\n")
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(raise_version, "run", run)
    monkeypatch.setattr(raise_version, "build_folder", lambda: tmp_path / "build")
    raise_version.write_checksum(name, dockerfile)
    assert commands == [f"run.py images build {name}"]
    old = arguments_of(dockerfile)["SHA256"]
    assert old == "ab" * 32
    assert dockerfile.read_text(encoding="utf-8") == re.sub(r"(?<=SHA256=)[0-9a-f]{64}", old, before)
    with pytest.raises(ValueError, match="downloads no archive"):
        raise_version.write_checksum(name, dockerfile)
    assert arguments_of(dockerfile)["SHA256"] == old


def test_a_step_that_fails_ends_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*command: str, **_options: object) -> str:
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(raise_version, "run", run)
    assert raise_version.main(["nginx", NEW]) == 1
    assert "images" in capsys.readouterr().err
    assert pinned_version(checkout, KNOWN["nginx"]) == upstream(NEW)


def test_what_is_built_from_no_package_cannot_be_raised(checkout: Path) -> None:
    assert checkout.is_dir()
    assert raise_version.main(["mvfst"]) == 1
    assert raise_version.main(["neqo", NEW]) == 1


def test_a_version_that_is_none_changes_no_file(checkout: Path) -> None:
    before = (checkout / "endpoints/quic-go/Dockerfile").read_bytes()
    assert raise_version.main(["quic-go", "v0.65.0; rm"]) == 1
    assert (checkout / "endpoints/quic-go/Dockerfile").read_bytes() == before
