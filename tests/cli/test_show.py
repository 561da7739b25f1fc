"""``./run.py show`` shows the matrices of a stored campaign."""

from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.results import store
from tests.cli.conftest import GOOD, Checkout


def test_show_has_the_campaigns_exit_status(checkout: Checkout, tmp_path: Path) -> None:
    checkout("-s", "good", "-c", "bad", "-t", "tiny")
    assert checkout("show")[0] == 1
    assert checkout("show", tmp_path)[0] == 2


@pytest.mark.parametrize("finished", ["2026-11-21T08:00:00Z", None])
def test_a_campaign_that_lacks_runs_is_no_success(checkout: Checkout, finished: str | None) -> None:
    checkout(*GOOD, "--repetitions", "2")
    whole = store.load(checkout.results).result_set
    (checkout.results / store.JOURNAL).unlink()
    for count, status, told in ((2, 0, False), (1, 1, True)):
        store.write_result_json(checkout.results, replace(whole, results=whole.results[:count], finished=finished))
        ended, _, err = checkout("show", checkout.results)
        assert (ended, "1 of 2 runs" in err) == (status, told)


def test_markdown(checkout: Checkout) -> None:
    assert any(line.startswith("|") for line in checkout(*GOOD, "-m")[1].splitlines())
    assert any(line.startswith("|") for line in checkout("show", "-m")[1].splitlines())


def test_negotiated_facts(checkout: Checkout) -> None:
    checkout(*GOOD)
    assert "What endpoints negotiated" not in checkout("show")[1]
    assert "What endpoints negotiated" in checkout.out("show", "--negotiated")
