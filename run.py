#!/usr/bin/env python3
"""Measure QUIC over satellite links: `./run.py -t sat -s quic-go -c aioquic`; `./run.py --help` tells the rest."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE / ".venv"

python = ENVIRONMENT / "bin" / "python"
if __name__ == "__main__" and python.exists() and Path(sys.prefix) != ENVIRONMENT:
    os.execv(python, [str(python), *sys.argv])
if sys.version_info < (3, 11):  # noqa: UP036 - a newcomer may call it with any
    sys.exit("Python 3.11 or newer is needed; `make setup` finds or installs it.")

from quicsat.cli.entry_point import start  # noqa: E402

if __name__ == "__main__":
    sys.exit(start(HERE))
