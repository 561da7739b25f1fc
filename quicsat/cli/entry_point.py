"""The start of the program: ``./run.py`` and the command ``quicsat`` end up here.

The only module that knows both the command line and the figures.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console
from quicsat.model import product_files
from quicsat.model.errors import MachineError, UserError

if TYPE_CHECKING:
    from quicsat.report.plot_request import Gallery, PlotRequest

# Programs that analyse runs import this module, too, and inherit the environment.
gc.set_threshold(10_000)  # Python's 700 new objects between two searches for cycles cost a tenth of the start-up time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's idle threads cost half as much CPU time as its import


def start(folder: Path = Path()) -> int:
    """Run the command line; the exit status.

    ``folder``, by default the working directory, gets the results, and may have an ``implementations.json`` and
    ``testcases`` of the user's own.
    """
    console.open_closed_streams()
    try:
        return _run_command(folder.resolve())
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status


def _run_command(folder: Path) -> int:
    """Each command imports what it needs, so a missing package can turn up at any time."""
    try:
        from quicsat.cli.main import main

        return main(folder, draw=_draw, figures=_figures)
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package in ("", "quicsat"):
            raise
        remedy = "`make setup` installs all that is needed"
        if product_files.is_packaged():
            remedy = "install quicsat again, with all packages that it depends on"
        message = f"The Python package {package} is missing; {remedy}."
        raise MachineError(message) from missing


def _figures() -> dict[str, str]:
    """The names of all figures, with the heading of each."""
    from quicsat.plots import discovery

    return discovery.headings()


def _draw(request: PlotRequest) -> Gallery:
    """Hand the plots to the command line, which does not know them; matplotlib is loaded when something is drawn."""
    from quicsat.plots import discovery

    return discovery.draw(request)
