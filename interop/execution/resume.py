"""What is left to do of a campaign that was cut short, and with which images; pure but for the look at images."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from interop.errors import InputError, MachineError
from interop.execution.place import disturbed
from interop.model import ImageFacts, Manifest, Outcome, Run, RunResult
from interop.names import quoted
from interop.order import part_of, shuffled
from interop.plan import make_plan
from interop.schema.document import Record


@dataclass(frozen=True)
class Rest:
    """Runs that are still to be made."""

    runs: tuple[Run, ...]
    """In the order of the plan."""
    tried: Mapping[Run, int]
    """How many attempts at each run of the plan there have been."""
    counting: tuple[RunResult, ...] = ()
    """Results that budget and breaker count: all that stay, unless it is asked for what they have skipped."""
    alone: frozenset[Run] = frozenset()
    """Those that neighbours may have disturbed the last time."""


def plan_of(manifest: Manifest) -> tuple[Run, ...]:
    """The plan with which a campaign began; InputError if this version of the program would make another one."""
    known = {implementation.name: implementation for implementation in manifest.implementations}
    servers, clients = ([known[name] for name in names] for names in (manifest.servers, manifest.clients))
    plan = part_of(make_plan(servers, clients, manifest.test_cases, seed=manifest.seed), manifest.shard)
    if len(plan) != manifest.planned_runs:
        message = (
            f"The campaign was planned with {manifest.planned_runs} runs, and this version of the program makes "
            f"{len(plan)} of it. Continue it with version {manifest.tool_version}, or begin a new one."
        )
        raise InputError(message)
    return shuffled(plan, manifest.seed) if manifest.options.get("shuffle") else plan


def rest_of(record: Record, retry: Collection[Outcome]) -> Rest:
    """What has no result yet, what ended by a fault of ours, and what ended with an outcome in ``retry``.

    What had no image when the campaign began has none now: an image is not changed within a campaign.
    """
    again, with_images = {Outcome.ERROR, *retry}, record.result_set.manifest.images.keys()
    done, last = dict[tuple[str, str, str, int], RunResult](), dict[tuple[str, str, str, int], RunResult]()
    for result in sorted(record.history, key=lambda result: result.attempt):
        last[result.server, result.client, result.test_case, result.repetition] = result
    for result in record.result_set.results:
        if result.verdict.outcome not in again or not {result.server, result.client} <= with_images:
            done[result.server, result.client, result.test_case, result.repetition] = result
    keys = {
        run: (run.server.name, run.client.name, run.test_case.name, run.repetition)
        for run in plan_of(record.result_set.manifest)
    }
    rest = tuple(run for run, key in keys.items() if key not in done)
    counting = () if Outcome.SKIPPED in retry else tuple(done.values())
    tried = {run: last[key].attempt if key in last else 0 for run, key in keys.items()}
    alone = frozenset(run for run in rest if (key := keys[run]) in last and disturbed(last[key]))
    return Rest(rest, tried, counting, alone)


def changed_parameters(manifest: Manifest, now: Mapping[str, str]) -> str:
    """How the parameters of endpoints ``now`` differ from those with which the campaign began, and which are used.

    Empty if they are the same. A version that did not store them used those of the environment.
    """
    if manifest.parameters is None:
        given = ", ".join(f"{name}={quoted(text)}" for name, text in now.items() if text)
        return f"The campaign does not tell its parameters of endpoints; today's are used: {given}." if given else ""
    names = dict.fromkeys((*manifest.parameters, *now))
    differ = [name for name in names if manifest.parameters.get(name, "") != now.get(name, "")]
    told = "; ".join(
        f"{name} was {quoted(manifest.parameters.get(name, ''))} and is now {quoted(now.get(name, ''))}"
        for name in differ
    )
    return f"The environment differs from that of the campaign, which is used: {told}." if told else ""


def pinned_images(
    manifest: Manifest, runs: Sequence[Run], find: Callable[[str], ImageFacts | None]
) -> dict[str, ImageFacts]:
    """The very images with which the campaign began, by name; MachineError that names all that are gone."""
    kinds = {run.test_case.real: None for run in runs}
    own = ["link-tools" if real else "simulator" for real in kinds]
    ends = [end.name for run in runs for end in (run.server, run.client) if end.name in manifest.images]
    names = dict.fromkeys([*own, *ends])
    pinned = {name: manifest.images[name] for name in names if name in manifest.images}
    gone = [name for name in names if name not in pinned or find(pinned[name].id) is None]
    if gone:
        told = ", ".join(f"{name} ({pinned[name].reference} {pinned[name].id[:19]})" if name in pinned else name
                         for name in gone)  # fmt: skip
        message = (
            f"These images are not those of the campaign any more, or gone: {told}. Results of two images are never "
            "mixed: load the old ones (`docker load`), or begin a new campaign."
        )
        raise MachineError(message)
    return {name: replace(image, source="local") for name, image in pinned.items()}
