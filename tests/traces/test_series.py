"""Series come back from their file as they were, and rates are those of pencil and paper."""

import math
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quicsat.model.bounds import bounded_memory
from quicsat.model.implementation import Protocol
from quicsat.traces import series as module
from quicsat.traces.clock_offset import ClockOffset
from quicsat.traces.series import (
    Packets,
    Requests,
    Samples,
    Series,
    SeriesError,
    StreamData,
    load,
    of_connection,
    save,
    window_rate,
)
from tests.series_builder import Transfer, series


def loaded(directory: Path) -> Series:
    found = load(directory)
    assert found is not None
    return found


def same(one: Series, other: Series) -> None:
    assert (one.protocol, one.clock) == (other.protocol, other.clock)
    for name in module.TABLES:
        for column in fields(module.TABLES[name]):  # type: ignore[arg-type]
            first, second = (getattr(getattr(each, name), column.name) for each in (one, other))
            assert first.dtype == second.dtype, f"{name}.{column.name}"
            np.testing.assert_allclose(first, second, atol=0.5e-6, err_msg=f"{name}.{column.name}")


EMPTY = Series(
    Protocol.HQ, ClockOffset(0.0, float("inf")), StreamData.of(), StreamData.of(), Packets.of(), Packets.of(),
    Samples.of(), Samples.of(), Samples.of(), Requests.of(), Samples.of(),
)  # fmt: skip


@pytest.mark.parametrize("made", [series(), series(Transfer(lost=[3, 7], protocol=Protocol.TCP)), EMPTY])
@pytest.mark.parametrize("name", ["run", os.fsdecode(b"run\xe9")])
def test_what_is_saved_is_loaded(tmp_path: Path, made: Series, name: str) -> None:
    """Also in a directory whose name is not UTF-8."""
    directory = tmp_path / name
    directory.mkdir()
    assert save(made, directory) == directory / "series.parquet"
    same(made, loaded(directory))
    assert [path.name for path in directory.iterdir()] == ["series.parquet"]


def test_a_file_of_an_earlier_release_has_one_connection(tmp_path: Path) -> None:
    made = series(Transfer(lost=[3]))
    path = save(made, tmp_path)
    table = pq.read_table(path)
    assert "connection" in table.column_names
    pq.write_table(table.drop_columns(["connection"]), path)
    same(made, loaded(tmp_path))


def test_events_of_one_connection() -> None:
    made = series(Transfer(size=10_000))
    forward, second = made.forward, np.arange(len(made.forward)) >= 6
    made = replace(made, forward=replace(forward, connection=second.astype(np.int64)))
    shown = of_connection(made, 1)
    assert shown.forward.number.tolist() == [6, 7, 8, 9]
    assert len(shown.sent) == len(shown.back) == 0
    first, last = float(shown.forward.sent[0]), float(shown.forward.arrived[-1])
    assert first <= shown.in_flight.time.min() <= shown.in_flight.time.max() <= last
    assert len(of_connection(made, 7).in_flight) == 0


