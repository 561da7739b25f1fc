"""What benchmarks that are scripts share: their options, and how they end; no script."""
# ruff: noqa: T201 - a script's part

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from quicsat.model.errors import HarnessFault, MachineError, UserError

ROOT = Path(__file__).resolve().parent.parent
DAEMON = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
"""Address of the daemon that the user has chosen."""


def run(main: Callable[[], int]) -> NoReturn:
    """Run a benchmark; what is wrong with options or the machine ends it with a message and an exit status."""
    try:
        sys.exit(main())
    except (UserError, HarnessFault) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_status if isinstance(error, UserError) else MachineError.exit_status)


def options_parser(description: str | None, numbers: Mapping[str, int]) -> argparse.ArgumentParser:
    """A parser with options that are whole numbers, by their names with their defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in numbers.items():
        parser.add_argument(name, type=int, default=default, help=f"default: {default}")
    return parser


def judged(bad: object) -> int:
    """Print whether the bars are reached; the exit status."""
    print("a bar is NOT reached" if bad else "all bars reached")
    return int(bool(bad))
