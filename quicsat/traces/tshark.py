"""Asks tshark for all that it knows of a few packets, and lets editcap convert captures of formats that we do not read.

The only caller of Wireshark's programs and importer of pyshark; tshark 4.0 and 4.4 are to be had in Debian 12 and 13.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.outcomes import ErrorCode
from quicsat.model.stored_files import open_file
from quicsat.model.text import printable
from quicsat.model.whole_file import scratch_directory

TIMEOUT = 120.0
"""Seconds that tshark may take for one trace."""
MEMORY_LIMIT = 2 * 1024**3
"""Address space of tshark, bytes."""
ANSWER_LIMIT = 64 * 1024 * 1024
"""Bytes of tshark's answer that ``tshark_fields`` reads."""
ERRORS_LIMIT = 4000
"""Bytes of the errors of a program that are looked at."""
CONVERTED_LIMIT = 4 * 1024**3
"""Bytes of a capture that editcap converts, which may come compressed."""
COMPLAINT = re.compile(r'^editcap: The file ".*" (.+)', re.MULTILINE)
"""How editcap names damage; it ends with status 0 all the same."""
DAMAGE = re.compile(r"cut short|damaged or corrupt")
STANDARD_INPUT = "/proc/self/fd/0"
"""Where programs find a capture that was opened for them, and can seek in it."""
HTTP3_OFF = ("--disable-protocol", "http3")
"""HTTP/3 costs time and is not looked at."""


def tshark_path() -> str:
    """Where tshark is; raises MachineError with the remedy if there is none."""
    found = shutil.which("tshark")
    if found is None:
        raise MachineError("tshark is not installed, which takes packets apart to be looked at: apt-get install tshark")
    return found


