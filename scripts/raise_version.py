#!/usr/bin/env python3
"""Raise the version of an implementation, rebuild and test its image, and write the facts that follow from it.

scripts/raise_version.py NAME [VERSION]

Without VERSION, the newest one of the package's registry. If a step fails, the changed files stay as they are, so that
you can adapt the folder and call the command again with this version.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from quicsat.config.cost_entry import with_key
from quicsat.config.implementations import BUILD_ARGUMENTS_KEY
from quicsat.config.inventory import IMPLEMENTATIONS
from quicsat.config.loader import load_implementations
from quicsat.docker.provenance import arguments_of
from quicsat.images.archives import VERSION
from quicsat.images.releases import pinned_version, releases_of
from quicsat.model.errors import UserError
from quicsat.model.implementation import Implementation
from quicsat.model.package import Package
from quicsat.model.product_files import build_folder

ROOT = Path(__file__).resolve().parents[1]
MANIFESTS = ("Cargo.toml", "go.mod", "requirements.txt", "pom.xml")
"""Files in which a language's package manager is told the version."""
CHECKED = ("REVISION", "PATCHES")
"""Arguments of a Dockerfile that depend on the version, and that its build checks."""
COMPARED = re.compile(r'echo "\$\{SHA256\} (\S+)" \| sha256sum -c')
"""In a Dockerfile: how its build compares the checksum of an archive."""
REVISION = 'org.opencontainers.image.revision="'


def raise_pin(folder: Path, package: Package, old: str, new: str) -> list[Path]:
    """Write the new version wherever the files of a folder pin the old one; the files that changed.

    Raises ValueError if the Dockerfile does not pin the old version.
    """
    dockerfile = folder / "Dockerfile"
    text = dockerfile.read_text(encoding="utf-8")
    pin = re.compile(rf"^(ARG {package.argument}=){re.escape(old)}$", re.MULTILINE)
    changed, pins = pin.subn(rf"\g<1>{new}", text)
    if not pins:
        raise ValueError(f"{dockerfile} has no line ARG {package.argument}={old}: raise it by hand.")
    dockerfile.write_text(changed, encoding="utf-8")
    files = [dockerfile]
    for manifest in (folder / name for name in MANIFESTS):
        if manifest.is_file():
            before = manifest.read_text(encoding="utf-8")
            after = re.sub(rf"(?<![\w.-]){re.escape(old)}(?![\w.-])", new, before)
            if after == before:
                raise ValueError(f"{manifest} does not name version {old}: raise it by hand.")
            manifest.write_text(after, encoding="utf-8")
            files.append(manifest)
    return files


def raise_argument(implementation: Implementation, argument: str, new: str) -> Path:
    """Write the new version into the build arguments of an entry of implementations.json; the file."""
    file = ROOT / IMPLEMENTATIONS
    arguments = {each.name: each.value for each in implementation.build_arguments} | {argument: new}
    text = file.read_text(encoding="utf-8")
    file.write_text(with_key(text, implementation.name, BUILD_ARGUMENTS_KEY, arguments), encoding="utf-8")
    return file


def lock(folder: Path, package: Package, new: str) -> None:
    """Let the package manager write its lock file, and the Dockerfile the labels that follow from it."""
    if (folder / "Cargo.lock").is_file():
        run("cargo", "update", "--quiet", "--package", package.name, "--precise", new, folder=folder)
        write_labels_of_crates(folder, package)
    elif (folder / "go.sum").is_file():
        run("go", "mod", "tidy", folder=folder)


def write_labels_of_crates(folder: Path, package: Package) -> None:
    """The commit that the package states, and the versions of further crates that the label of the source names."""
    text = run("cargo", "metadata", "--format-version", "1", "--locked", folder=folder, shown=False)
    crates = {each["name"]: each for each in json.loads(text)["packages"]}
    stated = Path(crates[package.name]["manifest_path"]).with_name(".cargo_vcs_info.json")
    commit = json.loads(stated.read_text(encoding="utf-8"))["git"]["sha1"] if stated.is_file() else ""
    dockerfile = folder / "Dockerfile"
    before = dockerfile.read_text(encoding="utf-8")
    after = re.sub(rf"{re.escape(REVISION)}[0-9a-f]*", f"{REVISION}{commit}", before)

    def with_version(found: re.Match[str]) -> str:
        return f", {found[1]} {crates[found[1]]['version']}" if found[1] in crates else found[0]

    after = re.sub(r", ([a-z][a-z0-9_-]*) \d[\w.+-]*", with_version, after)
    dockerfile.write_text(after, encoding="utf-8")


