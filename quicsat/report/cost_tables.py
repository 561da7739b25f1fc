"""Tables of fitted cost models and of their errors; pure."""

from collections.abc import Mapping
from dataclasses import astuple

from quicsat.model.text import counted
from quicsat.model.units import MS, PERCENT
from quicsat.report.table import Column, Table, Unit, Value
from quicsat.statistics.cost_fit import LEAST_RUNS, CostFit, CostRuns

MICROSECOND = 1e-6
MODELS_TITLE = "CPU time of calls, datagrams, a handshake, and 1 KiB of a file, in µs"
ERRORS_TITLE = "Median errors of the CPU time, in %: fitted; partner or link left out; judged"
NO_MODEL = "n < {least}, so there is no model: {names}."
FAILED = "Left out, because they did not succeed: {runs}."
UNCOUNTED = "Left out, because their system calls, datagrams or CPU time are not known: {runs}."
USUAL_HANDSHAKE = (
    "All runs have one connection, so the handshake is the usual one, and start contains the difference: {names}."
)


def cost_tables(endpoints: Mapping[str, tuple[CostFit | None, CostRuns]]) -> tuple[Table, Table]:
    """The models, and what they leave open; a model is None if there is none."""
    found = {name: fit for name, (fit, _) in endpoints.items() if fit is not None}
    missing = [name for name, (fit, _) in endpoints.items() if fit is None]
    usual = [name for name, fit in found.items() if not fit.handshake_known]
    notes = [NO_MODEL.format(least=LEAST_RUNS, names="; ".join(missing))] if missing else []
    notes += [USUAL_HANDSHAKE.format(names="; ".join(usual))] if usual else []
    notes += _left_out(FAILED, {name: runs.failed for name, (_, runs) in endpoints.items()})
    notes += _left_out(UNCOUNTED, {name: runs.uncounted for name, (_, runs) in endpoints.items()})
    costs = ("send", "receive", "wait", "sent", "received", "handshake", "file")
    units = [Column("endpoint"), *(Column(name, Unit.COUNT) for name in costs)]
    models = Table(
        "models",
        MODELS_TITLE,
        tuple(units),
        tuple((name, *(_rounded(cost / MICROSECOND) for cost in astuple(fit.model))) for name, fit in found.items()),
    )
    names = ("n", "all", "partners", "links", "judged", "start [ms]")
    errors = Table(
        "errors",
        ERRORS_TITLE,
        (Column("endpoint"), *(Column(each, Unit.COUNT) for each in names)),
        tuple((name, *_errors(fit)) for name, fit in found.items()),
        tuple(notes),
    )
    return models, errors


def _left_out(text: str, numbers: Mapping[str, int]) -> list[str]:
    named = [f"{name}: {counted(number, 'run')}" for name, number in numbers.items() if number]
    return [text.format(runs="; ".join(named))] if named else []


def _errors(fit: CostFit) -> tuple[Value, ...]:
    shares = (fit.error, fit.partner_error, fit.link_error, fit.judged_error)
    every, partners, links, judged = (None if share is None else round(share / PERCENT, 1) for share in shares)
    return fit.runs, every, partners, links, judged, _rounded(fit.start / MS)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
