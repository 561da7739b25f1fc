"""Newest releases of packages and their dates, asked with the registries' own clients on this machine.

The clients know the mirrors, proxies and credentials of this machine: cargo, go, pip, npm, Maven and apt-get.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from quicsat.images.build_log import BuildLog
from quicsat.images.build_recipes import BASE_SUITE
from quicsat.model.errors import MachineError
from quicsat.model.package import PRE_RELEASE, Package, Registry, release_order
from quicsat.model.units import MIB, seconds
from quicsat.model.whole_file import scratch_directory

PATIENCE = 300.0
"""Seconds within which a client must end."""
LARGEST_ANSWER = 64 * MIB
LARGEST_PACKAGE = 20 * MIB
"""Bytes of a package of Debian that is fetched for its date."""
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~:_-]{0,79}")
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
MAVEN_NEWEST = "RELEASE"
SUITES = (
    ("http://deb.debian.org/debian", BASE_SUITE),
    ("http://deb.debian.org/debian-security", f"{BASE_SUITE}-security"),
    ("http://deb.debian.org/debian", f"{BASE_SUITE}-backports"),
    ("http://deb.debian.org/debian", "sid"),
)
"""Address and name of the suites of Debian from which images can be built: stable, its updates, and unstable."""
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
EARLIEST = date(1990, 1, 1)
"""Archives that are built reproducibly can have an earlier date, which says nothing."""


@dataclass(frozen=True)
class Releases:
    """What a registry says about a package."""

    newest: str
    dates: Mapping[str, date] = field(default_factory=dict)
    """Of releases; those without a known date are missing."""


Look = Callable[[Package, str], Releases]
"""Answers for a package and its pinned version; raises :class:`MachineError` if the registry does not answer."""
Answer = Releases | MachineError


def look_up(wanted: Iterable[tuple[Package, str]]) -> dict[tuple[Package, str], Answer]:
    """What the registries say about packages with their pinned versions, or why one did not answer.

    Registries are asked at the same time, the packages of one registry one after the other.
    """
    groups: dict[Registry, list[tuple[Package, str]]] = {}
    for each in dict.fromkeys(wanted):
        groups.setdefault(each[0].registry, []).append(each)
    if not groups:
        return {}
    with ThreadPoolExecutor(len(groups)) as pool:
        found = pool.map(lambda item: _of_registry(*item), groups.items())
        return {key: answer for answers in found for key, answer in answers.items()}


def _of_registry(registry: Registry, wanted: Iterable[tuple[Package, str]]) -> dict[tuple[Package, str], Answer]:
    answers: dict[tuple[Package, str], Answer] = {}
    with scratch_directory() as folder:
        try:
            look = CLIENTS[registry](folder)
        except MachineError as error:
            return dict.fromkeys(wanted, error)
        for package, pinned in wanted:
            try:
                releases = look(package, pinned)
                if not VERSION.fullmatch(releases.newest):
                    raise MachineError(f"{registry} gives no version of {package.name}.")
                answers[package, pinned] = releases
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                answers[package, pinned] = MachineError(
                    f"{registry}: the answer about {package.name} is damaged: {error}"
                )
            except MachineError as error:
                answers[package, pinned] = error
    return answers


# ---- registries ------------------------------------------------------------------------------


def crate_entries(name: str) -> list[dict[str, Any]]:
    """What the index of crates.io says about each release of a crate; raises :class:`MachineError`."""
    client("cargo", "info", "--quiet", "--registry", "crates-io", name)
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    files = list((home / "registry/index").glob(f"*/.cache/*/*/{name}"))
    if not files:
        raise MachineError(f"crates.io: cargo keeps no index of {name}.")
    newest_file = max(files, key=lambda path: path.stat().st_mtime)
    return [json.loads(line) for line in newest_file.read_bytes().split(b"\0") if line.startswith(b"{")]


def _crates(_folder: Path) -> Look:
    """cargo prints no dates, but keeps what the registry's index says about each release, with its date."""

    def look(package: Package, pinned: str) -> Releases:
        entries = crate_entries(package.name)
        usable = [each["vers"] for each in entries if not each.get("yanked") and package.counts(each["vers"])]
        dates = {each["vers"]: day_of(each["pubtime"]) for each in entries if each.get("pubtime")}
        return Releases(max(_stable(usable, pinned), key=release_order, default=""), dates)

    return look


