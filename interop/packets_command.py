"""What `./run.py packets` does: packets that a reason names, with every field that tshark knows."""

from __future__ import annotations

import argparse
from pathlib import Path

from interop.errors import InputError
from interop.names import printable

LONGEST = 200
"""Characters of a field's values that are shown."""


def carry_out(options: argparse.Namespace) -> str:
    """The frames as text: a line for each, and below it a line for each field of QUIC and TLS, with its values.

    Raises InputError if there is no such trace or frame, HarnessFault if tshark fails, MachineError if there is none.
    """
    from interop.traces.reading import CLIENT_TRACE, KEY_LOGS, SERVER_TRACE
    from interop.traces.trace import key_lines
    from interop.traces.tshark import deep_look

    trace = options.run / (SERVER_TRACE if options.server else CLIENT_TRACE)
    if not trace.is_file():
        raise InputError(f"{trace}: there is no such trace; name a run, as results/latest/quic-go_aioquic/sat/1.")
    keys = key_lines(*(options.run / log for log in KEY_LOGS))
    found = deep_look(trace, keys, options.frames)
    missing = sorted({*options.frames} - {*found})
    if missing:
        raise InputError(f"{trace}: has no packet of QUIC in frame {', '.join(map(str, missing))}.")
    return "\n".join(line for frame in options.frames for line in _lines(frame, found[frame]))


def _lines(frame: int, fields: dict[str, tuple[str, ...]]) -> list[str]:
    return [f"frame {frame}", *(f"  {name}  {_shown(', '.join(values))}" for name, values in fields.items() if name)]


def _shown(text: str) -> str:
    return printable(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("run", type=Path, metavar="RUN", help="directory of a run")
    parser.add_argument("frames", type=int, nargs="+", metavar="FRAME", help="numbers of frames in the trace")
    parser.add_argument("--server", action="store_true", help="in the server's trace, not the client's")
