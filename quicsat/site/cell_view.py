"""What the page of a cell shows: outcome and proof, numbers and their spread, how to run it again."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quicsat.analysis.metrics import METRICS, Metric
from quicsat.model.link_format import format_baseline
from quicsat.model.negotiated import FACTS, fact_in_words
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ImageFacts, Manifest, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.text import numbered
from quicsat.report.negotiated_tables import values_of
from quicsat.report.object_tables import table_of_objects, with_objects
from quicsat.report.table import Table, csv_text
from quicsat.results.attempts import retried
from quicsat.results.document import a_line_each, plain_result
from quicsat.results.summary import Cell, Figures, figures
from quicsat.site import address, rerun
from quicsat.site.campaigns import Key, SiteCampaign
from quicsat.site.logs import Line, Log
from quicsat.site.matrix_cell_text import CellText, shown
from quicsat.statistics.intervals import Mean, of_repetitions

_GOODPUT = METRICS[0]
PLACES: Mapping[str, int] = {metric.name: place for place, metric in enumerate(METRICS)}
"""Of each metric in ``METRICS``."""
_MAIN = {
    "goodput": "goodput",
    "efficiency": "efficiency",
    "completion_time": "completion",
    "time_to_first_byte": "first byte",
    "handshake_time": "handshake",
    "loss_forward": "lost, forward",
    "sent_per_useful_byte": "sent per useful byte",
    "cross_traffic_goodput": "TCP beside it",
    "flow_share": "share",
    "jain_index": "fairness",
    "object_time_median": "object",
    "response_time_median": "response",
    "head_of_line_blocking": "blocked",
}
"""The main metrics with their short names; the page shows the others on request."""


@dataclass(frozen=True)
class LogLink:
    """A log with the address of its page, relative to that of the cell."""

    log: Log
    address: str


@dataclass(frozen=True)
class Repetition:
    """One run of the cell."""

    result: RunResult
    logs: tuple[LogLink, ...]
    duration: float
    """Of the transfer, seconds."""
    reason: str
    proof: tuple[Line, ...]
    """The last lines of what the endpoints printed, if the run did not succeed."""
    proof_page: str

    @property
    def number(self) -> int:
        """Counted from 1."""
        return self.result.repetition

    def value(self, metric: Metric) -> float | None:
        """Of this run; None if it has none."""
        return self.result.measurement.values.get(metric.name) if self.result.measurement else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its numbers should know."""
        measured = self.result.measurement.notes if self.result.measurement else ()
        real = self.result.evidence.real_link
        baseline = real.baseline if real else None
        bare = (f"The bare link at {baseline.taken}: {format_baseline(baseline)}.",) if baseline else ()
        return (*self.result.evidence.notes, *measured, *bare)


@dataclass(frozen=True)
class Reason:
    """Repetitions that ended alike."""

    outcome: Outcome
    code: str
    cause: str
    """The cause that the traces show; empty if unknown."""
    text: str
    repetitions: str


@dataclass(frozen=True)
class MetricSummary:
    """How the numbers of one metric are spread over the repetitions that succeeded."""

    metric: Metric
    count: int
    figures: Figures
    mean: Mean
    """Over further repetitions, geometric if all numbers are positive, with its interval."""

    @property
    def fragile(self) -> bool:
        """Whether a small difference of conditions may change the goodput much."""
        return self.metric is _GOODPUT and self.figures.fragile


@dataclass(frozen=True)
class Note:
    """What a reader of some repetitions' numbers should know."""

    text: str
    repetitions: str