def _go(_folder: Path) -> Look:
    def module(package: Package, version: str) -> Mapping[str, Any]:
        text = client("go", "list", "-m", "-json", f"{package.name}@{version}", environment={"GOFLAGS": "-mod=mod"})
        return mapping(text)

    def look(package: Package, pinned: str) -> Releases:
        found = [module(package, "latest"), module(package, pinned)]
        return Releases(
            found[0]["Version"], {each["Version"]: day_of(each["Time"]) for each in found if "Time" in each}
        )

    return look


def _pypi(folder: Path) -> Look:
    """pip prints no dates: those of releases are those of the files in their wheels."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")

    def wheel_date(name: str, version: str) -> date | None:
        try:
            options = ("--no-deps", "--only-binary", ":all:", "--python-version", "3.13", "-d", str(folder))
            client(*pip, "download", *options, f"{name}=={version}")
        except MachineError:
            return None
        files = [path for path in folder.iterdir() if path.name.startswith(f"{name.replace('-', '_')}-{version}-")]
        return date_of_zip(files[0]) if files else None

    def look(package: Package, pinned: str) -> Releases:
        text = client(*pip, "index", "versions", "--ignore-requires-python", package.name)
        found = re.match(r"\S+ \((\S+)\)", text)
        if found is None:
            raise MachineError(f"PyPI: pip names no version of {package.name}.")
        dates = {version: wheel_date(package.name, version) for version in {found[1], pinned}}
        return Releases(found[1], {version: day for version, day in dates.items() if day})

    return look


def _npm(folder: Path) -> Look:
    def look(package: Package, _pinned: str) -> Releases:
        answer = mapping(client("npm", "view", "--json", package.name, "version", "time", folder=folder))
        times = answer.get("time", {})
        return Releases(answer["version"], {version: day_of(time) for version, time in times.items()})

    return look


def _maven(folder: Path) -> Look:
    """Maven prints no dates: it keeps that of the newest release, and archives can have those of their files."""

    def look(package: Package, pinned: str) -> Releases:
        dates: dict[str, date] = {}
        newest = ""
        for wanted in (MAVEN_NEWEST, pinned):
            archive = maven_archive(package.name, wanted, folder / wanted)
            version = archive.stem.removeprefix(f"{package.name.rpartition(':')[2]}-")
            newest = newest or version
            if day := date_of_zip(archive):
                dates[version] = day
            if newest == pinned:
                break
        for kept in maven_metadata(package.name):
            if stamp := re.search(r"<lastUpdated>(\d{8})", kept):
                dates[newest] = datetime.strptime(stamp[1], "%Y%m%d").date()
        return Releases(newest, dates)

    return look


def maven_archive(name: str, version: str, place: Path) -> Path:
    """An archive, copied into a new folder; of ``MAVEN_NEWEST``, Maven also keeps the list of all versions."""
    options = (f"-Dartifact={name}:{version}", "-Dmdep.overWriteReleases=true", f"-DoutputDirectory={place}")
    client("mvn", "-B", "-q", "--strict-checksums", MAVEN_COPY, *options, folder=place.parent)
    archive = next(place.glob(f"{name.rpartition(':')[2]}-*.jar"), None)
    if archive is None:
        raise MachineError(f"Maven gives no archive of {name}.")
    return archive


def maven_metadata(name: str) -> list[str]:
    """The lists of versions that Maven keeps, of each repository that it asked."""
    group, _, artifact = name.partition(":")
    place = Path.home() / ".m2/repository" / group.replace(".", "/") / artifact
    return [kept.read_text(encoding="utf-8") for kept in place.glob("maven-metadata-*.xml")]


def _debian(folder: Path) -> Look:
    """All suites of ``SUITES``, with lists of their own; dates are those of the packages' archives.

    Versions are those of the projects, without Debian's revision. A suite whose lists have expired still counts: a
    mirror may be late.
    """
    for name in ("lists/partial", "cache/archives/partial", "etc/preferences.d"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    lines = (f"deb [signed-by={KEYRING} check-valid-until=no] {address} {suite} main\n" for address, suite in SUITES)
    (folder / "sources.list").write_text("".join(lines), encoding="utf-8")
    paths = {
        "Dir::State::lists": "lists", "Dir::State::status": "status", "Dir::Cache": "cache",
        "Dir::Etc::sourcelist": "sources.list", "Dir::Etc::sourceparts": "etc", "Dir::Etc::preferences": "none",
        "Dir::Etc::preferencesparts": "etc/preferences.d",
    }  # fmt: skip
    options = [word for key, name in paths.items() for word in ("-o", f"{key}={folder / name}")]
    options += ["-o", "APT::Sandbox::User=root", "-o", "APT::Update::Error-Mode=any", "-o", "Acquire::Languages=none"]
    client("apt-get", *options, "-qq", "update")

    def deb_date(name: str, version: str) -> date | None:
        shown = client("apt-cache", *options, "show", f"{name}={version}")
        size = re.search(r"^Size: (\d+)$", shown, re.MULTILINE)
        if size is None or int(size[1]) > LARGEST_PACKAGE:
            return None
        place = folder / f"deb-{name}-{upstream(version)}"
        place.mkdir(exist_ok=True)
        try:
            client("apt-get", *options, "-qq", "download", f"{name}={version}", folder=place)
        except MachineError:
            return None
        return next((_date_of_deb(path) for path in place.glob("*.deb")), None)

    def look(package: Package, pinned: str) -> Releases:
        rows = [line.split("|") for line in client("apt-cache", *options, "madison", package.name).splitlines()]
        found = dict.fromkeys(row[1].strip() for row in rows if len(row) == 3)  # the newest first
        versions = [each for each in found if package.counts(upstream(each))]
        if not versions:
            raise MachineError(f"Debian has no package {package.name} in {', '.join(suite for _, suite in SUITES)}.")
        wanted = {
            upstream(each): each for each in reversed(versions) if upstream(each) in (upstream(versions[0]), pinned)
        }
        dates = {version: deb_date(package.name, whole) for version, whole in wanted.items()}
        return Releases(upstream(versions[0]), {version: day for version, day in dates.items() if day})

    return look


CLIENTS: Mapping[Registry, Callable[[Path], Look]] = {
    Registry.CRATES: _crates,
    Registry.GO: _go,
    Registry.PYPI: _pypi,
    Registry.NPM: _npm,
    Registry.MAVEN: _maven,
    Registry.DEBIAN: _debian,
}
"""How to ask each registry, with a folder for temporary files."""


# ---- versions and dates -----------------------------------------------------------------------


def upstream(version: str) -> str:
    """The project's part of a version of Debian: ``1:140.12.0esr-1~deb13u1`` -> ``140.12.0esr`` (deb-version(7))."""
    return version.partition(":")[2].rpartition("-")[0] or version.rpartition("-")[0] or version


