"""A run that was skipped is visible as such wherever results are shown, and counts as a failure nowhere."""

from pathlib import Path

from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet
from quicsat.report import functional_table, terminal_tables
from quicsat.results import qir_export
from quicsat.results.summary import summarise
from quicsat.site import failures
from quicsat.site.badges import badge
from quicsat.site.campaigns import SiteCampaign
from quicsat.site.matrix_cell_text import shown
from quicsat.statistics.samples import PairOutcome, samples
from tests.results_builder import result_set, run_result

REASON = "The last 3 runs of quinn as client in sat timed out or ended in an error."


def skipped() -> ResultSet:
    """One success, and two runs that were left out."""
    return result_set(
        [
            run_result(8e6, repetition=1),
            run_result(None, repetition=2, outcome=Outcome.SKIPPED, reason=REASON),
            run_result(None, repetition=3, outcome=Outcome.SKIPPED, reason=REASON),
        ],
        repetitions=3,
    )


def test_in_the_summary() -> None:
    [cell] = summarise(skipped())
    assert (cell.n, cell.succeeded, cell.skipped, cell.failed, cell.timeout, cell.not_run) == (1, 1, 2, 0, 0, 0)
    found = shown(cell)
    assert (found.state.key, found.note) == ("partial", "1/3 2»")


def test_on_the_terminal() -> None:
    results = skipped()
    case = results.manifest.test_cases[0].name
    assert "(1/3, 2 »)" in terminal_tables.matrix(results, case)
    told = terminal_tables.failures(results)
    assert "skipped" in told
    assert REASON in told
    assert "»" in "".join(functional_table.LEGEND)


def test_in_statistics() -> None:
    sample = next(each for each in samples(skipped(), skipped().manifest.test_cases[0].name) if each.outcomes)
    assert (sample.pair_outcome, sample.outcomes) == (PairOutcome.SUCCEEDED, (Outcome.SUCCEEDED,))


def test_in_exports() -> None:
    document = qir_export.to_qir_se(skipped())
    [[cell]] = [cells for cells in document["measurements"] if cells]
    assert (cell["result"], cell["error_code"]) in (("succeeded", None), (None, None))
    assert len([value for value in cell["values"] if value is not None]) == 1


def test_on_the_website(tmp_path: Path) -> None:
    results = skipped()
    campaign = SiteCampaign(tmp_path, "one", results)
    assert failures.causes(campaign).rows == ()
    assert failures.cells(campaign) == []
    assert badge(campaign, results.results[0].server)["message"] == "1 of 1 run, 40 % of the link"
