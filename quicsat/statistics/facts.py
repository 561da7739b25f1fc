"""Facts of runs, negotiated ones and shares of the time: as a filter of results, and as one value per pair; pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import eq, ge, le

from quicsat.model.errors import InputError
from quicsat.model.names import did_you_mean
from quicsat.model.negotiated import FACTS
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.text import quoted
from quicsat.model.time_shares import TimeShare

SHARES = {f"share.{share}": share for share in TimeShare}
"""Names of shares of the transfer's time."""
_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,9})?")
_SIGNS: dict[str, Callable[[float, float], bool]] = {">=": ge, "<=": le, "=": eq}


@dataclass(frozen=True)
class FactCondition:
    """What a fact of a run must be: ``client.initial_max_data>=1048576``, ``cipher=AES-128-GCM``.

    ``=`` compares a share of the time as rounded to the decimals of the value.
    """

    fact: str
    sign: str
    value: str

    def holds(self, result: RunResult) -> bool:
        """Whether it holds for a run; a run without the fact fulfils none."""
        found = _percent(result, SHARES[self.fact]) if self.fact in SHARES else fact_of(result, self.fact)
        if isinstance(found, int | float):
            if not _NUMBER.fullmatch(self.value):
                return False
            digits = len(self.value.partition(".")[2])
            wanted = float(self.value) if digits else int(self.value)
            return _SIGNS[self.sign](round(found, digits) if self.sign == "=" else found, wanted)
        return found is not None and found.casefold() == self.value.casefold()


def read_condition(text: str) -> FactCondition:
    """The condition in a word of ``--fact``; raises InputError."""
    for sign in _SIGNS:
        fact, found, value = text.partition(sign)
        if found:
            check_fact(fact)
            if sign != "=" and not _NUMBER.fullmatch(value):
                raise InputError(f"{quoted(text)}: {sign} needs a number, such as 30 or 3.4.")
            return FactCondition(fact, sign, value)
    raise InputError(f"{quoted(text)} is no condition; write for example client.initial_max_data>=1048576.")


def check_fact(name: str) -> None:
    """Raise InputError if there is no fact of this name."""
    known = (*FACTS, *SHARES)
    if name not in known:
        of_metric = f"share.{name.removeprefix('share.').removeprefix('time_in_')}"  # as the metric is called
        guess = did_you_mean(name, known) or did_you_mean(of_metric, SHARES)
        raise InputError(f"There is no fact {quoted(name)}.{guess} Known: {', '.join(known)}.")


def where(results: ResultSet, conditions: Sequence[FactCondition]) -> ResultSet:
    """The runs for which all conditions hold, with their earlier attempts; all runs without conditions."""
    if not conditions:
        return results
    kept = tuple(each for each in results.results if all(condition.holds(each) for condition in conditions))
    keys = {each.key for each in kept}
    earlier = tuple(each for each in results.earlier if each.key in keys)
    return replace(results, results=kept, earlier=earlier, filtered=True, lacked=results.lacking)


def fact_of(result: RunResult, name: str) -> int | str | None:
    """A fact of a run, a share of its time in whole percent; None if it is unknown."""
    measurement = result.measurement
    if measurement is not None and name in SHARES:
        exact = _percent(result, SHARES[name])
        return None if exact is None else round(exact)
    if measurement is None or measurement.negotiated is None:
        return None
    return measurement.negotiated.facts.get(name)


def _percent(result: RunResult, share: TimeShare) -> float | None:
    values = result.measurement.values if result.measurement else {}
    total = sum(values.get(each.metric, 0.0) for each in TimeShare)
    return 100 * values.get(share.metric, 0.0) / total if total else None
