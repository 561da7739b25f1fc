#!/usr/bin/env python3
"""Measure QUIC over satellite links: `./run.py -t sat -s quic-go -c aioquic`; `./run.py --help` tells the rest."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE / ".venv"

python = ENVIRONMENT / "bin" / "python"
if __name__ == "__main__" and python.exists() and Path(sys.prefix) != ENVIRONMENT:
    os.execv(python, [str(python), *sys.argv])
if sys.version_info < (3, 11):  # noqa: UP036 - a newcomer may call it with any
    sys.exit("Python 3.11 or newer is needed; `make setup` finds or installs it.")

from interop.errors import UserError  # noqa: E402
from interop.execution import lock  # noqa: E402

if TYPE_CHECKING:
    from interop.pictures import Gallery, Wish


def start() -> int:
    """The exit status of the command; who comes second is told so before anything large is loaded."""
    try:
        with lock.early(sys.argv[1:], os.environ):
            return carry_out()
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status


def carry_out() -> int:
    """Hand over to the command line."""
    try:
        from interop.cli import main
    except ModuleNotFoundError as missing:
        sys.exit(f"The Python package {missing.name} is missing; `make setup` installs all that is needed.")
    return main(HERE, draw=draw)


def draw(wish: Wish) -> Gallery:
    """Hand the plots to the command line, which does not know them; matplotlib is loaded when something is drawn."""
    from plots import catalogue

    return catalogue.draw(wish)


if __name__ == "__main__":
    sys.exit(start())