def write_checksum(name: str, dockerfile: Path) -> None:
    """Write the checksum of the archive that a build downloads; for it, the build prints the checksum and stops.

    Raises ValueError if it stops earlier.
    """
    text = dockerfile.read_text(encoding="utf-8")
    if not COMPARED.search(text):
        return
    dockerfile.write_text(COMPARED.sub(r"sha256sum \1 && false", text), encoding="utf-8")
    try:
        run(sys.executable, "run.py", "images", "build", name)
    except subprocess.CalledProcessError:
        log = (build_folder() / "logs" / f"{name}.log").read_text(encoding="utf-8", errors="replace")
    else:
        log = ""
    finally:
        dockerfile.write_text(text, encoding="utf-8")
    if (found := re.search(r"^([0-9a-f]{64}) ", log, re.MULTILINE)) is None:
        raise ValueError(f"{name}: its build downloads no archive, see its log.")
    raised = re.sub(r"^ARG SHA256=[0-9a-f]*$", f"ARG SHA256={found[1]}", text, flags=re.MULTILINE)
    dockerfile.write_text(raised, encoding="utf-8")


def run(*command: str, folder: Path = ROOT, shown: bool = True) -> str:
    """Standard output of a command, which is shown, too, or only returned; raises CalledProcessError."""
    sys.stderr.write(f"+ {' '.join(command)}\n")
    done = subprocess.run(command, cwd=folder, check=True, text=True, stdout=None if shown else subprocess.PIPE)
    return done.stdout or ""


def test(implementation: Implementation) -> None:
    """Build the image, and run its contract tests, functional tests and variants; raises CalledProcessError."""
    name, program = implementation.name, (sys.executable, "run.py", "images")
    run(*program, "build", name)
    run(*program, "check", name, "--clock", "virtual", "--wait")
    run(sys.executable, "-m", "pytest", "-q", "-m", "endpoints", "-k", name, "tests/endpoints")
    if any(variant.server for variant in implementation.variants):
        run(sys.executable, "-m", "bench.variants", name)


def main(words: Sequence[str]) -> int:
    """Exit status: 0 raised and tested, or current already; 1 a step failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("version", nargs="?", default="")
    options = parser.parse_args(words)
    try:
        implementation = load_implementations(ROOT / IMPLEMENTATIONS).get(options.name)
        if implementation is None or implementation.package is None or implementation.build is None:
            raise ValueError(f"implementations.json names no package of {options.name}.")
        package, folder = implementation.package, ROOT / implementation.build
        old = pinned_version(ROOT, implementation)
        release = None if options.version else releases_of(ROOT, [implementation])[0]
        new = options.version or (release.newest if release else "")
        if not new:
            raise ValueError(release.fault if release else "")
        if not VERSION.fullmatch(new):
            raise ValueError(f"{new!r} is no version.")
        if new == old and not options.version:
            sys.stdout.write(f"{options.name}: {old} is current.\n")
            return 0
        if new != old and any(each.name == package.argument for each in implementation.build_arguments):
            raise_argument(implementation, package.argument, new)
        elif new != old:
            raise_pin(folder, package, old, new)
        lock(folder, package, new)
        write_checksum(implementation.name, folder / "Dockerfile")
        sys.stdout.write(f"{options.name}: {old} -> {new}\n")
        if pinned := sorted(arguments_of(folder / "Dockerfile").keys() & set(CHECKED)):
            sys.stdout.write(f"The build checks {', '.join(pinned)} in its Dockerfile, which depend on the version.\n")
        test(implementation)
        run(sys.executable, "-m", "scripts.generate")
    except (OSError, ValueError, LookupError, UserError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(
        f"Look at the congestion control of {options.name} in implementations.json, which was found in {old}, "
        "and at docs/measurements/variants.md.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
