"""Makes the plan of a campaign from the options of `run`.

It imports little, since it runs before the lock of the Docker daemon is taken.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quicsat.cli import options as shared
from quicsat.config import loader
from quicsat.config.inventory import Inventory
from quicsat.model.errors import InputError
from quicsat.model.implementation import Implementation, Protocol
from quicsat.model.names import base_name, did_you_mean, is_named
from quicsat.model.outcomes import Rules
from quicsat.model.run import Run
from quicsat.model.text import quoted
from quicsat.plan import order
from quicsat.plan import selection as plan
from quicsat.plan.make_plan import make_plan
from quicsat.plan.select_names import select as values_named
from quicsat.plan.select_names import split

if TYPE_CHECKING:
    from quicsat.cli.campaign_options import NewCampaignOptions


class ChosenRuns(NamedTuple):
    """What a campaign measures."""

    selection: plan.Selection
    runs: tuple[Run, ...]
    """In order."""
    seed: int


def select(options: NewCampaignOptions, root: Path) -> ChosenRuns:
    """What the options select; raises :class:`InputError`."""
    inventory = Inventory(root)
    implementations = inventory.implementations
    _check_ignored(options.no_auto_unsupported, implementations)
    known, on_request, tests = inventory.test_cases, inventory.on_request, options.test
    if options.protocol == Protocol.WEBTRANSPORT:
        implementations, known, tests = plan.with_webtransport(implementations, known, tests)
        on_request = {}
    selection = plan.choose(
        implementations,
        known,
        loader.load_test_cases,
        inventory.workloads,
        servers=options.server or [pair.partition("/")[0] for pair in options.pairs],
        clients=options.client or [pair.partition("/")[2] for pair in options.pairs],
        on_request=on_request,
        tests=tests,
        images=options.replace,
        flows=tuple(map(tuple, options.beside)),
    )
    selection = _taking_part(selection, must_include(options))
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    runs = make_plan(
        selection.servers,
        selection.clients,
        selection.test_cases,
        repetitions=options.repetitions,
        timeout=options.timeout,
        rules=Rules.UPSTREAM if options.strict_upstream else Rules.STANDARD,
        seed=seed,
        others=selection.others,
    )
    if options.shard and options.require:
        raise InputError("--require and --shard exclude each other: a shard does not know the results of the others.")
    if options.shard and options.seed is None:
        raise InputError("--shard needs --seed N, the same seed for all shards of a plan.")
    shared.check_clock(options, selection.test_cases)
    selection = replace(selection, test_cases=tuple(dict.fromkeys(run.test_case for run in runs)))
    runs = order.involving(order.of_pairs(runs, pairs(options)), must_include(options))
    if missing := order.without_runs(runs, pairs(options)):
        listed = ", ".join(missing)
        raise InputError(f"--pairs: {listed}: the server or the client is not selected, or no protocol is in common.")
    _check_replaced(options.replace, runs)
    runs = order.part_of(runs, options.shard or "")
    if not runs:
        raise InputError(f"Nothing to run: the plan has too few runs for shard {options.shard}.")
    return ChosenRuns(selection, order.shuffled(runs, seed) if options.shuffle else runs, seed)


def pairs(options: shared.SelectionOptions) -> tuple[str, ...]:
    """Those of ``--pairs``, without repeats."""
    return tuple(dict.fromkeys(map(str.casefold, options.pairs)))


def must_include(options: shared.SelectionOptions) -> tuple[str, ...]:
    """The names of ``--must-include``, without repeats; InputError if the option is given, but empty."""
    names = tuple(dict.fromkeys(split(options.must_include)))
    if options.must_include and not names:
        raise InputError("--must-include: no implementation was named. Name one, or leave the option out.")
    return names


def _check_ignored(words: Sequence[str], implementations: Mapping[str, Implementation]) -> None:
    """Raise :class:`InputError` if ``--no-auto-unsupported``, which has no effect, names no implementation."""
    names = [base_name(word) for word in split(words)]
    if words and (faults := values_named(names, implementations, "implementation")[1]):
        raise InputError(*(f"--no-auto-unsupported: {fault}" for fault in faults))


def _check_replaced(words: Sequence[str], runs: Sequence[Run]) -> None:
    """Raise :class:`InputError` if ``--replace`` names an implementation that no run uses."""
    used = {end.name for run in runs for end, _ in run.ends}
    names = [word.partition("=")[0].strip() for word in split(words)]
    if idle := [quoted(name) for name in names if not any(is_named(end, [name]) for end in used)]:
        raise InputError(f"--replace: no run uses {' or '.join(idle)}. Select it with -s or -c, or leave it out.")


def _taking_part(selection: plan.Selection, names: Sequence[str]) -> plan.Selection:
    """The selection without servers and clients that are in no pair with one of ``names``.

    Raises :class:`InputError` if one of ``names`` was not selected.
    """
    servers, clients = selection.servers, selection.clients
    ends = [end.name for end in (*servers, *clients)]
    if missing := [name for name in names if not any(is_named(end, [name]) for end in ends)]:
        hints = "".join(did_you_mean(name, ends) for name in missing)
        listed = ", ".join(map(quoted, missing))
        raise InputError(f"{listed} has to be included, and is neither a selected server nor a selected client.{hints}")
    named_servers, named_clients = (
        tuple(end for end in ends if is_named(end.name, names)) for ends in (servers, clients)
    )
    return replace(
        selection,
        servers=servers if named_clients or not names else named_servers,
        clients=clients if named_servers or not names else named_clients,
    )
