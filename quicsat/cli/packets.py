"""``./run.py packets``: lists the packets of a run or a qlog, or shows some with every field that tshark decodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console, foreign_inputs
from quicsat.cli import options as shared
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions, Program, flag, option
from quicsat.config import quantities
from quicsat.model.errors import InputError
from quicsat.model.implementation import Role
from quicsat.model.stored_files import is_file
from quicsat.model.text import command_line, printable

if TYPE_CHECKING:
    from quicsat.traces.columns import Trace

MOST = "1000000000"
"""Highest number of a packet."""
LONGEST = 200
"""Characters of a field's values that are shown."""
GROUP = "Results", 8
SUMMARY = "List the packets of a run or of a qlog, or show packets with all fields."
DESCRIPTION = (
    "List the packets of a run or of a qlog with their numbers, sizes and frames. Of a run, FRAME decrypts these "
    "packets and shows every QUIC and TLS field, for which this command needs tshark."
)
EXAMPLES = (
    "packets results/latest/quic-go_aioquic/sat/1 146",
    "packets results/latest/quic-go_aioquic/sat/1 --server --format csv",
    "packets server.sqlog                            # of an endpoint, or of export",
)


class Options(CommandOptions, group="trace"):
    """The options of the command."""

    run: Path = foreign_inputs.RUN
    frames: list[int] = option(
        parse=quantities.within(quantities.count, "1", MOST), nargs="*", metavar="FRAME", default=[],
        help="Frame numbers in the trace, as tshark and Wireshark count them, or of datagrams in a qlog (default: list "
        "all packets; example: 146 147).",
    )  # fmt: skip
    server: bool = flag("--server", help="Read the trace or qlog at the server (default: the one at the client).")
    format: str = shared.FORMAT


def run(options: Options, program: Program) -> int:
    """Print a line per packet, or per frame, and below it a line per field with its values.

    Raises InputError if there is no such trace or frame, HarnessFault if tshark fails, MachineError if it is missing.
    """
    from quicsat.traces.capture_contents import TRACES
    from quicsat.traces.key_log import key_lines
    from quicsat.traces.run_traces import KEY_LOGS
    from quicsat.traces.trace import read

    role = Role.SERVER if options.server else Role.CLIENT
    if (own := foreign_inputs.one_qlog(options.run, role)) is not None:
        for note in own.notes:
            console.message(note)
        return _list(options, own.packets, f"{own.role}'s qlog")
    with foreign_inputs.readable_captures(program, options.run, role) as directory:
        trace = directory / TRACES[role]
        if not is_file(trace):
            raise InputError(f"{options.run}: has no such trace. Pass the directory of a run: {EXAMPLES[0].split()[1]}")
        keys = key_lines(*(directory / log for log in KEY_LOGS))
        if options.frames:
            return _show_fields(options, trace, keys)
        return _list(options, read(trace, keys), f"{role}'s trace")


def _list(options: Options, trace: Trace, name: str) -> int:
    from quicsat.report.packet_table import listing, packet_table
    from quicsat.report.table import render

    if not len(trace):
        raise InputError(f"{options.run}: the {name} has no QUIC packets.")
    _check_all(options, {*trace.frame.tolist()}, name)
    table = packet_table(trace, f"Packets of the {name}", options.frames)
    text = options.format == "text"
    console.show(listing(table, console.width()) if text else render(table, options.format))
    return ExitStatus.SUCCESS


def _show_fields(options: Options, trace: Path, keys: Sequence[str]) -> int:
    from quicsat.traces.tshark import tshark_fields

    found = tshark_fields(trace, keys, options.frames)
    for frame in filter(found.__contains__, options.frames):
        fields = [f"  {name}  {printable(', '.join(values), LONGEST)}" for name, values in found[frame].items() if name]
        console.show("\n".join([f"frame {frame}", *fields]))
    _check_all(options, found, "trace")
    return ExitStatus.SUCCESS


def _check_all(options: Options, found: Collection[int], name: str) -> None:
    """Raise InputError if one of the frames is not among those that were found."""
    missing = sorted({*options.frames} - {*found})
    if missing:
        raise InputError(
            f"{options.run}: the {name} has no QUIC packets in these frames: {', '.join(map(str, missing))}.",
            'FRAME is the number of a captured frame, and "packet 6" in a reason is a QUIC packet number. To see what '
            f"happened in which frames: {command_line('explain', options.run)}",
        )