def tshark_version() -> str:
    """``4.0.17``; raises MachineError if there is no tshark or it does not answer."""
    try:
        answer = subprocess.run(
            [tshark_path(), "--version"], capture_output=True, text=True, timeout=30, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineError(f"tshark does not tell its version: {error}") from error
    found = re.search(r"TShark.*?(\d+\.\d+\.\d+)", answer.stdout)
    if found is None:
        raise MachineError(f"tshark does not tell its version; it ended with status {answer.returncode}.")
    return found[1]


def tshark_fields(
    path: Path, keys: Iterable[str], frames: Sequence[int], timeout: float = TIMEOUT
) -> dict[int, dict[str, tuple[str, ...]]]:
    """Every QUIC field of a few captured frames (``Trace.frame``), by frame number and field name.

    Frames that are not QUIC packets, such as those of ARP, are left out. For what the columns do not hold. tshark is
    run by us, since pyshark's own way to run it hides errors and leaves processes behind
    (github.com/KimiNewt/pyshark/issues/168 and 395); pyshark only takes its answer apart.
    Of a damaged trace, those before its fault. Raises HarnessFault(ANALYSIS_FAILED) if tshark fails before it shows one
    of the frames, MachineError if there is no tshark.
    """
    from pyshark.tshark.output_parser.tshark_xml import packet_from_xml_packet  # a tenth of a second, with numpy

    from quicsat.traces.columns import QUIC_PORT

    chosen = ", ".join(map(str, frames))
    if not chosen:
        return {}
    quic = ["-d", f"udp.port=={QUIC_PORT},quic"]  # on the server's port, whatever the first packet looks like
    form = [*quic, "-T", "pdml", "-c", str(max(frames))]  # what lies behind them may be damaged
    answer, fault = _answer(path, keys, timeout, [*form, "-Y", f"frame.number in {{{chosen}}}"])
    pieces = re.findall(rb"<packet>.*?</packet>", answer, re.DOTALL)
    if fault is not None and not (pieces and DAMAGE.search(fault.reason)):
        raise fault
    try:
        packets = [packet_from_xml_packet(piece) for piece in pieces]
        found = {int(packet.number): _quic_fields(packet) for packet in packets}
        return {number: fields for number, fields in found.items() if fields}
    except (ValueError, SyntaxError, LookupError, OSError) as error:
        raise _fault(path, f"tshark's output makes no sense: {error}.") from error


def _quic_fields(packet: Any) -> dict[str, tuple[str, ...]]:
    """All values of the QUIC layers of pyshark's packet."""
    values: defaultdict[str, list[str]] = defaultdict(list)
    for layer in packet.layers:
        if layer.layer_name == "quic":
            for name, container in layer._all_fields.items():
                values[name].extend(str(one.show) for one in container.all_fields)
    return {name: tuple(found) for name, found in values.items()}


def editcap(path: Path, target: Path, timeout: float = TIMEOUT) -> str:
    """Convert a capture of any format that Wireshark reads, compressed or not, into pcapng.

    Of a damaged file, the packets before its fault. The answer says what is damaged in a sentence, and is empty for a
    whole file. Raises HarnessFault(ANALYSIS_FAILED) if there are no packets, MachineError if there is no editcap, which
    comes with tshark.
    """
    program = shutil.which("editcap")
    if program is None:
        raise MachineError("editcap is not installed, which converts captures: apt-get install tshark")

    fault = f"{path.name} could not be converted as a whole."
    command = [program, "-F", "pcapng", STANDARD_INPUT, str(target.absolute())]
    with _workplace(()) as (_, environment), suppress(OSError), open_file(path) as capture:
        status, _output, errors = _run(command, capture, environment, timeout, CONVERTED_LIMIT)
        said = COMPLAINT.search(errors) if status is not None else None
        fault = f"{path.name} {printable(said[1], 200).rstrip('.')}." if said else "" if status == 0 else fault
    if not target.is_file():
        raise _fault(path, "editcap does not know its format.")
    return fault


def _fault(path: Path, reason: str) -> HarnessFault:
    return HarnessFault(ErrorCode.ANALYSIS_FAILED, f"{path.name} could not be read: {reason}")


@contextmanager
def _workplace(keys: Iterable[str]) -> Iterator[tuple[Path, dict[str, str]]]:
    """A key log and an environment in which no personal setting changes what tshark does."""
    with scratch_directory() as folder:
        name, key_log = str(folder), folder / "keys.log"
        key_log.write_text("".join(f"{line}\n" for line in keys), encoding="ascii")
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": name, "LC_ALL": "C", "TZ": "UTC"}
        yield key_log, environment | {"WIRESHARK_CONFIG_DIR": name, "XDG_CONFIG_HOME": name}


def _run(
    command: Sequence[str], capture: IO[bytes], environment: dict[str, str], timeout: float, most: int
) -> tuple[int | None, bytes, str]:
    """Status, output and errors of a program that reads a capture; no status if it had not finished in time.

    It may take so many seconds, and write ``most`` bytes. Its children end with it.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=capture, stdout=output, stderr=errors, env=environment, start_new_session=True
        )
        status = None
        try:
            with suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
            with suppress(subprocess.TimeoutExpired):
                status = process.wait(timeout)
        finally:
            if process.returncode is None:  # the group cannot have been given to others before it was waited for
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        errors.seek(0)
        return status, output.read(most), errors.read(ERRORS_LIMIT).decode("utf-8", "replace")


def _answer(path: Path, keys: Iterable[str], timeout: float, form: Sequence[str]) -> tuple[bytes, HarnessFault | None]:
    """What tshark writes, and any sign that it is not all."""
    try:
        capture = open_file(path)
    except OSError as error:
        return b"", _fault(path, error.strerror or str(error))
    with capture, _workplace(keys) as (key_log, environment):
        source = ["-n", "-r", STANDARD_INPUT, "-o", f"tls.keylog_file:{key_log}"]
        command = [tshark_path(), *source, *HTTP3_OFF, *form]
        status, answer, errors = _run(command, capture, environment, timeout, ANSWER_LIMIT)
    if status is None:
        return answer, _fault(path, f"tshark had not finished after {timeout:g} s.")
    if not status:
        return answer, None
    lines = errors.strip().splitlines()
    own = [line for line in lines if line.startswith("tshark:")] or lines[-1:] or ["it said nothing."]
    last = printable(own[0], 200).rstrip(".") + "."
    ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return answer, _fault(path, f"tshark {ended}: {last}")
