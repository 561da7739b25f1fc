"""What the archives of releases say about their changes."""

import io
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quicsat.docker.archive import ArchiveLimits
from quicsat.images import changelogs
from quicsat.images.changelogs import LARGEST, LONGEST, Changes, changes_in, section
from quicsat.images.registries import Archive
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Implementation, Role
from quicsat.model.package import Package, Registry

MARKDOWN = """# Changelog

## [1.10.0] - 2026-01-02

- New thing

### Fixed

- Old thing

## v1.1.0 (2025)

- First
"""
UNDERLINED = """Changes
=======

1.10.0
------

* New \x1b[31mthing

1.1.0
-----

* First
"""
MINE = Implementation(
    "mine", "", "https://github.com/a/mine", frozenset(Role),
    package=Package(Registry.PYPI, "mine"), release="1.1.0",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "version", "expected"),
    [
        (MARKDOWN, "1.10.0", "- New thing ### Fixed - Old thing"),
        (MARKDOWN, "v1.1.0", "- First"),
        (MARKDOWN, "1.1", ""),
        (MARKDOWN, "10.0", ""),
        (UNDERLINED, "1.1.0", "* First"),
        ("", "1.1.0", ""),
    ],
)
def test_the_section_of_a_version(text: str, version: str, expected: str) -> None:
    assert section(text, version) == expected


def test_sections_are_short_and_without_control_characters() -> None:
    assert "\x1b" not in section(UNDERLINED, "1.10.0")
    assert len(section(f"# 1.0\n{'word ' * LONGEST}", "1.0")) <= LONGEST + 1


def found_in(path: Path, monkeypatch: pytest.MonkeyPatch) -> Changes:
    @contextmanager
    def fetched(_package: Package, _version: str) -> Iterator[Archive]:
        yield Archive("", path)

    monkeypatch.setattr(changelogs, "fetched", fetched)
    return changes_in(MINE)


def test_a_wheel_names_the_address_of_its_changelog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "wheel", "w") as packed:
        packed.writestr("mine-1.1.0.dist-info/METADATA", "Project-URL: Changelog, https://mine.example/changes\n")
    assert found_in(tmp_path / "wheel", monkeypatch) == Changes("", "https://mine.example/changes")


def test_a_crate_has_its_changelog_at_the_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open(tmp_path / "crate", "w:gz") as packed:
        for name, text in (("mine/a/CHANGES", "# 1.1.0\nother"), ("mine/CHANGELOG.md", MARKDOWN)):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            packed.addfile(entry, io.BytesIO(text.encode()))
    expected = Changes("- First", "https://github.com/a/mine/releases?q=1.1.0")
    assert found_in(tmp_path / "crate", monkeypatch) == expected


def test_large_and_damaged_archives_and_silent_registries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_link = Changes("", "https://github.com/a/mine/releases?q=1.1.0")
    with zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("CHANGELOG.md", f"# 1.1.0\n{'x' * LARGEST}")
    assert found_in(tmp_path / "bomb", monkeypatch) == only_link
    monkeypatch.setattr(changelogs, "LIMITS", ArchiveLimits(total=100_000))
    for size, kind in ((200_000, tarfile.REGTYPE), (200_000, tarfile.XHDTYPE)):
        with tarfile.open(tmp_path / "bomb.gz", "w:gz") as archive:
            for name, content, is_a in (("mine/x", bytes(size), kind), ("mine/NEWS", b"# 1.1.0\nx", tarfile.REGTYPE)):
                entry = tarfile.TarInfo(name)
                entry.size, entry.type = len(content), is_a
                archive.addfile(entry, io.BytesIO(content))
        assert found_in(tmp_path / "bomb.gz", monkeypatch) == only_link
    (tmp_path / "damaged").write_bytes(b"\x1f\x8b\x08 no archive")
    assert found_in(tmp_path / "damaged", monkeypatch) == only_link

    def silent(_package: Package, _version: str) -> object:
        raise MachineError("no answer")

    monkeypatch.setattr(changelogs, "fetched", silent)
    assert changes_in(MINE) == only_link
