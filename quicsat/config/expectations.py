"""The expectations file of ``--expect``: known failures, goodput floors and a baseline; all faults at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from quicsat.config.quantities import one_line, rate, share, within
from quicsat.config.yaml_fields import (
    Fields,
    Problem,
    display_path,
    is_below,
    raise_problems,
    read_yaml,
    working_directory,
)
from quicsat.model.expectations import CellPattern, Expectations, GoodputFloor, KnownFailure
from quicsat.model.names import FOLDER_SIGN, did_you_mean, split_flows
from quicsat.model.text import quoted

KEYS = ("baseline", "regression", "known failures", "goodput floors")
CELL_KEYS = ("server", "client", "test")
KNOWN_FAILURE_KEYS = (*CELL_KEYS, "reason")
FLOOR_KEYS = (*CELL_KEYS, "floor")
_REGRESSION = within(share, "0 %", "100 %")
_FLOOR = within(rate, "1 bit/s", "1000 Gbit/s")


@dataclass(frozen=True)
class KnownNames:
    """The names that an entry may have: those of quicsat, and those of the campaign."""

    implementations: frozenset[str]
    """Variants, too."""
    test_cases: frozenset[str]
    """Names and abbreviations of test cases and families."""
    workloads: frozenset[str] = frozenset()
    """Names and abbreviations."""

    def implementation(self, text: str) -> str:
        """The name of an implementation or variant, upper and lower case being alike; ValueError if there is none."""
        spelling = {name.casefold(): name for name in self.implementations}
        if (name := spelling.get(text.casefold())) is None:
            raise ValueError(f"is no implementation and no variant.{did_you_mean(text, self.implementations)}")
        return name

    def test_case(self, text: str) -> str:
        """Return ``text``; ValueError if it is no label, with a workload and flows or without."""
        labels, workloads = ({label.casefold() for label in each} for each in (self.test_cases, self.workloads))
        base, plus, workload = split_flows(text.casefold())[0].partition(FOLDER_SIGN)
        if text.casefold() in labels or (base in labels and (not plus or workload in workloads)):
            return text
        wrong = {f"{base}{plus}{each}" for each in workloads} if plus and base in labels else self.test_cases
        raise ValueError(f"is no test case and no family.{did_you_mean(text, wrong)}")


def load_expectations(path: Path, known: KnownNames) -> Expectations:
    """The expectations of a file; the baseline is relative to its folder. Raises InputError with every fault.

    The baseline must lie below the folder of the file, or below the working directory.
    """
    problems: list[Problem] = []
    documents = read_yaml(path, problems)
    if len(documents) != 1 and not problems:
        problems.append(Problem(display_path(path), 0, "must hold one document."))
    raise_problems(problems)
    fields = documents[0]
    found = _read(fields, path.parent, known) if fields.is_mapping else Expectations()
    raise_problems(problems)
    return found


def _read(fields: Fields, folder: Path, known: KnownNames) -> Expectations:
    fields.allow_only(KEYS)
    baseline = fields.read("baseline", one_line)
    if baseline and not any(is_below(folder / baseline, each) for each in filter(None, (folder, working_directory()))):
        fields.note(f"baseline {quoted(baseline)} is not below the folder of this file.", fields.line_of("baseline"))
    return Expectations(
        known_failures=tuple(
            KnownFailure(_cells(entry, known), entry.read("reason", one_line) or "")
            for entry in _entries(fields, "known failures", KNOWN_FAILURE_KEYS)
        ),
        floors=tuple(
            GoodputFloor(_cells(entry, known), entry.read("floor", _FLOOR) or 0.0)
            for entry in _entries(fields, "goodput floors", FLOOR_KEYS)
        ),
        baseline=folder / baseline if baseline is not None else None,
        regression=fields.read("regression", _REGRESSION),
    )


def _entries(fields: Fields, key: str, keys: tuple[str, ...]) -> Iterator[Fields]:
    for entry in fields.mappings(key, "{server: quic-go, test: sat}"):
        entry.allow_only(keys)
        if not any(each in entry for each in CELL_KEYS):
            entry.note("name a server, a client or a test; an entry without any would be for all cells.")
        if "floor" in keys:
            entry.require({"floor": "5 Mbit/s"})
        yield entry


def _cells(entry: Fields, known: KnownNames) -> CellPattern:
    servers, clients = (entry.read_list(key, known.implementation) or () for key in ("server", "client"))
    return CellPattern(servers, clients, entry.read_list("test", known.test_case) or ())
