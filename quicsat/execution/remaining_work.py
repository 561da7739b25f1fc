"""What is left to do of an interrupted campaign, and with which images; pure but for the check of images."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace

from quicsat.execution.worker import disturbed
from quicsat.images.build_recipes import own_images
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Implementation
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ImageFacts, Manifest, RunResult
from quicsat.model.run import Run, RunKey
from quicsat.model.text import quoted
from quicsat.plan.stored_plan import plan_of
from quicsat.results.document import StoredResults


@dataclass(frozen=True)
class RemainingWork:
    """Runs of a plan that are still to be made."""

    runs: tuple[Run, ...]
    """In the order of the plan."""
    tried: Mapping[Run, int]
    """Number of earlier attempts, by run."""
    counting: tuple[RunResult, ...] = ()
    """Results that count for budget and breaker: all that are kept, unless skipped runs are to be repeated."""
    disturbed: frozenset[Run] = frozenset()
    """Runs whose last attempt parallel runs may have disturbed."""

    def lacking(self, images: Container[str]) -> tuple[Implementation, ...]:
        """The implementations whose images are not among ``images``."""
        return tuple(dict.fromkeys(end for run in self.runs for end, _ in run.ends if end.name not in images))

    def possible(self, images: Container[str]) -> RemainingWork:
        """The same without runs that still lack an image, and whose result says so already."""
        runs = (run for run in self.runs if not self.tried[run] or all(end.name in images for end, _ in run.ends))
        return replace(self, runs=tuple(runs))


def remaining_work(
    record: StoredResults, retry: Collection[Outcome], planned: Sequence[Run] | None = None
) -> RemainingWork:
    """The runs without a result, with the outcome ``error``, and with an outcome in ``retry``.

    ``planned``: the plan, if it is not the one that the manifest tells.
    """
    again = {Outcome.ERROR, *retry}
    done, last = dict[RunKey, RunResult](), dict[RunKey, RunResult]()
    for result in sorted(record.history, key=lambda result: result.attempt):
        last[result.key] = result
    for result in record.result_set.results:
        if result.verdict.outcome not in again:
            done[result.key] = result
    plan = plan_of(record.result_set.manifest) if planned is None else tuple(planned)
    rest = tuple(run for run in plan if run.key not in done)
    counting = () if Outcome.SKIPPED in retry else tuple(done.values())
    tried = {run: last[run.key].attempt if run.key in last else 0 for run in plan}
    crowded = frozenset(run for run in rest if run.key in last and disturbed(last[run.key]))
    return RemainingWork(rest, tried, counting, crowded)


def changed_parameters(manifest: Manifest, now: Mapping[str, str]) -> str | None:
    """A message about how the endpoint parameters ``now`` differ from those of the campaign; None if they do not.

    The stored ones are used. Versions that did not store them took them from the environment, as it is done then.
    """
    if manifest.parameters is None:
        given = ", ".join(f"{name}={quoted(text)}" for name, text in now.items() if text)
        message = f"The campaign does not store its endpoint parameters; those of the environment are used: {given}."
        return message if given else None
    names = dict.fromkeys((*manifest.parameters, *now))
    differ = [name for name in names if manifest.parameters.get(name, "") != now.get(name, "")]
    changes = "; ".join(
        f"{name} was {quoted(manifest.parameters.get(name, ''))} and is now {quoted(now.get(name, ''))}"
        for name in differ
    )
    message = f"The endpoint parameters of the environment are ignored, the campaign's are used: {changes}."
    return message if changes else None


def pinned_images(
    manifest: Manifest, runs: Sequence[Run], find: Callable[[str], ImageFacts | None]
) -> dict[str, ImageFacts]:
    """The images with which the campaign began, by name; raises :class:`MachineError` if any of them is gone."""
    own = own_images([run.test_case for run in runs], manifest.clock)
    ends = [end.name for run in runs for end, _ in run.ends if end.name in manifest.images]
    names = dict.fromkeys([*own, *ends])
    pinned = {name: manifest.images[name] for name in names if name in manifest.images}
    gone = [name for name in names if name not in pinned or find(pinned[name].id) is None]
    if gone:
        listed = ", ".join(f"{name} ({pinned[name].reference} {pinned[name].id[:19]})" if name in pinned else name
                           for name in gone)  # fmt: skip
        message = (
            f"These images of the campaign are gone or have been replaced: {listed}. Results of different images are "
            "never mixed: load the old images (`docker load`), or start a new campaign."
        )
        raise MachineError(message)
    return {name: replace(image, source="local") for name, image in pinned.items()}