@dataclass(frozen=True)
class CellView:
    """The values of a cell's page."""

    case: TestCase
    link: str
    """Of the test case, in words."""
    server: str
    client: str
    cell: Cell
    shown: CellText
    repetitions: tuple[Repetition, ...]
    reasons: tuple[Reason, ...]
    spreads: tuple[MetricSummary, ...]
    metrics: tuple[Metric, ...]
    """Those for which any repetition has a value."""
    notes: tuple[Note, ...]
    images: Mapping[str, ImageFacts]
    """By role, and ``simulator``."""
    command: str
    """What runs the cell again."""
    own_file: str
    """The file of its test case that quicsat does not bring; empty if it is a ready one."""
    strip: tuple[tuple[int, float], ...]
    """Repetition and its share of the best goodput, for the small picture."""
    attempts: tuple[RunResult, ...] = ()
    """All of them, those that do not count too, by repetition and number."""
    objects: Table | None = None
    """Times of the objects of its workload, by size; None if there are none."""
    retried: tuple[RunResult, ...] = ()
    """Those of the attempts that are valid and were repeated on request."""
    negotiated: tuple[tuple[str, str], ...] = ()
    """Facts of the handshakes with their values; several of one fact, from different runs, are separated by commas."""

    @property
    def main(self) -> tuple[tuple[Metric, str], ...]:
        """Those of the metrics that a reader looks for first, with short names."""
        known = {metric.name: metric for metric in self.metrics}
        return tuple((known[name], short) for name, short in _MAIN.items() if name in known)

    @property
    def spread_of_main(self) -> tuple[MetricSummary, ...]:
        """Empty if there is one number only."""
        return tuple(each for each in self.spreads if each.metric.name in _MAIN and each.count > 1)

    @property
    def representative(self) -> int:
        """The repetition with the median completion time (or goodput) of those that succeeded, else the first."""
        return representative([each.result for each in self.repetitions])


def representative(results: Sequence[RunResult]) -> int:
    """The repetition whose goodput is the lower median of those that succeeded; the first one if none did."""
    good = _by_goodput(results)
    return good[(len(good) - 1) // 2] if good else results[0].repetition


def slowest(results: Sequence[RunResult]) -> int:
    """The repetition with the lowest goodput of those that succeeded; the first one if none did."""
    good = _by_goodput(results)
    return good[0] if good else results[0].repetition


def _by_goodput(results: Sequence[RunResult]) -> list[int]:
    """The repetitions that succeeded, the slowest first."""
    good = [
        (each.measurement.values["goodput"], each.repetition)
        for each in results
        if each.measurement is not None and "goodput" in each.measurement.values
    ]
    return [repetition for _, repetition in sorted(good)]


def detail(campaign: SiteCampaign, key: Key, found: Mapping[int, Sequence[Log]]) -> CellView:
    """The page of a cell; ``found``: the logs of each repetition."""
    server, client, name = key
    manifest = campaign.results.manifest
    case = campaign.cases[name]
    repetitions = tuple(_repetition(result, found.get(result.repetition, ())) for result in campaign.runs[key])
    runs = campaign.runs[key]
    metrics = _measured(runs)
    spreads = tuple(spread for metric in metrics if (spread := _spread(metric, repetitions)) is not None)
    best = next((spread.figures.max for spread in spreads if spread.metric is _GOODPUT), 0.0)
    return CellView(
        case=case,
        link=campaign.links[name],
        server=server,
        client=client,
        cell=campaign.cells[key],
        shown=shown(campaign.cells[key]),
        repetitions=repetitions,
        reasons=_reasons(repetitions),
        spreads=spreads,
        metrics=metrics,
        notes=_notes(repetitions),
        images=_images(manifest, server, client),
        command=rerun.of_cell(manifest, key),
        own_file=rerun.own_file(case),
        strip=tuple((run.number, value / best) for run in repetitions if (value := run.value(_GOODPUT)) and best),
        attempts=tuple(campaign.attempts[key]),
        retried=tuple(retried(campaign.attempts[key])),
        objects=table_of_objects(runs, (case,)) if with_objects(runs, case) else None,
        negotiated=_negotiated(runs),
    )


def _measured(runs: Sequence[RunResult]) -> tuple[Metric, ...]:
    """Metrics that a run has, in their order."""
    names = {name for run in runs if run.measurement for name in run.measurement.values}
    return tuple(METRICS[place] for place in sorted(PLACES[name] for name in names & PLACES.keys()))


def _negotiated(runs: Sequence[RunResult]) -> tuple[tuple[str, str], ...]:
    if all(run.measurement is None or run.measurement.negotiated is None for run in runs):
        return ()
    found = ((fact, values_of(runs, fact)) for fact in FACTS)
    return tuple((fact_in_words(fact), ", ".join(values)) for fact, values in found if values)


def _repetition(result: RunResult, found: Sequence[Log]) -> Repetition:
    links = tuple(LogLink(log, address.log_page(result.repetition, log.name)) for log in found)
    failed = result.verdict.outcome is not Outcome.SUCCEEDED
    proof = links[0] if failed and links else None
    return Repetition(
        result=result,
        logs=links,
        duration=result.evidence.transfer_time,
        reason=result.verdict.reason or result.evidence.fault,
        proof=proof.log.last if proof else (),
        proof_page=proof.address if proof else "",
    )


def _reasons(repetitions: Sequence[Repetition]) -> tuple[Reason, ...]:
    groups: dict[tuple[Outcome, str, str, str], list[int]] = {}
    for run in repetitions:
        verdict = run.result.verdict
        if verdict.outcome is not Outcome.SUCCEEDED:
            key = (verdict.outcome, verdict.code.value, verdict.cause.value, run.reason)
            groups.setdefault(key, []).append(run.number)
    return tuple(Reason(*key, numbered("Repetition", numbers)) for key, numbers in groups.items())


def _notes(repetitions: Sequence[Repetition]) -> tuple[Note, ...]:
    groups: dict[str, list[int]] = {}
    for run in repetitions:
        for text in run.notes:
            groups.setdefault(text, []).append(run.number)
    return tuple(Note(text, numbered("Repetition", numbers)) for text, numbers in groups.items())


def _spread(metric: Metric, repetitions: Sequence[Repetition]) -> MetricSummary | None:
    values = [
        value
        for run in repetitions
        if run.result.verdict.outcome is Outcome.SUCCEEDED and (value := run.value(metric)) is not None
    ]
    spread, mean = figures(values), of_repetitions(values)
    return None if spread is None or mean is None else MetricSummary(metric, len(values), spread, mean)


def _images(manifest: Manifest, server: str, client: str) -> dict[str, ImageFacts]:
    wanted = {"server": server, "client": client, "simulator": "simulator"}
    return {role: manifest.images[name] for role, name in wanted.items() if name in manifest.images}


# ---- downloads ------------------------------------------------------------------------------

_HEAD = ("server", "client", "test case", "protocol", "repetition", "attempt", "outcome", "code", "reason", "started")


def as_csv(results: Sequence[RunResult]) -> bytes:
    """A line per run: who, what became of it, every metric in SI units; empty where there is none."""
    head = (*_HEAD, *(f"{metric.name} [{metric.unit}]" for metric in METRICS))
    return _csv(head, map(_run_fields, results))


def _csv(head: Sequence[str], lines: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *lines])
    return text.getvalue().encode("utf-8", "replace")


