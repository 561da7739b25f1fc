"""The start of the program: ``./run.py`` and the command ``quicsat`` end up here.

The only module that knows both the command line and the figures; it needs the files of a checkout.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console
from quicsat.model.errors import MachineError, UserError

if TYPE_CHECKING:
    from quicsat.report.plot_request import Gallery, PlotRequest

# Programs that analyse runs import this module, too, and inherit the environment.
gc.set_threshold(10_000)  # Python's 700 new objects between two searches for cycles cost a tenth of the start-up time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's idle threads cost half as much CPU time as its import

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("implementations.json", "testcases", "web")
"""What a checkout has beside ``quicsat/``."""


def start(root: Path = ROOT) -> int:
    """Run the command line for the checkout at ``root``; the exit status."""
    console.open_closed_streams()
    try:
        check_checkout(root)
        return _run_command(root)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status


def check_checkout(root: Path) -> None:
    """Raise :class:`MachineError` if ``root`` is not a checkout, which is so after an installation that copies."""
    missing = [name for name in NEEDED if not (root / name).exists()]
    if missing:
        message = (
            f"quicsat needs the files of its checkout, but {root} has no {' and no '.join(missing)}. "
            "In a clone of the repository, run ./run.py, or install the command with `pip install -e .`."
        )
        raise MachineError(message)


def _run_command(root: Path) -> int:
    """Each command imports what it needs, so a missing package can turn up at any time."""
    try:
        from quicsat.cli.main import main

        return main(root, draw=_draw, figures=_figures)
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if not package or (root / package).is_dir():
            raise
        message = f"The Python package {package} is missing; `make setup` installs all that is needed."
        raise MachineError(message) from missing


def _figures() -> dict[str, str]:
    """The names of all figures, with the heading of each."""
    from quicsat.plots import discovery

    return discovery.headings()


def _draw(request: PlotRequest) -> Gallery:
    """Hand the plots to the command line, which does not know them; matplotlib is loaded when something is drawn."""
    from quicsat.plots import discovery

    return discovery.draw(request)
