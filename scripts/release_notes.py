#!/usr/bin/env python3
"""Print the release notes of a version: its section of CHANGELOG.md, with links that work outside of the repository.

scripts/release_notes.py 1.0 https://github.com/OWNER/NAME
"""

import argparse
import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def notes(version: str, changelog: str, repository: str = "") -> str:
    """The text below the heading of ``version``, such as ``1.0`` or ``v1.0.0``; empty if there is none.

    With the address of the ``repository``, relative links lead to its files of that version.
    """
    wanted = _numbers(version)
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if _numbers(heading.partition(",")[0]) == wanted:
            tag = f"v{version.removeprefix('v')}"
            linked = re.sub(r"\]\((?!https?:|#)", f"]({repository}/blob/{tag}/", text) if repository else text
            return f"{linked.strip()}\n"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    """Of a version, without the zeros at its end, which say nothing."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def main(words: list[str]) -> int:
    """Print the notes; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("repository", nargs="?", default="")
    options = parser.parse_args(words)
    found = notes(options.version, CHANGELOG.read_text(encoding="utf-8"), options.repository.rstrip("/"))
    if not found:
        sys.stderr.write(f"{CHANGELOG.name} has no section of {options.version}.\n")
        return 1
    sys.stdout.write(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
