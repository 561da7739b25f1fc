"""``./run.py export``: writes results in the JSON formats of QIR and QIR-SE, and runs as qlogs or pcapng."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console, other_runners
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.options import QIR, QIR_SE
from quicsat.cli.output_files import check_earlier, check_no_run, check_outputs, check_place, check_target, is_plain
from quicsat.cli.program import CommandOptions, Program, option
from quicsat.cli.stored_run import stored_run
from quicsat.model.errors import HarnessFault, InputError
from quicsat.model.stored_files import resolved
from quicsat.model.text import escaped

if TYPE_CHECKING:
    from quicsat.model.results import ResultSet

QLOG, OLDER, PCAPNG = "qlog", "qlog-0.3", "pcapng"
QLOG_FOLDER, CAPTURE = "qlog", "run.pcapng"
"""In the directory of a run: where its exported qlogs and its capture are by default."""
GROUP = "Publish", 3
SUMMARY = "Write results in the JSON format of QIR or QIR-SE, or a run as qlogs or as pcapng."
DESCRIPTION = (
    "Write the results of a campaign in the JSON format of the QUIC Interop Runner (QIR) or of QIR-SE, the runner of "
    "arXiv 2202.08228, or write a run as three qlogs (of the client, of the server and of the link) or as one pcapng "
    "file with the traces of both ends, their keys, and comments."
)
EXAMPLES = (
    "export results/latest all.json --format qir",
    "export results/latest/quic-go_aioquic/sat/1 --format qlog",
    "export results/latest/quic-go_aioquic/sat/1 --format pcapng   # opens in Wireshark, decrypted",
)


class Options(CommandOptions, group="output"):
    """The options of the command."""

    directory: Path = option(
        type=Path, metavar="DIR",
        help="Directory of the campaign, or for qlog and pcapng of a run; example: results/latest.",
    )  # fmt: skip
    file: Path | None = option(
        type=Path, nargs="?", default=None, metavar="FILE",
        help=f"File to write, or directory for qlogs (default: none, or {QLOG_FOLDER} or {CAPTURE} in the directory of "
        "the run; "
        "example: all.json).",
    )  # fmt: skip
    format: str = option(
        "--format", choices=(QIR, QIR_SE, QLOG, OLDER, PCAPNG), default=QIR_SE, metavar="FORMAT",
        help=f"Write this format: {QIR}, {QIR_SE}, {QLOG} (JSON-SEQ), {OLDER} or {PCAPNG} (default: {QIR_SE}; "
        f"example: {QIR}).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Write the file or the qlogs, whose names are printed."""
    from quicsat.results import store

    if options.format in (QLOG, OLDER, PCAPNG):
        paths = _write_run(options.directory, options.file, options.format)
        console.show("\n".join(escaped(str(path)) for path in paths))
        return ExitStatus.SUCCESS
    if options.file is None:
        raise InputError(f"The format {options.format} needs FILE, the name of the file to write: {EXAMPLES[0]}")
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


def _write_run(directory: Path, target: Path | None, form: str) -> list[Path]:
    """The files of the run ``directory``; raises InputError if it is no run over QUIC with traces, MachineError."""
    from quicsat.analysis.link_qlog import LinkRun
    from quicsat.analysis.qlog_export import write_qlogs
    from quicsat.analysis.reanalysis import planned
    from quicsat.analysis.run_capture import write_capture
    from quicsat.model.trace_size import trace_packets
    from quicsat.model.whole_file import cannot_write, make_directories, replaced
    from quicsat.traces.quic_series import QuicTracePair
    from quicsat.traces.run_traces import check_traces, read_run

    results, result, place, named = stored_run(directory, EXAMPLES[1])
    files = _checked_files(target, named, form)
    evidence = result.evidence
    case = planned(results.manifest, result).under(evidence.perturbation).test_case
    try:
        found = check_traces(place, result.protocol, most=trace_packets(case))
        if not (len(found.client.datagrams) and len(found.server.datagrams)):
            reason = found.client.reason or found.server.reason
            raise InputError(f"{directory}: the run has no traces of both ends. {reason}".rstrip())
        traces = read_run(place, result.protocol, case.link, found)
    except HarnessFault as fault:
        raise InputError(f"{directory}: {fault.reason}") from fault
    if not isinstance(traces.trace_pair, QuicTracePair):
        raise InputError(f"{directory}: ran over TCP, and can only be exported with its campaign.")
    if form == PCAPNG:
        with replaced(files[0]) as file:
            write_capture(file, place, traces, case, evidence)
        return files
    try:
        link = LinkRun(case.link, evidence.simulator, evidence.seed, traces.start)
        folder = resolved(files[0].parent)
        make_directories(folder)
        write_qlogs(folder, str(result.key), traces, link, older=form == OLDER)
    except OSError as error:
        raise cannot_write(files[0].parent, error) from error
    return files


def _checked_files(target: Path | None, named: Path, form: str) -> list[Path]:
    """The files to write of the run that the user names ``named``; raises InputError if anything else is there."""
    from quicsat.analysis import qlog_export
    from quicsat.traces import pcapng_writer

    default = named / (CAPTURE if form == PCAPNG else QLOG_FOLDER)
    place = target or default
    if resolved(place) != resolved(named) / default.name:
        check_no_run("FILE", place)
    if form == PCAPNG:
        check_target(place)
        check_earlier("FILE", place, "export of this format", pcapng_writer.is_export)
        return [place]
    check_place(place, str(place))
    files = [place / name for name in qlog_export.file_names(older=form == OLDER)]
    for file in files:
        if file.is_symlink() or not is_plain(file):
            raise InputError(f"{file}: is no regular file. Choose another directory.")
        check_earlier("FILE", file, "export of this format", qlog_export.is_export)
    return files
