"""Functional tests as a table: a row per pair, a column per test."""

from collections.abc import Iterable, Sequence

from quicsat.model.outcomes import ErrorCode, Outcome, Rules
from quicsat.model.product_files import as_installed
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.text import printable
from quicsat.report.drawing import Text, draw, fill
from quicsat.results.attempts import by_cell, tally, together
from quicsat.results.summary import Cell, summarise

MARKS = {
    Outcome.SKIPPED: Text("»"),
    Outcome.ERROR: Text("!", "magenta"),
    Outcome.UNSUPPORTED: Text("–"),
    Outcome.FAILED: Text("×", "red"),
    Outcome.TIMEOUT: Text("T", "red"),
    Outcome.SUCCEEDED: Text("✓", "green"),
}
NOT_JUDGED = Text("?")
"""Of a run that the endpoints may have passed, but whose packets no key opens."""
LEGEND = (
    "✓ passed, × failed, T timed out, – unsupported by an endpoint, ? not judged without keys,",
    "! harness error, » skipped, · not run.",
    "2/3 means that 2 of 3 repetitions passed.",
    "The column 'passed' counts only conclusive runs, without those that one of the two endpoints does not support.",
)
REPEATED = (
    "+2 means that there were 2 more attempts than repetitions, because attempts were excluded and repeated, or were "
    "repeated with --retry. "
    "Of {attempts} attempts in total, quicsat excluded {excluded} and repeated {retried} with --retry. "
    "`./run.py tables DIR --table attempts` shows the reasons."
)
UPSTREAM = "The runs were judged by the rules of the QUIC Interop Runner (--strict-upstream)."


def matrix(result_set: ResultSet, *, colour: bool = False, width: int | None = None, markdown: bool = False) -> str:
    """All functional tests of all pairs; empty if there are none."""
    manifest = result_set.manifest
    cases = {case.name: case for case in manifest.test_cases if case.functional}
    if not cases:
        return ""
    found: dict[tuple[str, str, str], list[RunResult]] = {}
    for result in result_set.results:
        if result.test_case in cases:
            found.setdefault((result.client, result.server, result.test_case), []).append(result)
    known = {(cell.client, cell.server, cell.test_case): cell for cell in summarise(result_set)}
    pairs = [(client, server) for client in manifest.clients for server in manifest.servers]
    rows: list[list[str | Text]] = [
        [
            *[Text(name, "cyan") for name in pair],
            *(_mark(found.get((*pair, case), []), known.get((*pair, case))) for case in cases),
            _passed(result for key, results in found.items() if key[:2] == pair for result in results),
        ]
        for pair in pairs
    ]
    columns = [[result for key, results in found.items() if key[2] == case for result in results] for case in cases]
    total = ["all", "all", *map(_passed, columns), _passed(result for column in columns for result in column)]
    header = ["client", "server", *(case.abbreviation for case in cases.values()), "passed"]
    notes = [*LEGEND, *([UPSTREAM] if any(case.rules is Rules.UPSTREAM for case in cases.values()) else [])]
    if any(cell.repeated for cell in known.values() if cell.test_case in cases):
        made = together([tally(attempts) for key, attempts in by_cell(result_set).items() if key[2] in cases])
        notes.append(
            as_installed(REPEATED).format(attempts=made.attempts, excluded=made.excluded, retried=made.retried)
        )
    table = draw(header, [*rows, total], width=width, keys=2, colour=colour, markdown=markdown, below=1)
    heading = f"{'### ' * markdown}functional tests"
    lines = [note if markdown else fill(note, width) for note in (*notes, _meanings(result_set))]
    return "\n".join([heading, "", table, "", ("\n\n" if markdown else "\n").join(lines)])


def _mark(results: Sequence[RunResult], cell: Cell | None) -> Text:
    outcomes = [result.verdict.outcome for result in results]
    if not outcomes or cell is None:
        return Text("·")
    more = f"+{cell.repeated}" if cell.repeated else ""
    if len({*outcomes}) == 1:
        sealed = all(result.verdict.code is ErrorCode.KEY_LOG_MISSING for result in results)
        mark = NOT_JUDGED if sealed else MARKS[outcomes[0]]
        return Text(f"{mark.text}{more}", mark.colour)
    return Text(f"{outcomes.count(Outcome.SUCCEEDED)}/{len(outcomes)}{more}", "yellow")


def _passed(results: Iterable[RunResult]) -> str:
    """``15/17``; empty if no run was conclusive."""
    outcomes = [result.verdict.outcome for result in results]
    telling = [each for each in outcomes if each not in (Outcome.UNSUPPORTED, Outcome.ERROR, Outcome.SKIPPED)]
    return f"{telling.count(Outcome.SUCCEEDED)}/{len(telling)}" if telling else ""


def _meanings(result_set: ResultSet) -> str:
    """``H handshake, DC transfer, …``."""
    cases = (case for case in result_set.manifest.test_cases if case.functional)
    return ", ".join(printable(f"{case.abbreviation} {case.name}") for case in cases) + "."
