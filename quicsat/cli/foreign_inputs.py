"""Runs of QIR and QIR-SE that a command line names: log directories, captures with their key log, and qlogs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console
from quicsat.cli.program import CommandOptions, Program, option
from quicsat.config import quantities
from quicsat.config.inventory import Inventory
from quicsat.model.errors import InputError
from quicsat.model.implementation import Role
from quicsat.model.stored_files import entries, files, is_directory, resolved
from quicsat.model.text import command_line, counted, escaped, first_few
from quicsat.model.whole_file import scratch_directory, take_file

if TYPE_CHECKING:
    from quicsat.model.run import RunKey
    from quicsat.model.test_case import TestCase
    from quicsat.results.document import StoredResults
    from quicsat.results.qir_logs import ForeignRun, Tree
    from quicsat.traces.qlog_packets import QlogPackets

LOGS = "logs of QIR and QIR-SE"
TRIPLE = "LEFT.pcap:RIGHT.pcap:KEYS"
"""Captures at the client and at the server and a key log, as QIR-SE names them; the second or third may be missing."""
QLOG_TRIPLE = "CLIENT.sqlog:SERVER.sqlog:LINK.sqlog"
"""Qlogs of one run in any order (the qlog of one end is enough), or a directory of exported qlogs."""
STAGED = Path("unknown_unknown", "captures")
"""Directory of runs that are made of such captures: their implementations are not known."""
CAPTURE = re.compile(r".+\.p?cap(ng)?(\.(gz|zst|lz4))?", re.IGNORECASE)
"""Names of captures, which may be given alone."""
LINK = "link"
PARTS = (*Role, LINK)
"""Names of exported qlogs, without their suffixes."""
TITLE = re.compile(
    rf"(\w[\w.+@-]{{0,99}}_\w[\w.+@-]{{0,99}})/(\w[\w.+@=-]{{0,99}})/([1-9]\d{{0,5}}): the (?:{'|'.join(PARTS)})",
    re.ASCII,
)
"""Titles of qlogs that are exported from a campaign: the pair, the test case and the repetition."""
NAMED = 5
"""Qlogs that a message names."""
MOST_NOTES = 20
"""Notes on runs that are shown."""


RUN = option(
    type=Path, metavar="RUN",
    help=f"Directory of a run, also of QIR or QIR-SE, captures with a key log as {TRIPLE}, or qlogs as {QLOG_TRIPLE}; "
    "example: results/latest/quic-go_aioquic/sat/1.",
)  # fmt: skip


class FileSizeOptions(CommandOptions, group=LOGS):
    """The size of the files, which other runners may not state."""

    file_size: int | None = option(
        "--file-size", parse=quantities.within(quantities.size, "1 B", "1000 GB"), metavar="SIZE",
        help='Total size of the files of a run (default: from output.txt or the streams; example: "10 MiB").',
    )  # fmt: skip


class CampaignsOptions(FileSizeOptions, group="selection"):
    """Those of commands that read campaigns, see :mod:`quicsat.cli.stored_campaigns`."""

    directories: list[Path] = option(
        type=Path, nargs="+", metavar="DIR",
        help="Campaign directories; result files or log directories of QIR or QIR-SE; captures with a key log as "
        f"{TRIPLE}; or qlogs as {QLOG_TRIPLE}; example: results/latest.",
    )  # fmt: skip
    link_rate: float | None = option(
        "--link-rate", group=LOGS, parse=quantities.within(quantities.rate, "1 bit/s", "1000 Gbit/s"), metavar="RATE",
        help="Rate of the link to the client (default: from output.txt; example: 20Mbit/s).",
    )  # fmt: skip
    test: list[str] = option(
        "-t", "--test", nargs="+", metavar="NAME", default=[],
        help="Test cases or families by name or abbreviation (default: all; example: SAT SATL).",
    )  # fmt: skip
    fact: list[str] = option(
        "--fact", nargs="+", metavar="CONDITION", default=[],
        help="Select only runs with these negotiated parameters, or shares of the time in percent: FACT=VALUE, "
        "FACT>=NUMBER or FACT<=NUMBER (default: all runs; example: cipher=AES-128-GCM share.recovery>=30).",
    )  # fmt: skip
    pair: Sequence[str] = ()
    """Only some of them declare it."""


# ---- what a path names ----------------------------------------------------------------------


def qlogs_at(place: Path) -> list[Path]:
    """The qlogs that a place names: one, several with colons between them, or a directory of exported ones."""
    if place.is_dir():
        found = _qlogs_in(place)
        for suffix in (".sqlog", ".qlog"):
            known = [file for file in found if file.name.startswith(tuple(f"{end}{suffix}" for end in PARTS))]
            if known:
                return known
        return []
    parts = [Path(part) for part in str(place).split(":")] if not place.exists() else [place]
    return parts if all(map(_is_qlog, parts)) else []


def _qlogs_in(directory: Path) -> list[Path]:
    from quicsat.traces.qlog import NAME

    return sorted(file for file in files(resolved(directory)) if NAME.fullmatch(file.name))


def _is_qlog(path: Path) -> bool:
    """By its name, or by its content if it is not named so."""
    from quicsat.traces.qlog import NAME, is_qlog

    if NAME.fullmatch(path.name):
        return True
    if not path.is_file():
        return False
    with suppress(OSError):
        return is_qlog(resolved(path))
    return False


def _check_names(program: Program, place: Path) -> None:
    """Say which qlogs of a directory are not read; raises InputError if it has nothing else that could be."""
    from quicsat.results.store import DOCUMENT, find_campaign, has

    if not place.is_dir():
        return
    known = qlogs_at(place)
    found = _qlogs_in(place)
    ours = tuple(f"{end}{suffix}" for end in PARTS for suffix in (".sqlog", ".qlog"))
    others = [escaped(file.name) for file in found if not file.name.startswith(ours)]
    if known and others:
        console.message(f"{place}: {counted(len(others), 'qlog')} of other names not read: {first_few(others, NAMED)}.")
    if known or find_campaign(place)[0] is not None:
        return
    found = found or [file for folder in entries(resolved(place)) if is_directory(folder) for file in _qlogs_in(folder)]
    if found and not has(place, DOCUMENT) and runs_below(program, place) is None:
        named = f"No qlog in it has a name of export ({', '.join(f'{end}.sqlog' for end in PARTS)})."
        raise InputError(f"{place}: {named} Name those of a run as {QLOG_TRIPLE}, such as {escaped(str(found[0]))}.")


def one_qlog(place: Path, role: Role) -> QlogPackets | None:
    """The packets of the qlog that a place names, of several that of ``role``; None if it names none.

    What is wrong with the others is printed. Raises InputError if it cannot be read, or if none is of this role.
    """
    from quicsat.analysis.qlog_runs import read_qlogs
    from quicsat.traces.qlog import MOST_RECORDS

    named = sorted(qlogs_at(place), key=lambda path: not path.name.startswith(role))
    if not named:
        return None
    found = read_qlogs(named, role, MOST_RECORDS)
    ends = {end: packets for end, (packets, _) in found.ends.items()}
    own = ends.get(role) or (next(iter(ends.values()), None) if len(named) == 1 else None)
    problems = [f"{place}: {problem}" for problem in found.problems]
    if own is None:
        raise InputError(*problems or [f"{place}: has no qlog of the {role}."])
    for problem in problems:
        console.message(problem)
    return own


def staged(program: Program, places: Sequence[Path]) -> list[tuple[Path, str]]:
    """The places with their names, with one directory instead of all ``TRIPLE`` and ``QLOG_TRIPLE``, each a run in it.

    Raises InputError if a file of them is missing.
    """
    for place in places:
        _check_names(program, place)
    triples = [place for place in places if _is_triple(place)]
    others = [(place, str(place)) for place in places if place not in triples]
    if not triples:
        return others
    root = scratch(program) / "captures"
    for number, triple in enumerate(triples, start=1):
        titled, alone = _titled(triple), STAGED / str(number)
        _stage(triple, root / (alone if titled is None or (root / titled).exists() else titled))
    return [(root, ", ".join(map(str, triples))), *others]


def _titled(place: Path) -> Path | None:
    """The path of the run that the titles of exported qlogs name; None if there is none."""
    from quicsat.traces.qlog import title

    for path in qlogs_at(place):
        with suppress(OSError):
            if found := TITLE.fullmatch(title(resolved(path))):
                return Path(*found.group(1, 2, 3))
    return None


def _is_triple(place: Path) -> bool:
    if qlogs_at(place):
        return True
    return CAPTURE.fullmatch(place.name) is not None if place.is_file() else ":" in str(place) and not place.exists()


def _stage(triple: Path, target: Path) -> None:
    from quicsat.results.qir_logs import QLOGS
    from quicsat.traces.capture_contents import note_origin
    from quicsat.traces.key_log import key_lines
    from quicsat.traces.records import embedded_secrets
    from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS, SERVER_TRACE

    qlogs = qlogs_at(triple)
    files = qlogs or ([triple] if triple.is_file() else [Path(part) for part in str(triple).split(":")])
    missing = [str(file) for file in files if not file.is_file()]
    if len({*map(resolved, files)}) < len(files):
        raise InputError(f"{triple}: names a file twice.")
    known = f"Name captures as {TRIPLE}, or qlogs as {QLOG_TRIPLE}."
    if missing:
        raise InputError(f"{triple}: {', '.join(missing)} is no file. {known}")
    if len(files) > 3:
        raise InputError(f"{triple}: names {len(files)} files. {known}")
    for number, file in enumerate(qlogs):
        (target / QLOGS / str(number)).mkdir(parents=True)
        take_file(resolved(file), target / QLOGS / str(number) / file.name)
    if qlogs:
        return
    names = [CLIENT_TRACE, SERVER_TRACE, KEY_LOGS[0]]
    if len(files) == 1 and _stage_ends(files[0], target):
        return
    if len(files) == 2 and key_lines(files[1]) and not embedded_secrets(files[1]):
        del names[1]
    for file, name in zip(files, names, strict=False):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        take_file(resolved(file), target / name)
        note_origin(target / name, file.name)


def _stage_ends(file: Path, target: Path) -> bool:
    """Whether a capture has the packets of both ends, as ``export`` writes it; then each gets a file of its own."""
    from quicsat.model.whole_file import new_file
    from quicsat.results.qir_logs import ONE_CLOCK
    from quicsat.traces.capture_contents import note_origin
    from quicsat.traces.pcapng_writer import CapturedEnd, is_export, write_pcapng
    from quicsat.traces.records import SECTION_BYTES, embedded_secrets, first_fault, records_by_interface
    from quicsat.traces.run_traces import CLIENT_TRACE, SERVER_TRACE

    ends = records_by_interface(resolved(file))
    if ends.keys() != {*Role}:
        return False
    secrets = embedded_secrets(resolved(file))
    damage = first_fault(resolved(file), escaped(file.name))
    rest = SECTION_BYTES if damage else b""  # each end is cut as well, so that it is read as such
    for role, name in ((Role.CLIENT, CLIENT_TRACE), (Role.SERVER, SERVER_TRACE)):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        with new_file(target / name) as trace:
            write_pcapng(trace, secrets, [CapturedEnd(role, partial(iter, ends[role]))])
            trace.write(rest)
        note_origin(target / name, file.name, damage)
    if is_export(file):
        (target / ONE_CLOCK).touch()
    return True


def scratch(program: Program) -> Path:
    """A new directory that is removed when the command ends."""
    return program.closing.enter_context(scratch_directory())


def check_outside(place: Path) -> None:
    """Raise InputError if a place is only a part of a campaign, which knows more of it."""
    from quicsat.results.store import find_campaign

    campaign, whole = find_campaign(place)
    if campaign is not None and campaign != whole:
        raise InputError(
            f"{place}: is a part of the campaign {campaign}. Name the campaign. For one of its runs: "
            f"{command_line('explain', place)}. For qlogs: {QLOG_TRIPLE}."
        )


def runs_below(program: Program, place: Path) -> Tree | None:
    """The runs of another runner in a directory; None if it is none, or is or lies in a campaign of quicsat."""
    from quicsat.results.qir_logs import find_runs
    from quicsat.results.store import find_campaign

    if not place.is_dir() or find_campaign(place)[0] is not None:
        return None
    tree = find_runs(place, Inventory(program.root).implementations)
    return tree if tree.runs else None


def one_run(program: Program, given: Path) -> ForeignRun | None:
    """The run of another runner that ``given`` names; None if it names none; InputError if it names several."""
    [(place, _)] = staged(program, [given])
    tree = runs_below(program, place)
    if tree is None:
        return None
    if len(tree.runs) > 1:
        names = [str(given / run.directory.relative_to(place.resolve())) for run in tree.runs[:5]]
        raise InputError(
            f"{given}: holds {counted(len(tree.runs), 'run')}. Name one of them, such as {', '.join(names)}."
        )
    return tree.runs[0]


@contextmanager
def readable_captures(program: Program, given: Path, role: Role) -> Iterator[Path]:
    """A directory with captures of the run ``given`` that tshark and quicsat can read alike.

    InputError with the reason if that of ``role``, of a run of another runner, cannot be read.
    """
    from quicsat.results.store import find_campaign
    from quicsat.traces.capture_contents import TRACES
    from quicsat.traces.foreign_captures import plain_captures
    from quicsat.traces.pcap import check

    run = one_run(program, given)
    if run is None:
        yield find_campaign(given)[1]
        return
    with plain_captures(run.directory) as captures:
        for note in captures.notes:
            console.message(note)
        if role not in captures.absent and not (state := check(captures.directory / TRACES[role])).packets:
            raise InputError(f"{given}: The {role}'s trace cannot be used: {state.reason}")
        yield captures.directory


# ---- campaigns ------------------------------------------------------------------------------


def read_runs(
    options: CampaignsOptions, program: Program, name: str, tree: Tree, listed: Sequence[TestCase] = ()
) -> tuple[StoredResults, Path]:
    """Results of the selected runs, and the directory with their series; notes on them are printed.

    ``listed``: test cases of the runner's own result file.
    """
    from quicsat.analysis.foreign_campaign import Given, read_campaign

    place, pairs = scratch(program), options.pair
    labels = {case.name: (case.name, case.abbreviation.casefold()) for case in listed}
    tests = {test.casefold() for test in options.test}

    def wanted(key: RunKey) -> bool:
        is_selected = not tests or bool(tests.intersection(labels.get(key.test_case, (key.test_case,))))
        return is_selected and (not pairs or f"{key.server}_{key.client}" in pairs)

    known = Inventory(program.root).implementations
    record = read_campaign(name, tree.runs, place, Given(options.file_size, options.link_rate), known, wanted, listed)
    for warning in record.warnings[:MOST_NOTES]:
        console.message(warning)
    if len(record.warnings) > MOST_NOTES:
        console.message(f"{counted(len(record.warnings) - MOST_NOTES, 'more note')}; analyse prints all of them.")
    return record, place
