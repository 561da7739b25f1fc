#!/usr/bin/env python3
"""Measure QUIC over satellite links: `./run.py -t sat -s quic-go -c aioquic`; `./run.py --help` tells the rest."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE / ".venv"

if (ENVIRONMENT / "bin" / "python").exists() and Path(sys.prefix) != ENVIRONMENT:
    os.execv(ENVIRONMENT / "bin" / "python", [str(ENVIRONMENT / "bin" / "python"), *sys.argv])
if sys.version_info < (3, 11):  # noqa: UP036 - a newcomer may call it with any
    sys.exit("Python 3.11 or newer is needed; `make setup` finds or installs it.")
try:
    from interop.cli import main
    from interop.pictures import Gallery, Wish
except ModuleNotFoundError as missing:
    sys.exit(f"The Python package {missing.name} is missing; `make setup` installs all that is needed.")


def draw(wish: Wish) -> Gallery:
    """Hand the plots to the command line, which does not know them; matplotlib is loaded when something is drawn."""
    from plots import catalogue

    return catalogue.draw(wish)


if __name__ == "__main__":
    sys.exit(main(HERE, draw=draw))