def _run_fields(run: RunResult) -> Sequence[object]:
    values: list[float | str] = [""] * len(METRICS)
    for name, value in run.measurement.values.items() if run.measurement else ():
        if name in PLACES:
            values[PLACES[name]] = value
    return (
        *(run.server, run.client, run.test_case, run.protocol.value, run.repetition, run.attempt),
        *(run.verdict.outcome.value, run.verdict.code.value, csv_text(run.verdict.reason)),
        *(csv_text(run.evidence.started), *values),
    )


_ATTEMPT = (
    *("server", "client", "test case", "repetition", "attempt", "valid", "outcome", "code", "reason"),
    *("outcome if valid", "code if valid", "simulator's largest lag [s]", "started"),
)


def attempts_as_csv(attempts: Iterable[RunResult]) -> bytes:
    """A line per attempt, excluded ones too: whether it is valid, why not, and what its outcome would be if it were."""
    return _csv(_ATTEMPT, map(_attempt_fields, attempts))


def _attempt_fields(attempt: RunResult) -> Sequence[object]:
    verdict, link = attempt.verdict, attempt.evidence.simulator
    otherwise = verdict.if_valid
    return (
        *(attempt.server, attempt.client, attempt.test_case, attempt.repetition, attempt.attempt),
        *("no" if verdict.excluded else "yes", verdict.outcome.value, verdict.code.value, csv_text(verdict.reason)),
        *((otherwise.outcome.value, otherwise.code.value) if otherwise else ("", "")),
        *(link.largest_lag if link else "", csv_text(attempt.evidence.started)),
    )


def as_json(results: Sequence[RunResult]) -> bytes:
    """Results as in result.json, a line each."""
    return f"{a_line_each(map(plain_result, results))}\n".encode("utf-8", "replace")
