"""Releases, checksums and dates, as the registries' own clients tell them; programs of the test stand for clients."""

import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from quicsat.images import registries
from quicsat.images.archives import Answer, Releases, checksum_of, fetched, look_up, released, versions_of
from quicsat.images.registries import upstream
from quicsat.model.errors import MachineError
from quicsat.model.package import Package, Registry

Install = Callable[[str, str], None]
GO, CRATE, WHEEL, JAR, DEB, NPM = (
    Package(registry, name)
    for registry, name in (
        (Registry.GO, "example.org/q"), (Registry.CRATES, "quinn"), (Registry.PYPI, "some-quic"),
        (Registry.MAVEN, "org.example:a.quic"), (Registry.DEBIAN, "q"), (Registry.NPM, "@a/b"),
    )
)  # fmt: skip
SUM = "h1:OLJkp1Mlm/aS7dpKgTc6cnpynnD2Xg7C1pwL6vy/SAw="


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
    folder.mkdir(parents=True, exist_ok=True)
    lines = [b"head", *(json.dumps(each).encode() for each in entries)]
    (folder / "quinn").write_bytes(b"\0".join(lines))


def archive(*days: tuple[int, int, int]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        for number, day in enumerate(days):
            packed.writestr(zipfile.ZipInfo(str(number), (*day, 0, 0, 0)), b"")
    return stream.getvalue()


# ---- each registry --------------------------------------------------------------------------


def test_go_lists_releases_and_tells_the_checksum_of_its_database(tmp_path: Path, install: Install) -> None:
    answers = {
        "listed": {"Versions": ["v0.10.0", "v0.9.0", "v0.11.0-rc.1", "../x"]},
        "file": {"Version": "v0.9.0", "Sum": SUM, "Zip": str(tmp_path / "zip")},
        "old": {"Version": "v0.9.0", "Time": "2026-01-02T23:30:00-02:00"},
        "new": {"Version": "v0.10.0", "Time": "2026-03-01T10:00:00Z"},
    }
    for name, answer in answers.items():
        (tmp_path / name).write_text(json.dumps(answer))
    (tmp_path / "zip").write_bytes(b"zip")
    install("go", f"cd {tmp_path}; case $* in *-versions*) cat listed ;; list*@v0.9.0) cat old ;; "
            "list*@v0.10.0) cat new ;; mod*@v0.9.0) cat file ;; *) exit 1 ;; esac")  # fmt: skip
    assert versions_of(GO) == ("v0.9.0", "v0.10.0")
    assert ask(GO, "v0.9.0") == Releases("v0.10.0", {"v0.10.0": date(2026, 3, 1), "v0.9.0": date(2026, 1, 3)})
    assert ask(GO, "v0.8.0") == Releases("v0.10.0", {"v0.10.0": date(2026, 3, 1)})
    assert released(GO, "v0.9.0") == date(2026, 1, 3)
    with fetched(GO, "v0.9.0") as found:
        assert (found.checksum, found.path.read_bytes()) == (SUM, b"zip")
    with pytest.raises(MachineError, match=r"^Go has no example.org/q v0.9.9: the oldest is v0.9.0, the newest v0.11"):
        checksum_of(GO, "v0.9.9")


def test_cargo_s_index_tells_checksums_dates_and_what_was_withdrawn(tmp_path: Path, install: Install) -> None:
    index(
        tmp_path,
        {"vers": "0.10.0", "cksum": "ab", "pubtime": "2026-03-04T23:30:00-02:00"},
        {"vers": "0.9.0", "cksum": "cd", "pubtime": "2026-01-02T03:04:05Z"},
        {"vers": "0.12.0", "cksum": "ef", "yanked": True},
        {"vers": "0.11.0-beta.1", "cksum": "gh"},
    )
    crate = tmp_path / "cargo/registry/cache/example-1/quinn-0.10.0.crate"
    install("cargo", f"mkdir -p {crate.parent} && echo x >{crate}")
    assert versions_of(CRATE) == ("0.9.0", "0.10.0")
    days = {"0.10.0": date(2026, 3, 5), "0.9.0": date(2026, 1, 2)}
    assert ask(CRATE, "0.9.0") == Releases("0.10.0", days)
    assert ask(CRATE, "0.11.0-beta.1") == Releases("0.11.0-beta.1")
    with fetched(CRATE, "0.10.0") as found:
        assert (found.checksum, found.path) == ("sha256:ab", crate)
    with pytest.raises(MachineError, match=r"crates.io has no quinn 0.7.0: the oldest is 0.9.0"):
        checksum_of(CRATE, "0.7.0")


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
    assert checksum_of(WHEEL, "1.0") == f"sha256:{hashlib.sha256(wheel).hexdigest()}"
    assert ask(WHEEL, "1.0") == Releases("1.1", {"1.0": date(2026, 2, 3)})  # there is no wheel of the newest one
    with pytest.raises(MachineError, match="ERROR: no such release"):
        checksum_of(WHEEL, "1.1")


def test_maven_lists_releases_beside_the_newest_one_and_checks_the_archive(tmp_path: Path, install: Install) -> None:
    jar = archive((2026, 1, 2), (2026, 2, 3))
    (tmp_path / "jar").write_bytes(jar)
    install("mvn", 'for w; do case $w in -Dartifact=*) v=${w##*:} ;; -DoutputDirectory=*) d=${w#*=} ;; esac; done\n'
            '[ $v != RELEASE ] || v=1.10\n'
            'case "$*" in *--strict-checksums*:1.9\\ *|*:RELEASE*) ;; *) exit 1 ;; esac\n'
            f'mkdir -p "$d" && cp {tmp_path}/jar "$d/a.quic-$v.jar"')  # fmt: skip
    kept = tmp_path / ".m2/repository/org/example/a.quic"
    kept.mkdir(parents=True)
    (kept / "maven-metadata-central.xml").write_text(
        "<release>1.10</release><versions><version>1.9</version><version>1.10</version></versions>"
        "<lastUpdated>20260708120000</lastUpdated>"
    )
    assert versions_of(JAR) == ("1.9", "1.10")
    assert ask(JAR, "1.9") == Releases("1.10", {"1.10": date(2026, 7, 8), "1.9": date(2026, 2, 3)})
    assert checksum_of(JAR, "1.9") == f"sha256:{hashlib.sha256(jar).hexdigest()}"
    with pytest.raises(MachineError, match=r"Maven has no org.example:a.quic 1.8: the oldest is 1.9, the newest 1.10"):
        checksum_of(JAR, "1.8")


def test_releases_of_maven_that_end_in_final(tmp_path: Path, install: Install) -> None:
    (tmp_path / "jar").write_bytes(jar := archive((2026, 2, 3)))
    install("mvn", 'for w; do case $w in -Dartifact=*) v=${w##*:} ;; -DoutputDirectory=*) d=${w#*=} ;; esac; done\n'
            'case $v in RELEASE) v=4.2.10.Final ;; 4.2.9.Final) ;; *) exit 1 ;; esac\n'
            f'mkdir -p "$d" && cp {tmp_path}/jar "$d/a.quic-$v.jar"')  # fmt: skip
    kept = tmp_path / ".m2/repository/org/example/a.quic"
    kept.mkdir(parents=True)
    (kept / "maven-metadata-central.xml").write_text(
        "<release>4.2.10.Final</release><version>4.2.9.Final</version><version>4.2.10.Final</version>"
        "<lastUpdated>20260708120000</lastUpdated>"
    )
    assert versions_of(JAR) == ("4.2.9", "4.2.10")
    assert released(JAR, "4.2.10") == date(2026, 7, 8)
    assert checksum_of(JAR, "4.2.9") == f"sha256:{hashlib.sha256(jar).hexdigest()}"
    with pytest.raises(MachineError, match=r"Maven has no org.example:a.quic 4.2.1: the oldest is 4.2.9"):
        checksum_of(JAR, "4.2.1")


def test_npm_gives_all_versions_with_their_dates_and_archives(tmp_path: Path, install: Install) -> None:
    (tmp_path / "tgz").write_bytes(b"archive")
    versions = '["1.1.0", "1.10.0", "1.2.0", "1.11.0-canary.1"]'
    install("npm", f"""case $* in
        view*@a/b*) echo '{{"versions": {versions}, "time": {{"1.1.0": "2025-01-01T00:00:00Z"}}}}' ;;
        pack*@a/b@1.1.0) while [ "$1" != --pack-destination ]; do shift; done; cp {tmp_path}/tgz "$2/a-b-1.1.0.tgz" ;;
        *) echo 'npm error code ETARGET' >&2; exit 1 ;; esac""")  # fmt: skip
    assert versions_of(NPM) == ("1.1.0", "1.2.0", "1.10.0")
    assert ask(NPM, "1.1.0") == Releases("1.10.0", {"1.1.0": date(2025, 1, 1)})
    assert checksum_of(NPM, "1.1.0") == f"sha256:{hashlib.sha256(b'archive').hexdigest()}"
    with pytest.raises(MachineError, match=r"npm has no @a/b 1.0.0: the oldest is 1.1.0, the newest 1.11.0-canary.1"):
        checksum_of(NPM, "1.0.0")


def test_npm_prints_the_only_version_as_a_text(install: Install) -> None:
    install("npm", 'echo \'{"versions": "1.2.0", "time": {}}\'')
    assert versions_of(NPM) == ("1.2.0",)


def test_debian_s_suites_give_the_newest_version_and_the_dates_of_small_packages(install: Install) -> None:
    install("apt-get", 'case "$*" in *download*) printf "!<arch>\\n%-16s%-12s" debian-binary 1790000000 >x.deb ;; esac')
    install("apt-cache", 'case "$*" in *show*=1.9*) echo Size: 900000000 ;; *show*) echo Size: 1000 ;; '
            '*) printf "q | 2:1.9.0-1 | sid\\nq | 2:1.9.0-1 | b\\nq | 1.4.2-3+deb13u1 | c\\n" ;; esac')  # fmt: skip
    found = ask(DEB, "1.4.2")
    assert found == Releases("1.9.0", {"1.9.0": date(2026, 9, 21), "1.4.2": date(2026, 9, 21)})


@pytest.mark.parametrize(
    ("version", "project"),
    [("1:140.12.0esr-1~deb13u1", "140.12.0esr"), ("8.23.0~rc3-1", "8.23.0~rc3"), ("1.26.3", "1.26.3")],
)
def test_the_project_s_part_of_a_version_of_debian(version: str, project: str) -> None:
    assert upstream(version) == project


def test_a_branch_has_a_newest_version_of_its_own(tmp_path: Path, install: Install) -> None:
    install("apt-get", "exit 0")
    install("apt-cache", 'case "$*" in *show*) echo ;; *) for v in 3.50.1 3.6.5 1:3.5.9 3.5.7; do echo "q | $v-1 | s"; '
            'done ;; esac')  # fmt: skip
    assert ask(replace(DEB, branch="3.5"), "3.5.7") == Releases("3.5.9")
    install("cargo", "exit 0")
    index(tmp_path, {"vers": "0.11.9"}, {"vers": "0.12.0"}, {"vers": "0.1.99"})
    assert ask(replace(CRATE, branch="0.11"), "0.11.1") == Releases("0.11.9")


# ---- silent, damaged and hostile answers ----------------------------------------------------


def test_a_registry_that_does_not_answer_is_not_taken_for_one_without_news(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("npm", "echo 'npm ERR! network timeout' >&2; exit 1")
    install("go", "echo nonsense")
    install("cargo", "exit 0")
    install("apt-get", "sleep 9")
    install("mvn", "exit 0")
    assert "network timeout" in refusal(NPM)
    assert "damaged" in refusal(GO)
    assert "no index" in refusal(CRATE)
    assert "no archive" in refusal(JAR)
    monkeypatch.setattr(registries, "PATIENCE", 0.2)
    assert "did not end" in refusal(DEB)


def test_a_client_that_is_missing_is_named(install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "npm is not installed" in refusal(NPM)


def test_a_version_that_is_none_is_refused(install: Install) -> None:
    install("npm", 'echo \'{"versions": "1.0; rm", "time": {}}\'')
    assert "no version" in refusal(NPM)


def test_versions_that_are_none_reach_no_client(install: Install, tmp_path: Path) -> None:
    install("go", f"touch {tmp_path}/asked; exit 1")
    for version in ("--help", "../x", "1;rm", "", "1" * 41):
        for question in (checksum_of, released):
            with pytest.raises(MachineError, match="no such version"):
                question(GO, version)
    assert not (tmp_path / "asked").exists()


def test_a_registry_without_older_releases_and_damaged_answers(install: Install) -> None:
    with pytest.raises(MachineError, match="gives no older releases"):
        versions_of(DEB)
    for answer in ("[]", "{}", '{\\"Versions\\": null}', '{\\"Versions\\": [1]}'):
        install("go", f'echo "{answer}"')
        with pytest.raises(MachineError, match="damaged"):
            versions_of(GO)
    install("npm", "printf '[%.0s' $(seq 100000)")
    assert "damaged" in refusal(NPM)
