"""``./run.py export``: writes results in the JSON formats of QIR and QIR-SE."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console, other_runners
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.options import QIR, QIR_SE
from quicsat.cli.output_files import check_outputs
from quicsat.cli.program import CommandOptions, Program, option

if TYPE_CHECKING:
    from quicsat.model.results import ResultSet

GROUP = "Publish", 3
SUMMARY = "Write results in the JSON format of QIR or QIR-SE."
DESCRIPTION = (
    "Write the results of a campaign in the JSON format of the QUIC Interop Runner (QIR) or of QIR-SE, the runner of "
    "arXiv 2202.08228."
)
EXAMPLES = ("export results/latest all.json --format qir",)


class Options(CommandOptions, group="output"):
    """The options of the command."""

    directory: Path = option(type=Path, metavar="DIR", help="Directory of the campaign; example: results/latest.")
    file: Path = option(type=Path, metavar="FILE", help="File to write; example: all.json.")
    format: str = option(
        "--format", choices=(QIR, QIR_SE), default=QIR_SE, metavar="FORMAT",
        help=f"Write this format: {QIR} or {QIR_SE} (default: {QIR_SE}; example: {QIR}).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Write the file."""
    from quicsat.results import store

    check_outputs(
        [("FILE", options.file)], [("DIR", options.directory)], campaign=options.directory, exported=options.file
    )
    other_runners.earlier_export("export", options.file, program.results, options.directory)
    results = console.warn(store.load(options.directory))
    write(results, options.directory, options.file, options.format)
    return ExitStatus.SUCCESS


def write(results: ResultSet, directory: Path, file: Path, form: str) -> None:
    """Write the results of the campaign in ``directory`` in one of the two formats; raises MachineError."""
    from quicsat.results import qir_export

    convert = qir_export.to_qir if form == QIR else qir_export.to_qir_se
    qir_export.write_json(file, convert(results, _log_directory(directory, file)))


def _log_directory(directory: Path, file: Path) -> str:
    """The path of a campaign relative to the JSON file; its name if the file is in it.

    The web page of QIR and the scripts of QIR-SE look for logs by the name of the directory that has the file.
    """
    place, beside = directory.resolve(), file.resolve().parent
    return place.name if place == beside else os.path.relpath(place, beside)
