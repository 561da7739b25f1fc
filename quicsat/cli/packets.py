"""``./run.py packets``: shows packets of a run with every field that tshark decodes."""

from __future__ import annotations

from pathlib import Path

from quicsat.cli import console, foreign_inputs
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions, Program, flag, option
from quicsat.config import quantities
from quicsat.model.errors import InputError
from quicsat.model.implementation import Role
from quicsat.model.stored_files import is_file
from quicsat.model.text import command_line, printable

MOST = "1000000000"
"""Highest number of a packet."""
LONGEST = 200
"""Characters of a field's values that are shown."""
GROUP = "Results", 8
SUMMARY = "Decrypt packets of a run, and show them with all fields."
DESCRIPTION = "Decrypt packets of a run, and show them with every QUIC and TLS field. This command needs tshark."
EXAMPLES = ("packets results/latest/quic-go_aioquic/sat/1 146",)


class Options(CommandOptions, group="trace"):
    """The options of the command."""

    run: Path = foreign_inputs.RUN
    frames: list[int] = option(
        parse=quantities.within(quantities.count, "1", MOST), nargs="+", metavar="FRAME",
        help="Frame numbers in the trace, as tshark and Wireshark count them; example: 146 147.",
    )  # fmt: skip
    server: bool = flag("--server", help="Read the trace at the server (default: the trace at the client).")


def run(options: Options, program: Program) -> int:
    """Print a line per frame, and below it a line per field with its values.

    Raises InputError if there is no such trace or frame, HarnessFault if tshark fails, MachineError if it is missing.
    """
    from quicsat.traces.key_log import key_lines
    from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS, SERVER_TRACE
    from quicsat.traces.tshark import tshark_fields

    role = Role.SERVER if options.server else Role.CLIENT
    with foreign_inputs.readable_captures(program, options.run, role) as directory:
        trace = directory / (SERVER_TRACE if options.server else CLIENT_TRACE)
        if not is_file(trace):
            raise InputError(f"{options.run}: has no such trace. Pass the directory of a run: {EXAMPLES[0].split()[1]}")
        found = tshark_fields(trace, key_lines(*(directory / log for log in KEY_LOGS)), options.frames)
    if found:
        for frame in filter(found.__contains__, options.frames):
            fields = [
                f"  {name}  {printable(', '.join(values), LONGEST)}" for name, values in found[frame].items() if name
            ]
            console.show("\n".join([f"frame {frame}", *fields]))
    missing = sorted({*options.frames} - {*found})
    if missing:
        raise InputError(
            f"{options.run}: the trace has no QUIC packets in these frames: {', '.join(map(str, missing))}.",
            'FRAME is the number of a captured frame, and "packet 6" in a reason is a QUIC packet number. To see what '
            f"happened in which frames: {command_line('explain', options.run)}",
        )
    return ExitStatus.SUCCESS
