"""What benchmarks that are scripts share: their options, and their tables; no script."""
# ruff: noqa: T201 - a script's part

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from prettytable import PrettyTable

ROOT = Path(__file__).resolve().parent.parent
DAEMON = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
"""Address of the daemon that the user has chosen."""


def options_parser(description: str | None, numbers: Mapping[str, int]) -> argparse.ArgumentParser:
    """A parser with options that are whole numbers, by their names with their defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in numbers.items():
        parser.add_argument(name, type=int, default=default, help=f"default: {default}")
    return parser


def counts_table(rows: Iterable[tuple[str, object]], header: str = "count") -> str:
    """A table of what was counted, and how much."""
    table = PrettyTable(["", header], align="l")
    table.add_rows([[*row] for row in rows])
    return str(table)


def judged(bad: object) -> int:
    """Print whether the bars are reached; the exit status."""
    print("a bar is NOT reached" if bad else "all bars reached")
    return int(bool(bad))