def test_no_file_and_files_that_cannot_be_used(tmp_path: Path) -> None:
    assert load(tmp_path) is None
    path = save(series(), tmp_path)
    whole = path.read_bytes()
    for damaged in (b"", b"PAR1", whole[: len(whole) // 2], bytes(100) + whole[100:]):
        path.write_bytes(damaged)
        with pytest.raises(SeriesError, match="analyse the run again"):
            load(tmp_path)


def test_a_file_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "VERSION", 0)
    save(series(), tmp_path)
    monkeypatch.undo()
    with pytest.raises(SeriesError, match="version 0, not 1"):
        load(tmp_path)


def test_a_10_mib_run_takes_little_space(tmp_path: Path) -> None:
    path = save(series(Transfer(size=10 * 2**20, rate=1.7e7, lost=range(5, 9000, 100))), tmp_path)
    assert path.stat().st_size < 400_000


def test_columns_of_one_length() -> None:
    assert Samples.of(time=[1, 2], value=[3, 4]).value.dtype == np.float64
    with pytest.raises(ValueError, match="Samples needs time, value"):
        Samples.of(time=[1])
    with pytest.raises(ValueError, match="Samples needs"):
        Samples.of(time=[1], value=[1], valeu=[1])


def test_retransmissions_are_told_by_their_bytes() -> None:
    made = StreamData.of(
        time=range(5), stream=[0] * 5, offset=[0, 0, 90, 50, 200], length=[100, 100, 110, 60, 0],
        number=range(5), new=[100, 0, 100, 0, 0], connection=[0] * 5,
    )  # fmt: skip
    assert made.retransmission.tolist() == [False, True, False, True, False]


def test_rate_in_a_sliding_window() -> None:
    times, sizes = np.array([0.05, 1.0, 0.5, np.nan]), np.array([100, 400, 200, 9999])
    rate = window_rate(times, sizes, window=0.5, step=0.5, until=1.6)
    assert rate.time.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert rate.value.tolist() == [0, 8 * 300 / 0.5, 8 * 400 / 0.5, 0, 0]
    assert window_rate(times, sizes, window=2, step=1).value.tolist() == [0, 8 * 700 / 2]
    assert window_rate(times[:0], sizes[:0]).value.tolist() == [0]


def test_rates_of_a_month_take_as_much_memory_as_those_of_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The windows remain those at multiples of the step; every third one is left."""
    monkeypatch.setattr(module, "MOST_WINDOWS", 1000)
    times, sizes = np.array([0.05, 150.0, 300.0]), np.array([100, 400, 200])
    for days in (1, 29):
        assert len(window_rate(times, sizes, until=days * 86_400.0)) <= 1001
    coarse, fine = window_rate(times, sizes), window_rate(times[:1], sizes[:1], until=99.9)
    assert np.diff(coarse.time) == pytest.approx(0.3)
    assert coarse.value[[500, -1]].tolist() == [8 * 400, 8 * 200]
    assert len(fine) == 1000


def test_the_builder_is_consistent() -> None:
    made = series(Transfer(size=10_500, lost=[2, 10]))
    assert int(made.arrived.new.sum()) == int(made.sent.new.sum()) == 10_500
    assert made.forward.lost.sum() == 2
    assert np.isnan(made.forward.arrived).tolist() == made.forward.lost.tolist()
    assert made.sent.retransmission.sum() == 2
    assert made.in_flight.value[-1] == 0
    assert np.nanmax(made.forward.delay) == pytest.approx(0.3)


def test_a_file_of_too_many_events_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(series(Transfer()), tmp_path)
    rows = pq.ParquetFile(tmp_path / module.FILE_NAME).metadata.num_rows
    monkeypatch.setattr(module, "MOST_ROWS", rows)
    assert load(tmp_path) is not None
    monkeypatch.setattr(module, "MOST_ROWS", rows - 1)
    with pytest.raises(SeriesError, match=f"{rows} events, more than the {rows - 1}"):
        load(tmp_path)


def test_columns_of_others_take_no_memory(tmp_path: Path) -> None:
    """A file of a few kilobytes with hundreds of columns that compress to nothing."""
    save(series(Transfer(size=3_000_000)), tmp_path)
    path = tmp_path / module.FILE_NAME
    table = pq.read_table(path)
    for number in range(200):
        table = table.append_column(f"x{number}", pa.array(np.zeros(len(table))))
    pq.write_table(table, path, compression="zstd")
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        loaded(tmp_path)
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 8 * 50 * len(table)


def test_a_file_that_takes_too_much_memory_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        with bounded_memory(2**20):
            np.zeros(2**27)

    save(series(Transfer()), tmp_path)
    monkeypatch.setattr(module, "_pieces", full)
    with pytest.raises(SeriesError, match="cannot be read"):
        load(tmp_path)
    assert len(np.zeros(2**27)) == 2**27  # the limit has gone


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("time", 2**62), ("time", -(2**62)), ("arrived", 2**62), ("size", -1), ("offset", 2**63 - 1),
        ("connection", 2**40), ("number", -2), ("value", math.inf), ("value", math.nan), ("value", -1.0),
        ("value", "12000"), ("size", "x"), ("length", None), ("stream", 1.5),
    ],
)  # fmt: skip
def test_numbers_that_no_run_can_have_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    path = save(series(), tmp_path)
    table = pq.ParquetFile(path).read()
    column = table.column(name).to_pylist()
    at = next(at for at, each in enumerate(column) if each is not None)
    column[at] = value
    if isinstance(value, str):
        column = [None if each is None else str(each) for each in column]
    elif isinstance(value, float):
        column = [None if each is None else float(each) for each in column]
    pq.write_table(table.set_column(table.column_names.index(name), name, pa.array(column)), path)
    with pytest.raises(SeriesError, match=name):
        load(tmp_path)


@pytest.mark.parametrize("offset", ["nan", "inf", "1e308"])
def test_clocks_that_cannot_be_brought_together_are_refused(tmp_path: Path, offset: str) -> None:
    path = save(series(), tmp_path)
    table = pq.ParquetFile(path).read()
    table = table.replace_schema_metadata({**table.schema.metadata, b"clock_offset": offset})
    pq.write_table(table, path)
    with pytest.raises(SeriesError, match="clocks"):
        load(tmp_path)
