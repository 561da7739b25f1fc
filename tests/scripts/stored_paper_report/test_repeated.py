"""The stored report docs/paper: repeated runs."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime
from typing import Any

import pytest

from tests.scripts.stored_paper_report.stored import Run, campaigns, listed, metric, rows, runs_of, section_of, the_page

SAMPLES = [
    (part, again)
    for name in ("repeat", "another-machine")
    for part, also in (("matrix", ""), ("spread", "-spread"))
    for again in campaigns(f"{name}{also}")
]
"""Campaigns that repeat a sample of another one, with the part that it belongs to."""


def repeated_runs(part: str, again: dict[str, Any]) -> list[tuple[Run, Run]]:
    """Each run of a sample after the first run. They have the same seed if it is the same in their evidence."""
    first = {(run["server"], run["client"], run["test_case"], run["evidence"]["seed"]): run for run in runs_of(part)}
    return [
        (first[run["server"], run["client"], run["test_case"], run["evidence"]["seed"]], run)
        for run in again["results"]
    ]


def change(pair: tuple[Run, Run]) -> float | None:
    """Relative difference of the goodputs of a run and its repetition, if both succeeded."""
    first, second = (metric(run, "goodput") for run in pair)
    return abs(second / first - 1) if first and second else None


def is_reproduced(pair: tuple[Run, Run]) -> bool:
    first, second = (run["verdict"]["outcome"] for run in pair)
    return first == second and (change(pair) or 0) <= 0.005


def heading_of(part: str, again: dict[str, Any]) -> str:
    [first, *_] = repeated_runs(part, again)
    elsewhere = "" if machine(first[0]) == machine(first[1]) else " on a different machine"
    return f"Runs of the {part} measured again with seed {again['manifest']['seed']}{elsewhere}"


@pytest.mark.parametrize(("part", "again"), SAMPLES, ids=[str(number) for number in range(len(SAMPLES))])
def test_numbers_of_repeated_runs(part: str, again: dict[str, Any]) -> None:
    seed = again["manifest"]["seed"]
    heading = heading_of(part, again)
    [first] = [each for each in campaigns(part) if each["manifest"]["seed"] == seed]
    all_pairs = repeated_runs(part, again)
    for test_case, runs, good, alike, both, exactly, largest in rows(heading):
        pairs = [pair for pair in all_pairs if pair[1]["test_case"] == test_case]
        changes = [value for pair in pairs if (value := change(pair)) is not None]
        assert int(runs) == len(pairs)
        assert int(alike) == sum(pair[0]["verdict"]["outcome"] == pair[1]["verdict"]["outcome"] for pair in pairs)
        assert int(both) == len(changes)
        assert int(exactly) == changes.count(0)
        assert int(good) == sum(map(is_reproduced, pairs))
        assert float(largest or 0) == pytest.approx(100 * max(changes, default=0), abs=0.00051)
    assert sum(int(row[1]) for row in rows(heading)) == len(all_pairs)
    sample = f"sample of {len(all_pairs)} of the {len(first['results'])} runs of the {part} with seed {seed}, "
    assert f" UTC, we repeated a random {sample}" in the_page()
    text = section_of(heading).partition("\nStarting at ")[0]
    assert text.count("was not reproduced: ") == sum(not is_reproduced(pair) for pair in all_pairs)


def test_images_of_repeated_runs() -> None:
    """Two of them are not of implementations."""
    for part, again in SAMPLES:
        [first] = [each for each in campaigns(part) if each["manifest"]["seed"] == again["manifest"]["seed"]]
        both = [each["manifest"]["images"] for each in (first, again)]
        shared = both[0].keys() & both[1].keys()
        assert {"simulator", "virtual-time"} <= shared
        if all(both[0][name]["id"] == both[1][name]["id"] for name in shared):
            parts = f"of {len(shared) - 2} implementations, the simulator and the virtual machine of virtual time"
            assert f"All {len(shared)} images ({parts}) are the same." in the_page()
        else:
            changed = [name for name in shared if both[0][name]["reference"] != both[1][name]["reference"]]
            assert changed == ["virtual-time"]
    told = "from the same sources, except for the virtual machine of virtual time, whose sources had changed."
    assert the_page().count(told) == sum("different machine (" in line for line in the_page().splitlines()) == 3


def machine(run: Run) -> str:
    """Of a run: its processor and kernel."""
    host = run["evidence"]["host"]
    return f"{host['processor']} {host['kernel']}"


def hours_between(pair: tuple[Run, Run]) -> float:
    began, again = (datetime.fromisoformat(run["evidence"]["started"]) for run in pair)
    return (again - began).total_seconds() / 3600


def test_runs_that_were_repeated_on_the_same_or_another_machine() -> None:
    groups = defaultdict(list)
    for part, again in SAMPLES:
        for pair in repeated_runs(part, again):
            groups["the same" if machine(pair[0]) == machine(pair[1]) else "a different"].append(pair)
    for which, mine in groups.items():
        changes = [pair for pair in mine if is_reproduced(pair)]
        good = [value for pair in mine if (value := change(pair)) is not None]
        hours = [hours_between(pair) for pair in mine]
        dates = [sorted({pair[place]["evidence"]["started"][:10] for pair in mine}) for place in (0, 1)]
        part = f"All {len(mine)}" if len(changes) == len(mine) else f"{len(changes)} of the {len(mine)}"
        exactly = f"of the {len(good)} that succeeded, {good.count(0) or 'none'}"
        if good.count(0) == len(good):
            exactly = f"the {len(good)} that succeeded"
        assert (
            f"We repeated {len(mine)} runs of {listed(dates[0])} on {which} machine on {listed(dates[1])}, "
            f"{min(hours):.1f} to {max(hours):.1f} hours later. {part} runs were reproduced; {exactly} had exactly the "
            "same goodput."
        ) in the_page()
    assert len(re.findall(r"We repeated \d+ runs of 20", the_page())) == len(groups) == 2
    elsewhere = [(value, pair[1]) for pair in groups["a different"] if (value := change(pair)) is not None]
    names = {name for _, run in elsewhere for name in (run["server"], run["client"])}
    odd = names - {name for value, run in elsewhere if not value for name in (run["server"], run["client"])}
    assert odd == {"aioquic", "kwik"}
    rest = [value for value, run in elsewhere if not {run["server"], run["client"]} & odd]
    assert (
        "No successful run with aioquic or kwik had exactly the same goodput on the different machine; of the "
        f"{len(rest)} other successful runs, {rest.count(0)} had."
    ) in the_page()
    assert "different day" not in the_page()
