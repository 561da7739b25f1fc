"""From the options of a command to a plan: what was named, in the order asked for, whole or in part.

It is done before the lock is asked for, so it loads little.
"""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from interop import inventory, order, plan
from interop.errors import InputError
from interop.model import Rules, Run, Schedule


def select(given: argparse.Namespace, root: Path) -> tuple[plan.Selection, tuple[Run, ...], int]:
    """What the options name, its runs, and the seed of the campaign; raises :class:`InputError`."""
    selection = plan.choose(
        inventory.load_implementations(root / "implementations.json"),
        inventory.load_known_test_cases(root / "testcases"),
        inventory.load_test_cases,
        servers=given.server,
        clients=given.client,
        tests=given.test,
        images=given.replace,
    )
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    runs = plan.make_plan(
        selection.servers,
        selection.clients,
        selection.test_cases,
        repetitions=given.repetitions,
        timeout=given.timeout,
        rules=Rules.UPSTREAM if given.strict_upstream else Rules.STANDARD,
        seed=seed,
    )
    if given.shard and given.seed is None:
        raise InputError("--shard needs --seed N, the same for all parts: they are parts of one plan.")
    selection = replace(selection, test_cases=tuple(dict.fromkeys(run.test_case for run in runs)))
    runs = order.part_of(runs, given.shard or "")
    if not runs:
        raise InputError(f"Nothing to run: the plan is too small for a part {given.shard}.")
    return selection, order.shuffled(runs, seed) if given.shuffle else runs, seed


def planned(given: argparse.Namespace, root: Path) -> tuple[Sequence[Run], str, Schedule]:
    """The runs that `plan` is to show, what is to be said of them, and how the campaign to be continued was begun."""
    if given.resume is None:
        selection, runs, seed = select(given, root)
        told = [plan.left_out(selection.servers, selection.clients)]
        if given.shuffle and given.seed is None:
            told.append(f"This is the order of --seed {seed}; without --seed each campaign draws its own.")
        return runs, "\n".join(filter(None, told)), Schedule()
    from interop import store
    from interop.execution import resume

    record = store.load(given.resume)
    rest = resume.rest_of(record, ())
    manifest = record.result_set.manifest
    done = manifest.planned_runs - len(rest.runs)
    return rest.runs, f"{done} of {manifest.planned_runs} runs of {given.resume} are made.", manifest.schedule
