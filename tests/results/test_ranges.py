"""What files of results claim: numbers in their ranges, times of this calendar, lines of one campaign."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from quicsat.model.clock import Clock
from quicsat.model.errors import HarnessFault, InputError
from quicsat.model.outcomes import Outcome, Verdict
from quicsat.model.perturbation import LARGEST, NOMINAL, USUAL, perturbation_of
from quicsat.model.results import ImageFacts, ResultSet, RunResult
from quicsat.results.document import json_schema
from quicsat.results.store import JOURNAL, Journal, load, write_result_json
from tests.hostile_results import sealed
from tests.results_builder import result_set, run_result, runs

GOOD = runs(5e6, 6e6, None)
IMAGE = ImageFacts("picoquic:1", "sha256:1")


def stored(place: Path, results: ResultSet) -> Path:
    """A journal; its second line is the first result."""
    place.mkdir(exist_ok=True)
    with Journal.create(place, results.manifest) as journal:
        for result in results.results:
            journal.append_result(result)
        if results.finished:
            journal.finish()
    return place / JOURNAL


def change(path: Path, at: int, *keys: str | int, value: Any) -> None:
    """Set a member of a line; the checksum is right."""
    lines = path.read_bytes().splitlines()
    plain = json.loads(lines[at])
    plain.pop("sum")
    holder = plain
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    lines[at] = sealed(plain)
    path.write_bytes(b"\n".join(lines) + b"\n")


def numbers(schema: Any) -> Iterator[dict[str, Any]]:
    """All schemas of numbers."""
    if isinstance(schema, dict):
        if schema.get("type") in ("number", "integer"):
            yield schema
        for each in schema.values():
            yield from numbers(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from numbers(each)


def test_every_number_of_a_manifest_and_a_result_has_a_range() -> None:
    kinds = json_schema()["$defs"]
    found = [each for name, kind in kinds.items() for each in numbers(kind)]
    assert len(found) > 100
    assert all({"minimum", "maximum"} <= each.keys() for each in found)


WRONG = [
    *((("data", "measurement", "values", "goodput"), value) for value in (1e308, -1e308, -1e-9, 5e-324, float("inf"))),
    (("data", "evidence", "phases", "transfer"), -1.0),
    (("data", "evidence", "seed"), 2**63),
    *((("data", "attempt"), value) for value in (-5, 0, 10**400)),
    *((("data", "evidence", "started"), text) for text in ("9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "now")),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "value"), WRONG)
@pytest.mark.parametrize("form", ["journal", "document"])
def test_a_result_out_of_range_is_left_out_and_named(
    tmp_path: Path, keys: tuple[str, ...], value: Any, form: str
) -> None:
    path = stored(tmp_path, result_set(GOOD, finished=None))
    if form == "journal":
        change(path, 1, *keys, value=value)
    else:
        plain = json.loads(write_result_json(tmp_path, load(tmp_path).result_set).read_bytes())
        path.unlink()
        holder = plain["results"][0]
        for key in keys[1:-1]:
            holder = holder[key]
        holder[keys[-1]] = value
        (tmp_path / "result.json").write_text(json.dumps(plain).replace("Infinity", "1e999"))
    record = load(tmp_path)
    assert record.result_set.results == tuple(GOOD[1:])
    assert len(record.warnings) == 1
    assert keys[-1] in record.warnings[0]


@pytest.mark.parametrize("started", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-11-21T06:00:00", "tomorrow"])
def test_a_campaign_of_no_time_is_refused(tmp_path: Path, started: str) -> None:
    change(stored(tmp_path, result_set(GOOD)), 0, "data", "started", value=started)
    with pytest.raises(InputError, match="a time with its zone"):
        load(tmp_path)


@pytest.mark.parametrize("named", [True, False], ids=["lines name their campaign", "as of earlier versions"])
def test_lines_of_another_campaign_do_not_count(tmp_path: Path, named: bool) -> None:
    mine = stored(tmp_path / "a", result_set(GOOD[:2], finished=None))
    other = result_set(runs(1e9, 1e9, 1e9, 1e9))
    other = replace(other, manifest=replace(other.manifest, id="other"))
    theirs = stored(tmp_path / "b", other)
    if not named:
        for at in range(1, 6):
            change(theirs, at, "campaign", value="")
    mine.write_bytes(mine.read_bytes() + theirs.read_bytes())
    record = load(mine)
    assert record.result_set.results == tuple(GOOD[:2])
    assert record.warnings == (f'{mine}: skipped lines that belong to another campaign, "other": 6.',)


def test_a_line_that_was_put_in_does_not_count(tmp_path: Path) -> None:
    mine, lines = stored(tmp_path / "a", result_set(GOOD[:1])), stored(tmp_path / "b", result_set(GOOD))
    change(lines, 2, "campaign", value="other")
    mine.write_bytes(mine.read_bytes() + lines.read_bytes().splitlines(keepends=True)[2])
    assert load(mine).result_set.results == tuple(GOOD[:1])


def odd_results() -> list[RunResult]:
    """What no run of the campaign can have left."""
    evidence = replace(GOOD[0].evidence, images={"server": "sha256:1"}, clock=Clock.VIRTUAL)
    return [replace(GOOD[0], evidence=evidence), replace(GOOD[0], verdict=Verdict(Outcome.SUCCEEDED), measurement=None)]


@pytest.mark.parametrize("odd", odd_results(), ids=["another clock", "success without a measurement"])
def test_results_that_cannot_be_are_neither_read_nor_written(tmp_path: Path, odd: RunResult) -> None:
    path = write_result_json(tmp_path, result_set([odd, *GOOD[1:]], finished=None))
    record = load(path)
    assert record.result_set.results == tuple(GOOD[1:])
    assert len(record.warnings) == 1
    stored(tmp_path, result_set(GOOD))
    with Journal.open(tmp_path) as journal, pytest.raises(HarnessFault):
        journal.append_result(odd)


def test_another_image_or_seed_is_named(tmp_path: Path) -> None:
    first, *others = GOOD
    manifest = replace(result_set().manifest, images={"picoquic": IMAGE, "quiche": ImageFacts("quiche:1", "sha256:2")})
    used = {"server": "sha256:1", "client": "sha256:2"}
    fits = replace(first, evidence=replace(first.evidence, images=used))
    for changed, what in (({"images": {**used, "client": "sha256:3"}}, "an image"), ({"seed": 1}, "a seed")):
        odd = replace(fits, evidence=replace(fits.evidence, **changed))
        record = load(write_result_json(tmp_path, ResultSet(manifest, (), (odd, *others), None)))
        assert record.result_set.results == (odd, *others)
        assert [what in warning and str(first.key) in warning for warning in record.warnings] == [True]
    assert load(write_result_json(tmp_path, ResultSet(manifest, (), (fits, *others), None))).warnings == ()


def test_another_perturbation_is_named(tmp_path: Path) -> None:
    """In runs that were made, as their images tell; the first member and one of a placebo included."""
    used = {"server": "sha256:1"}
    for placebo in (False, True):
        manifest = replace(result_set().manifest, clock=Clock.VIRTUAL, amplitudes=USUAL, placebo=placebo)
        by = [perturbation_of(member, USUAL, placebo=placebo) for member in (1, 2)]
        for found, odd in (
            ([*by], 0), ([by[0], NOMINAL], 1), ([*reversed(by)], 2), ([by[0], replace(by[1], delay=3.0)], 1),
        ):  # fmt: skip
            made = [
                replace(each, evidence=replace(each.evidence, images=used, clock=Clock.VIRTUAL, perturbation=one))
                for each, one in zip(runs(5e6, 6e6), found, strict=True)
            ]
            for images, named in ((used, odd), ({}, 0)):
                results = [replace(each, evidence=replace(each.evidence, images=images)) for each in made]
                record = load(write_result_json(tmp_path, ResultSet(manifest, (), tuple(results), None)))
                assert len(record.result_set.results) == 2
                assert ["a perturbation" in each for each in record.warnings] == [True] * bool(named)
                assert [(" and 1 more" in each) for each in record.warnings] == [named == 2] * bool(named)


@pytest.mark.parametrize(("name", "most"), asdict(LARGEST).items())
def test_amplitudes_are_those_that_a_campaign_can_begin_with(tmp_path: Path, name: str, most: float) -> None:
    path = stored(tmp_path, result_set(GOOD))
    change(path, 0, "data", "amplitudes", value=asdict(LARGEST))
    assert load(tmp_path).result_set.manifest.amplitudes == LARGEST
    for wrong in (-0.01, most * 1.01):
        change(path, 0, "data", "amplitudes", name, value=wrong)
        with pytest.raises(InputError):
            load(tmp_path)


def test_several_results_of_a_run_are_one(tmp_path: Path) -> None:
    """The last attempt, and its last result, as in the journal; result.json is never written like this."""
    whole = result_set(GOOD, repetitions=3, finished=None)
    last = run_result(7e6)
    for more, counting, earlier in (
        ([GOOD[0]], GOOD, []),
        ([last], [last, *GOOD[1:]], []),
        ([last] * 10, [last, *GOOD[1:]], []),
        ([run_result(9e6, attempt=2), GOOD[0]], [run_result(9e6, attempt=2), *GOOD[1:]], GOOD[:1]),
    ):
        many = replace(whole, results=(*GOOD, *more))
        (tmp_path / JOURNAL).unlink(missing_ok=True)
        record = load(write_result_json(tmp_path, many))
        assert record.result_set.results == tuple(counting)
        assert record.result_set.earlier == tuple(earlier)
        assert [str(GOOD[0].key) in each for each in record.warnings] == [True]
        assert load(stored(tmp_path, many)).result_set == record.result_set
    (tmp_path / JOURNAL).unlink()
    twice = load(write_result_json(tmp_path, replace(whole, placebo=(GOOD[0], last)))).result_set
    assert (twice.results, twice.placebo) == (tuple(GOOD), (last,))
    assert load(write_result_json(tmp_path, whole)).warnings == ()


def test_an_attempt_that_does_not_count_takes_no_place(tmp_path: Path) -> None:
    """Of a run whose counting result is damaged."""
    results = replace(result_set(GOOD[1:], repetitions=3), earlier=(run_result(9e6, attempt=1),))
    record = load(write_result_json(tmp_path, results)).result_set
    assert (record.results, record.earlier) == (tuple(GOOD[1:]), results.earlier)


@pytest.mark.parametrize("form", ["journal", "document"])
def test_lost_results_are_told(tmp_path: Path, form: str) -> None:
    """Of a campaign that has ended; after however many lines that were skipped."""
    path = stored(tmp_path, result_set(GOOD, repetitions=3))
    if form == "document":
        path.unlink()
        path = write_result_json(tmp_path, result_set(GOOD[:1], repetitions=3))
    else:
        first, one, *_, last = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(first + one + b"{}\n" * 20 + last)
    record = load(tmp_path)
    assert record.result_set.lacking == 2
    assert "2 of its 3 runs" in record.warnings[-1]


def test_the_last_of_two_attempts_has_the_higher_number(tmp_path: Path) -> None:
    results = [run_result(9e6, attempt=2), run_result(5e6, attempt=1)]
    assert load(stored(tmp_path, result_set(results))).result_set.results == (results[0],)
