"""The stored run that a command line names."""

from pathlib import Path

from quicsat.cli import console
from quicsat.model.errors import InputError
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.text import first_few

NAMED = 5
"""Runs of a campaign that a message names."""


def stored_run(given: Path, example: str) -> tuple[ResultSet, RunResult, Path, Path]:
    """The campaign with ``given``, the result of the run that it is or belongs to, and the directory of this run.

    The last one twice: without links, and as the user may name it. An attempt that was repeated has a directory of its
    own. ``example``: of a command line, for messages. Raises InputError if ``given`` is in no run.
    """
    from quicsat.results import store

    name = example.split()[1]
    campaign, place = store.find_campaign(given)
    if campaign is None and not given.exists():
        raise InputError(f"{given}: does not exist. Pass a directory like {name}")
    if campaign is None:
        raise InputError(f"{given}: is in no campaign. Pass a directory like {name}")
    results = console.warn(store.load(campaign))
    if campaign == place:
        bad = [each.key for each in results.results if each.verdict.outcome is not Outcome.SUCCEEDED]
        kind, some = ("Runs that did not succeed", bad) if bad else ("Its runs", [each.key for each in results.results])
        named = f"{kind}: {first_few((given / key.path for key in some), NAMED)}" if some else "It has no runs yet."
        raise InputError(f"{given}: is a campaign. Pass the directory of a run. {named}")
    runs = {campaign / each.key.path: each for each in results.results}
    runs |= {store.attempt_directory(campaign / each.key.path, each.attempt): each for each in results.earlier}
    for run in filter(runs.__contains__, (place, *place.parents)):
        return results, runs[run], run, given if run == place else run
    if below := [given / run.relative_to(place) for run in runs if run.is_relative_to(place)]:
        raise InputError(f"{given}: is no run. Name one of its runs: {first_few(below, NAMED)}")
    raise InputError(f"{given}: no such run. Pass a directory like {name}")
