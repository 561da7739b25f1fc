"""The plan of a stored campaign, made again from its manifest."""

from quicsat.model.errors import InputError
from quicsat.model.results import Manifest
from quicsat.model.run import Run
from quicsat.model.text import counted
from quicsat.plan.make_plan import make_plan
from quicsat.plan.order import involving, of_pairs, part_of, shuffled

CHOOSING = {
    "confirm": "To continue the check, repeat the command confirm that began it.",
    "gate": "To continue the gate, repeat the command gate that began it.",
    "calibrate": "To fit the runs that it has, use calibrate --from; to measure all, repeat the command calibrate.",
}
"""Commands that choose the runs of a campaign themselves, and what to do if one of these campaigns was interrupted."""


def plan_of(manifest: Manifest) -> tuple[Run, ...]:
    """The plan with which a campaign began; InputError if this version of the program would make another one."""
    known = {implementation.name: implementation for implementation in manifest.implementations}
    servers, clients = ([known[name] for name in names] for names in (manifest.servers, manifest.clients))
    others = manifest.implementations
    plan = make_plan(servers, clients, manifest.test_cases, seed=manifest.seed, others=others)
    plan = part_of(of_pairs(involving(plan, manifest.must_include), manifest.pairs), manifest.shard)
    if len(plan) != manifest.planned_runs:
        raise InputError(_other_plan(manifest, len(plan)))
    return shuffled(plan, manifest.seed) if manifest.options.get("shuffle") else plan


def _other_plan(manifest: Manifest, runs: int) -> str:
    """What to do if the manifest tells a plan with so many runs, and not that of the campaign."""
    for command in manifest.command[1:2]:
        if command in CHOOSING:
            return f"{command} chose the runs of this campaign. {CHOOSING[command]}"
    return (
        f"The campaign was planned with {counted(manifest.planned_runs, 'run')}, and this version of the program makes "
        f"{runs} of it. Continue it with version {manifest.tool_version}, or begin a new one."
    )
