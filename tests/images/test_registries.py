"""Newest releases and their dates, as the registries' own clients tell them; programs of the test stand for clients."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from quicsat.images import registries
from quicsat.images.registries import Answer, Releases, look_up, upstream
from quicsat.model.errors import MachineError
from quicsat.model.package import Package, Registry

Install = Callable[[str, str], None]
QUINN = Package(Registry.CRATES, "quinn")


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a shell script into the only folder with clients."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))

    def put(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)

    return put


def ask(package: Package, pinned: str) -> Answer:
    return look_up([(package, pinned)])[package, pinned]


def refusal(package: Package, pinned: str = "1.0") -> str:
    answer = ask(package, pinned)
    assert isinstance(answer, MachineError)
    return str(answer)


def index(home: Path, *entries: dict[str, object]) -> None:
    folder = home / "cargo/registry/index/example-1/.cache/qu/in"
    folder.mkdir(parents=True)
    lines = [b"head", *(json.dumps(each).encode() for each in entries)]
    (folder / "quinn").write_bytes(b"\0".join(lines))


@pytest.mark.parametrize(
    ("pinned", "newest"), [("0.9.0", "0.10.0"), ("0.11.0-beta.1", "0.11.0-beta.1")], ids=["release", "pre-release"]
)
def test_cargo_s_index_gives_the_newest_release_that_was_not_withdrawn(
    tmp_path: Path, install: Install, pinned: str, newest: str
) -> None:
    install("cargo", "exit 0")
    index(
        tmp_path,
        {"vers": "0.9.0", "yanked": False, "pubtime": "2026-01-02T03:04:05Z"},
        {"vers": "0.10.0", "yanked": False, "pubtime": "2026-03-04T23:30:00-02:00"},
        {"vers": "0.12.0", "yanked": True, "pubtime": "2026-05-01T00:00:00Z"},
        {"vers": "0.11.0-beta.1", "yanked": False},
    )
    days = {"0.9.0": date(2026, 1, 2), "0.10.0": date(2026, 3, 5), "0.12.0": date(2026, 5, 1)}
    assert ask(QUINN, pinned) == Releases(newest, days)


def test_go_gives_the_newest_version_and_both_dates(install: Install) -> None:
    install("go", 'case $4 in *@latest) v=v0.3.0 m=03 ;; *) v=v0.2.0 m=02 ;; esac\n'
            'echo "{\\"Version\\": \\"$v\\", \\"Time\\": \\"2026-$m-01T10:00:00Z\\"}"')  # fmt: skip
    days = {"v0.3.0": date(2026, 3, 1), "v0.2.0": date(2026, 2, 1)}
    assert ask(Package(Registry.GO, "example.org/quic"), "v0.2.0") == Releases("v0.3.0", days)


def test_npm_gives_the_newest_version_and_all_dates(install: Install) -> None:
    install("npm", 'echo \'{"version": "1.2.0", "time": {"1.1.0": "2025-01-01T00:00:00Z"}}\'')
    assert ask(Package(Registry.NPM, "@a/b"), "1.1.0") == Releases("1.2.0", {"1.1.0": date(2025, 1, 1)})


def archive(*days: tuple[int, int, int]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        for number, day in enumerate(days):
            packed.writestr(zipfile.ZipInfo(str(number), (*day, 0, 0, 0)), b"")
    return stream.getvalue()


def test_maven_s_archives_and_its_list_of_releases_have_dates(tmp_path: Path, install: Install) -> None:
    (tmp_path / "one.jar").write_bytes(archive((2026, 1, 2), (2026, 2, 3)))
    install("mvn", 'for w; do case $w in -Dartifact=*) v=${w##*:} ;; -DoutputDirectory=*) d=${w#*=} ;; esac; done\n'
            f'[ $v != RELEASE ] || v=1.5\nmkdir -p "$d" && cp {tmp_path}/one.jar "$d/quic-$v.jar"')  # fmt: skip
    kept = tmp_path / ".m2/repository/org/example/quic"
    kept.mkdir(parents=True)
    (kept / "maven-metadata-central.xml").write_text("<lastUpdated>20260708120000</lastUpdated>")
    found = ask(Package(Registry.MAVEN, "org.example:quic"), "1.4")
    assert found == Releases("1.5", {"1.5": date(2026, 7, 8), "1.4": date(2026, 2, 3)})


def test_debian_s_suites_give_the_newest_version_and_the_dates_of_small_packages(install: Install) -> None:
    install("apt-get", 'case "$*" in *download*) printf "!<arch>\\n%-16s%-12s" debian-binary 1790000000 >x.deb ;; esac')
    install("apt-cache", 'case "$*" in *show*=1.9*) echo Size: 900000000 ;; *show*) echo Size: 1000 ;; '
            '*) printf "q | 2:1.9.0-1 | sid\\nq | 2:1.9.0-1 | b\\nq | 1.4.2-3+deb13u1 | c\\n" ;; esac')  # fmt: skip
    found = ask(Package(Registry.DEBIAN, "q"), "1.4.2")
    assert found == Releases("1.9.0", {"1.9.0": date(2026, 9, 21), "1.4.2": date(2026, 9, 21)})


def test_a_branch_has_a_newest_version_of_its_own(tmp_path: Path, install: Install) -> None:
    install("apt-get", "exit 0")
    install("apt-cache", 'case "$*" in *show*) echo ;; *) for v in 3.50.1 3.6.5 1:3.5.9 3.5.7; do echo "q | $v-1 | s"; '
            'done ;; esac')  # fmt: skip
    assert ask(Package(Registry.DEBIAN, "q", branch="3.5"), "3.5.7") == Releases("3.5.9")
    install("cargo", "exit 0")
    index(tmp_path, {"vers": "0.11.9"}, {"vers": "0.12.0"}, {"vers": "0.1.99"})
    assert ask(replace(QUINN, branch="0.11"), "0.11.1") == Releases("0.11.9")


def test_a_registry_that_does_not_answer_is_not_taken_for_one_without_news(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("npm", "echo 'npm ERR! network timeout' >&2; exit 1")
    install("go", "echo nonsense")
    install("cargo", "exit 0")
    install("apt-get", "sleep 9")
    install("mvn", "exit 0")
    assert "network timeout" in refusal(Package(Registry.NPM, "a"))
    assert "damaged" in refusal(Package(Registry.GO, "a"))
    assert "no index" in refusal(QUINN)
    assert "no archive" in refusal(Package(Registry.MAVEN, "a:b"))
    monkeypatch.setattr(registries, "PATIENCE", 0.2)
    assert "did not end" in refusal(Package(Registry.DEBIAN, "a"))


def test_a_client_that_is_missing_is_named(install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "npm is not installed" in refusal(Package(Registry.NPM, "a"))


def test_a_version_that_is_none_is_refused(install: Install) -> None:
    install("npm", 'echo \'{"version": "1.0; rm", "time": {}}\'')
    assert "no version" in refusal(Package(Registry.NPM, "a"))


@pytest.mark.parametrize(
    ("version", "project"),
    [("1:140.12.0esr-1~deb13u1", "140.12.0esr"), ("8.23.0~rc3-1", "8.23.0~rc3"), ("1.26.3", "1.26.3")],
)
def test_the_project_s_part_of_a_version_of_debian(version: str, project: str) -> None:
    assert upstream(version) == project