def _stable(versions: Iterable[str], pinned: str) -> list[str]:
    """Without pre-releases, unless one is pinned or there is nothing else."""
    known = list(versions)
    stable = [each for each in known if not PRE_RELEASE.search(each)]
    return known if PRE_RELEASE.search(pinned) or not stable else stable


def day_of(text: str) -> date:
    return datetime.fromisoformat(text).astimezone(UTC).date()


def date_of_zip(path: Path) -> date | None:
    """The newest file in an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            days = [date(*entry.date_time[:3]) for entry in archive.infolist()]
    except (OSError, zipfile.BadZipFile, ValueError):
        return None
    return _telling(max(days, default=EARLIEST))


def _date_of_deb(path: Path) -> date | None:
    """The time of the first member (deb(5), ar(5)), which is that of the changelog's last entry."""
    head = path.read_bytes()[:68] if path.stat().st_size <= 2 * LARGEST_PACKAGE else b""
    stamp = head[24:36].strip()
    return _telling(datetime.fromtimestamp(int(stamp), UTC).date()) if stamp.isdigit() else None


def _telling(day: date) -> date | None:
    return day if EARLIEST < day <= datetime.now(UTC).date() else None


# ---- clients ------------------------------------------------------------------------------------


def mapping(text: str) -> Mapping[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is no object.")
    return found


def client(*command: str, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """What a client prints; raises :class:`MachineError` if it is missing, fails, or does not end in time."""
    name = "pip" if command[0] == sys.executable else command[0]
    variables = {**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False, cwd=folder,
            env=variables,
        )  # fmt: skip
    except FileNotFoundError:
        raise MachineError(f"{name} is not installed, so that its registry cannot be asked.") from None
    except subprocess.TimeoutExpired:
        raise MachineError(f"{name} did not end within {seconds(PATIENCE)}.") from None
    if done.returncode:
        log = BuildLog()
        for line in (done.stderr or done.stdout)[:LARGEST_ANSWER].decode(errors="replace").splitlines():
            log.add(line)
        raise MachineError(f"{name} failed: {log.reason or f'exit status {done.returncode}'}")
    if len(done.stdout) > LARGEST_ANSWER:
        raise MachineError(f"{name} printed more than {LARGEST_ANSWER // MIB} MiB.")
    return done.stdout.decode(errors="replace")
