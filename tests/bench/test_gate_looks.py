"""The simulation of gate: a gate of each world is judged."""

import pytest

from bench.gate_looks import WORLDS, main


def test_a_gate_of_each_world_is_judged(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["gate_looks", "--gates", "1"])
    main()
    _, *rows = capsys.readouterr().out.splitlines()
    found = {world.name: row for world in WORLDS for row in rows if row.startswith(f"{world.name} ")}
    assert list(found) == [world.name for world in WORLDS]
    assert [found[name].split()[-3:-1] for name in ("equal builds, calm", "server -2 %, calm")] == [
        ["0.0%", "100.0%"], ["0.0%", "0.0%"],
    ]  # fmt: skip
