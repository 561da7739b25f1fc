"""``./run.py resume`` continues what was interrupted."""

import json
import os
import shlex
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quicsat.execution import run_campaign
from quicsat.execution.campaign_config import CampaignOutcome, Conditions
from quicsat.model.implementation import Role
from quicsat.model.text import command_line
from quicsat.plan.limits import CampaignLimits
from quicsat.results import store
from quicsat.results.document import StoredResults
from tests.cli.conftest import Checkout
from tests.fakes import Life, endpoint, hang, only_as


def test_resume_goes_on_where_it_was_stopped(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(life: Life) -> int:
        checkout.engine.programs["bad"] = endpoint
        os.kill(os.getpid(), signal.SIGTERM)
        return hang(life)

    checkout.engine.programs["bad"] = only_as(Role.CLIENT, interrupt)
    (tmp_path / "e.yml").write_text("regression: 15 %\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    names = {"-j": "a b.json", "--expect": "e.yml", "--junit": "j.xml", "--comment": "c.md"}
    files = [word for option, name in names.items() for word in (option, str(tmp_path / name))] + ["--github"]
    _, _, err = checkout("-s", "good", "-c", "good", "bad", "-t", "tiny", "--breaker", "3", *files)
    [told] = [line for line in err.splitlines() if "To continue: " in line]
    assert told == f"To continue: {command_line('resume', checkout.results.resolve(), *files)}"
    continued: list[Conditions] = []
    as_it_is = run_campaign.resume_campaign

    def resume(*words: Any) -> CampaignOutcome:
        continued.append(words[2])
        return as_it_is(*words)

    monkeypatch.setattr(run_campaign, "resume_campaign", resume)
    status, out, err = checkout(*shlex.split(told)[3:])
    assert status == 0
    assert json.loads((tmp_path / "a b.json").read_text())["end_time"] is not None
    assert [(each.testbeds, each.limits) for each in continued] == [(1, CampaignLimits(breaker=3))]
    assert out.count("5.00") >= 2
    assert "[1/1] good_bad/tiny/1: 5.00 Mbit/s" in err


def test_a_campaign_with_costs_per_system_call_is_not_continued(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.out("-s", "good", "-c", "good", "-t", "tiny", "--clock", "virtual")
    read = store.load_to_continue

    def old(directory: Path) -> StoredResults:
        stored = read(directory)
        manifest = replace(stored.result_set.manifest, cpu_cost=3e-6, own_cpu_costs=True, cpu_cost_factor=None)
        return replace(stored, result_set=replace(stored.result_set, manifest=manifest))

    assert checkout("resume", str(checkout.results))[0] == 0
    monkeypatch.setattr(store, "load_to_continue", old)
    assert "has CPU costs per system call" in checkout.refusal("resume", str(checkout.results))
