"""Releases, checksums and dates, as the registries' own clients tell them; programs of the test stand for clients."""

from __future__ import annotations

import hashlib
import json
import sys
from datetime import date
from pathlib import Path

import pytest

from quicsat.images.archives import describe, fetched, versions_of
from quicsat.model.errors import MachineError
from quicsat.model.package import Package, Registry
from tests.images.test_registries import Install, archive, index, install

__all__ = ["install"]
GO, CRATE, WHEEL, JAR = (
    Package(registry, name)
    for registry, name in (
        (Registry.GO, "example.org/q"), (Registry.CRATES, "quinn"), (Registry.PYPI, "some-quic"),
        (Registry.MAVEN, "org.example:a.quic"),
    )
)  # fmt: skip
SUM = "h1:OLJkp1Mlm/aS7dpKgTc6cnpynnD2Xg7C1pwL6vy/SAw="


def test_go_lists_releases_and_tells_the_checksum_of_its_database(tmp_path: Path, install: Install) -> None:
    (tmp_path / "info").write_text(json.dumps({"Version": "v0.9.0", "Time": "2026-01-02T23:30:00-02:00"}))
    (tmp_path / "zip").write_bytes(b"zip")
    answer = {"Version": "v0.9.0", "Info": str(tmp_path / "info"), "Sum": SUM, "Zip": str(tmp_path / "zip")}
    listed = {"Versions": ["v0.10.0", "v0.9.0", "v0.11.0-rc.1", "../x"]}
    (tmp_path / "answer").write_text(json.dumps(answer))
    (tmp_path / "listed").write_text(json.dumps(listed))
    install("go", f"case $* in list*) cat {tmp_path}/listed ;; *q@v0.9.0) cat {tmp_path}/answer ;; *) exit 1 ;; esac")
    assert versions_of(GO) == ("v0.9.0", "v0.10.0")
    with fetched(GO, "v0.9.0") as found:
        assert (found.checksum, found.released, found.path.read_bytes()) == (SUM, date(2026, 1, 3), b"zip")
    with pytest.raises(MachineError, match=r"^Go has no example.org/q v0.9.9: the oldest is v0.9.0, the newest v0.11"):
        describe(GO, "v0.9.9")


def test_cargo_s_index_tells_checksums_and_what_was_withdrawn(tmp_path: Path, install: Install) -> None:
    index(
        tmp_path,
        {"vers": "0.10.0", "cksum": "ab", "pubtime": "2026-01-02T03:04:05Z"},
        {"vers": "0.9.0", "cksum": "cd", "yanked": True},
        {"vers": "0.8.0", "cksum": "ef"},
    )
    crate = tmp_path / "cargo/registry/cache/example-1/quinn-0.10.0.crate"
    install("cargo", f"mkdir -p {crate.parent} && echo x >{crate}")
    assert versions_of(CRATE) == ("0.8.0", "0.10.0")
    found = describe(CRATE, "0.10.0")
    assert (found.checksum, found.released, found.path) == ("sha256:ab", date(2026, 1, 2), crate)
    with pytest.raises(MachineError, match=r"crates.io has no quinn 0.7.0: the oldest is 0.8.0"):
        describe(CRATE, "0.7.0")


def test_pip_lists_releases_and_its_wheel_has_checksum_and_date(
    tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = archive((2026, 2, 3))
    (tmp_path / "wheel").write_bytes(wheel)
    install("python", f"""case $* in
        *index*) echo 'some-quic (1.1)'; echo 'Available versions: 1.1, 1.0, 1.1rc1' ;;
        *==1.0*) while [ "$1" != -d ]; do shift; done; cp {tmp_path}/wheel "$2/some_quic-1.0-py3-none-any.whl" ;;
        *) echo 'ERROR: no such release' >&2; exit 1 ;; esac""")  # fmt: skip
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    assert versions_of(WHEEL) == ("1.0", "1.1")
    found = describe(WHEEL, "1.0")
    assert found.checksum == f"sha256:{hashlib.sha256(wheel).hexdigest()}"
    assert found.released == date(2026, 2, 3)
    with pytest.raises(MachineError, match="ERROR: no such release"):  # there is one, but no wheel of it
        describe(WHEEL, "1.1")


def test_maven_lists_releases_beside_the_newest_one_and_checks_the_archive(tmp_path: Path, install: Install) -> None:
    jar = archive((2026, 2, 3))
    (tmp_path / "jar").write_bytes(jar)
    install("mvn", 'for w; do case $w in -Dartifact=*) v=${w##*:} ;; -DoutputDirectory=*) d=${w#*=} ;; esac; done\n'
            '[ $v != RELEASE ] || v=1.10\n'
            'case "$*" in *--strict-checksums*:1.9\\ *|*:RELEASE*) ;; *) exit 1 ;; esac\n'
            f'mkdir -p "$d" && cp {tmp_path}/jar "$d/a.quic-$v.jar"')  # fmt: skip
    kept = tmp_path / ".m2/repository/org/example/a.quic"
    kept.mkdir(parents=True)
    (kept / "maven-metadata-central.xml").write_text(
        "<versions><version>1.10</version><version>1.9</version></versions>"
    )
    assert versions_of(JAR) == ("1.9", "1.10")
    found = describe(JAR, "1.9")
    assert (found.checksum, found.released) == (f"sha256:{hashlib.sha256(jar).hexdigest()}", date(2026, 2, 3))
    with pytest.raises(MachineError, match=r"Maven has no org.example:a.quic 1.8: the oldest is 1.9, the newest 1.10"):
        describe(JAR, "1.8")


def test_versions_that_are_none_reach_no_client(install: Install, tmp_path: Path) -> None:
    install("go", f"touch {tmp_path}/asked; exit 1")
    for version in ("--help", "../x", "1;rm", "", "1" * 41):
        with pytest.raises(MachineError, match="no such version"):
            describe(GO, version)
    assert not (tmp_path / "asked").exists()


def test_registries_without_older_releases_and_damaged_answers(install: Install) -> None:
    with pytest.raises(MachineError, match="Debian gives no older releases"):
        versions_of(Package(Registry.DEBIAN, "curl"))
    install("go", "echo '[]'")
    with pytest.raises(MachineError, match="damaged"):
        versions_of(GO)
    install("go", "echo '{}'")
    with pytest.raises(MachineError, match="damaged"):
        versions_of(GO)
