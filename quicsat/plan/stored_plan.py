"""The plan of a stored campaign, made again from its manifest."""

from __future__ import annotations

from quicsat.model.errors import InputError
from quicsat.model.results import Manifest
from quicsat.model.run import Run
from quicsat.model.text import counted
from quicsat.plan.make_plan import make_plan
from quicsat.plan.order import involving, of_pairs, part_of, shuffled


def plan_of(manifest: Manifest) -> tuple[Run, ...]:
    """The plan with which a campaign began; InputError if this version of the program would make another one."""
    known = {implementation.name: implementation for implementation in manifest.implementations}
    servers, clients = ([known[name] for name in names] for names in (manifest.servers, manifest.clients))
    others = manifest.implementations
    plan = make_plan(servers, clients, manifest.test_cases, seed=manifest.seed, others=others)
    plan = part_of(of_pairs(involving(plan, manifest.must_include), manifest.pairs), manifest.shard)
    if len(plan) != manifest.planned_runs:
        message = (
            f"The campaign was planned with {counted(manifest.planned_runs, 'run')}, and this version of "
            "the program makes "
            f"{len(plan)} of it. Continue it with version {manifest.tool_version}, or begin a new one."
        )
        raise InputError(message)
    return shuffled(plan, manifest.seed) if manifest.options.get("shuffle") else plan
