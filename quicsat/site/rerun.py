"""Commands that repeat a cell or a campaign from the folder of a checkout, with all options that decide the results."""

import shlex
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from quicsat.model.clock import Clock
from quicsat.model.names import VARIANT_SIGN, split_flows
from quicsat.model.outcomes import Rules
from quicsat.model.perturbation import USUAL
from quicsat.model.results import PARAMETERS, Manifest
from quicsat.model.test_case import COMBINED, TestCase
from quicsat.model.text import command_line

_READY = Path("testcases")
"""Test cases in here are known by their names."""


def of_cell(manifest: Manifest, key: tuple[str, str, str]) -> str:
    """What runs the cell again: the same images, repetitions, rules, clock and random numbers."""
    server, client, name = key
    return _line(manifest, (server,), (client,), [case for case in manifest.test_cases if case.name == name], [])


def of_campaign(manifest: Manifest) -> str:
    """What runs the campaign again, with its order and its rules of what is left out."""
    schedule = manifest.schedule
    more = [
        *(["-i", *manifest.must_include] if manifest.must_include else []),
        *(["--pairs", *manifest.pairs] if manifest.pairs else []),
        *(["--shuffle"] if manifest.options.get("shuffle") else []),
        *(["--shard", manifest.shard] if manifest.shard else []),
        *(["--breaker", str(schedule.breaker)] if schedule.breaker else []),
        *(["--budget", f"{schedule.budget:.9g} s"] if schedule.budget else []),
        *(["--require", schedule.required] if schedule.required else []),
        *(["--skip-on-failure"] if schedule.skip_on_failure else []),
    ]
    return _line(manifest, manifest.servers, manifest.clients, manifest.test_cases, more)


def own_file(case: TestCase) -> str:
    """The file of a test case that quicsat does not bring; empty if it is a ready one."""
    if not case.source or _is_ready(case.source):
        return ""
    return case.source if "/" in case.source else f"./{case.source}"


@lru_cache(1024)
def _is_ready(source: str) -> bool:
    return _READY in Path(source).parents


def _line(
    manifest: Manifest, servers: Sequence[str], clients: Sequence[str], cases: Sequence[TestCase], more: Sequence[str]
) -> str:
    """An option sets a value for all test cases, so it is left out where their values differ: it was not given."""
    repetitions = {str(case.repetitions) for case in cases}
    timeouts = {f"{case.timeout:.9g}" for case in cases if not case.ends_at_deadline}
    flows = dict.fromkeys(tuple(flow.words for flow in case.flows) for case in cases if split_flows(case.name)[1])
    ends = {*servers, *clients, *(end for case in cases for flow in case.flows for end in (flow.server, flow.client))}
    replaced = dict.fromkeys(
        f"{each.name.partition(VARIANT_SIGN)[0]}={each.image}"
        for each in manifest.implementations
        if each.replaced and each.name in ends
    )
    words = [
        *("-s", *servers, "-c", *clients),
        *("-t", *dict.fromkeys(word for case in cases for word in _selecting(case))),
        *(word for each in flows for word in ("--with", *each)),
        *(["--hosts", "hosts.yml"] if any(case.real for case in cases) else []),
        *(["-r", *replaced] if replaced else []),
        *(["--strict-upstream"] if any(case.rules is Rules.UPSTREAM for case in cases) else []),
        *([] if manifest.options.get("qlog", True) else ["--no-qlog"]),
        *([] if manifest.options.get("check_compliance", True) else ["--skip-compliance-check"]),
        *_clock(manifest),
        *(["--repetitions", *repetitions] if len(repetitions) == 1 else []),
        *(["--timeout", *timeouts] if len(timeouts) == 1 else []),
        *more,
        *("--seed", str(manifest.seed)),
    ]
    given = manifest.parameters or {}
    variables = [f"{name}={shlex.quote(given[name])}" for name in PARAMETERS if given.get(name)]
    return " ".join([*variables, command_line(*words)])


def _selecting(case: TestCase) -> list[str]:
    """Words of ``-t``: a file selects all test cases in it, but not their combinations with workloads."""
    name, file = split_flows(case.name)[0], own_file(case)
    return [file, name] if file and COMBINED in name else [file or name]


def _clock(manifest: Manifest) -> list[str]:
    if manifest.clock is Clock.REAL:
        return []
    factor = manifest.cpu_cost_factor
    cost = [] if factor is None or factor == 1 else ["--cpu-cost-factor", f"{factor:.9g}"]
    own = [] if manifest.amplitudes == USUAL else ["--perturb", manifest.amplitudes.words]
    return ["--clock", manifest.clock.value, *cost, *own, *(["--placebo"] if manifest.placebo else [])]
