#!/usr/bin/env python3
"""Histories of several implementations in one document: goodput by release, steps, and what a year changed.

    python -m bench.release_history CAMPAIGN... -o docs/measurements/data/releases-DATE.json [--since DATE]

Prints Markdown tables: goodput of each release, significant steps, and for each implementation the newest release
that is not later than ``--since``, else the oldest one, compared with the newest one of all.
"""
# ruff: noqa: T201 - a script

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from bench.script import ROOT
from quicsat.config.inventory import Inventory
from quicsat.images import archives
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Role
from quicsat.model.names import RELEASE_SIGN
from quicsat.model.results import ResultSet
from quicsat.model.text import command_line
from quicsat.results.store import load
from quicsat.statistics.comparison import ALL, effect_in_words
from quicsat.statistics.releases import (
    STAND_IN,
    implementations_with_releases,
    release_step,
    release_steps,
    releases_in,
)
from quicsat.statistics.samples import GOODPUT, samples

MBIT = 1e6
Cell = tuple[str, str, str]
"""Test case, role of the release and partner."""


def cells(results: ResultSet, name: str) -> Iterator[tuple[Cell, str, list[float], int]]:
    """Cell, release, goodputs of the runs that succeeded (bit/s), and the number of conclusive runs."""
    for case in results.manifest.test_cases:
        for sample in samples(results, case.name, GOODPUT):
            for role, end, partner in (
                (Role.SERVER, sample.server, sample.client), (Role.CLIENT, sample.client, sample.server),
            ):  # fmt: skip
                base, sign, release = end.partition(RELEASE_SIGN)
                if sign and base == name and sample.conclusive:
                    yield (case.abbreviation, role.value, partner), release, list(sample.values), sample.conclusive


def steps(results: ResultSet, name: str) -> Iterator[dict[str, Any]]:
    """Significant changes from one release to the next, tested over the campaign."""
    short = short_names(results)
    for step in release_steps(results, name, results.manifest.test_cases):
        for each in step.changes:
            change = each.change
            yield {
                "before": step.before,
                "after": step.after,
                "role": each.role.value,
                "partner": each.partner,
                "test case": short.get(each.test_case, ALL),
                "metric": change.metric,
                "change": change.change.value,
                "effect": effect_in_words(change) if change.effect else "",
                "p": change.p,
            }


def released(name: str, release: str) -> str:
    """The date that the registry states, else nothing."""
    package = Inventory(ROOT).implementations[name].package
    try:
        day = archives.released(package, release) if package else None
    except MachineError:
        day = None
    return day.isoformat() if day else ""


def document(places: Sequence[Path]) -> dict[str, Any]:
    """Of all campaigns; a later one adds what the earlier ones have not measured, and steps."""
    found: dict[str, Any] = {}
    for place in places:
        results = load(place).result_set
        for name in implementations_with_releases(results):
            releases = releases_in(results, name)
            mine = found.setdefault(name, {"commands": [], "releases": {}, "cells": [], "steps": []})
            mine["commands"].append(command_line(*results.manifest.command[1:]))
            mine["steps"] += steps(results, name)
            for release in releases:
                image = results.manifest.images.get(f"{name}{RELEASE_SIGN}{release}")
                checksum = image.provenance.checksum if image else ""
                if release not in mine["releases"]:
                    mine["releases"][release] = {"date": released(name, release), "checksum": checksum}
            known = {(tuple(each["cell"]), each["release"]) for each in mine["cells"]}
            mine["cells"] += [
                {"cell": cell, "release": release, "goodput": [round(each) for each in goodputs], "conclusive": runs}
                for cell, release, goodputs, runs in cells(results, name)
                if (cell, release) not in known
            ]
    return found


def mean(history: Mapping[str, Any], cell: Sequence[str], release: str) -> float | None:
    """Of the goodputs, Mbit/s; None if no run succeeded."""
    for each in history["cells"]:
        if tuple(each["cell"]) == tuple(cell) and each["release"] == release and each["goodput"]:
            return statistics.fmean(each["goodput"]) / MBIT
    return None


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def by_release(history: Mapping[str, Any]) -> str:
    """A row for each release, a column for each cell, Mbit/s."""
    columns = sorted({tuple(each["cell"]) for each in history["cells"]}, key=lambda cell: (cell[1] != "server", cell))
    rows = [
        [release, facts["date"], *(_shown(mean(history, cell, release)) for cell in columns)]
        for release, facts in history["releases"].items()
    ]
    return table(["release", "date", *(f"{role}, {case}, {partner}" for case, role, partner in columns)], rows)


def year(places: Sequence[Path], histories: Mapping[str, Any], since: date) -> str:
    """A row for each implementation and cell: the newest release of a day beside the newest one of all."""
    rows = []
    for place in places:
        results = load(place).result_set
        for name in implementations_with_releases(results):
            history, measured = histories[name], releases_in(results, name)
            days = {each: history["releases"][each]["date"] for each in measured}
            before = [each for each in measured if days[each] and days[each] <= since.isoformat()] or measured[:1]
            if before[-1] == measured[-1]:
                continue
            both = (before[-1], measured[-1])
            for change in release_step(results, name, both, results.manifest.test_cases).comparison.pairs:
                role, partner = (
                    (Role.SERVER, change.first.client)
                    if change.first.server == STAND_IN
                    else (Role.CLIENT, change.first.server)
                )
                cell = (short_names(results)[change.first.test_case], role.value, partner)
                means = [_shown(mean(history, cell, each)) for each in both]
                verdict = [effect_in_words(change) if change.effect else "", change.change.value]
                rows.append([name, *both, role.value, partner, cell[0], *means, *verdict])
    head = ["implementation", "then", "now", "role", "partner", "test case", "then [Mbit/s]", "now [Mbit/s]"]
    return table([*head, "difference", "verdict"], rows)


def short_names(results: ResultSet) -> dict[str, str]:
    """Abbreviations of the test cases of a campaign."""
    return {case.name: case.abbreviation for case in results.manifest.test_cases}


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def main(words: Sequence[str]) -> int:
    """Write the document and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--since", type=date.fromisoformat)
    options = parser.parse_args(words)
    found = document(options.campaigns)
    options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for name, history in found.items():
        print(f"\n### {name}\n\n{by_release(history)}")
        rows = [
            [f"{each['before']} → {each['after']}", each["role"], each["partner"], each["test case"], each["metric"],
             each["effect"] or each["change"], f"{each['p']:.4f}"]
            for each in history["steps"]
        ]  # fmt: skip
        print(f"\n{table(['step', 'role', 'partner', 'test case', 'metric', 'change', 'p'], rows)}")
    if options.since:
        print(f"\n{year(options.campaigns, found, options.since)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
