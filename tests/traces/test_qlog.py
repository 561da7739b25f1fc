"""Dialects of qlog, and what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interop.traces import qlog

WINDOW = {"congestion_window": 12000}


def written(path: Path, content: bytes | str | dict[str, Any]) -> Path:
    text = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


SEQUENCE = (
    '{"qlog_format": "JSON-SEQ", "trace": {}}',
    '{"time": 250, "name": "recovery:metrics_updated", "data": {"congestion_window": 12000}}',
)


@pytest.mark.parametrize(
    "content",
    [
        {"traces": [{"events": [{"time": 250, "name": "recovery:metrics_updated", "data": WINDOW}]}]},
        {
            "traces": [
                {
                    "configuration": {"time_units": "us"},
                    "event_fields": ["relative_time", "category", "event", "data"],
                    "events": [[250000, "recovery", "metrics_updated", WINDOW]],
                }
            ]
        },
        "".join(f"\x1e{record}\n" for record in SEQUENCE),
        "\n".join(SEQUENCE),
        "".join(f"\x1e{record}\n" for record in SEQUENCE) + '\x1e{"time": 260, "name": "recov',
    ],
    ids=["json", "event-fields", "sequence", "lines", "cut"],
)
def test_dialects(tmp_path: Path, content: str | dict[str, Any]) -> None:
    assert qlog.read(written(tmp_path / "a.qlog", content)) == (
        qlog.QlogEvent(0.25, "recovery:metrics_updated", WINDOW),
    )  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        b"\xff\xfe",
        {"traces": 3},
        {"traces": [{"events": "x"}]},
        {"traces": [3, {"events": [3, [1], {"name": 5, "data": 3}]}]},
        {"traces": [{"events": [{"name": "loglevel:warning", "time": 1}]}]},
        {"traces": [{"event_fields": 3, "events": [[1, 2]], "configuration": 4}]},
        SEQUENCE[0],
        "\x1e[1]\n\x1e[2]\n",
    ],
)
def test_what_holds_no_event_of_quic(tmp_path: Path, content: bytes | str | dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"a\.qlog holds no event of QUIC"):
        qlog.read(written(tmp_path / "a.qlog", content))


def test_a_qlog_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qlog, "LIMIT", 10)
    with pytest.raises(ValueError, match="larger than"):
        qlog.read(written(tmp_path / "a.qlog", "\n".join(SEQUENCE)))
