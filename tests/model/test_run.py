"""The key of a run: one text for messages, paths and comparisons."""

from __future__ import annotations

from pathlib import PurePosixPath

from quicsat.model.names import folder_name, name_of_folder
from quicsat.model.run import RunKey
from quicsat.plan.stored_plan import plan_of
from tests.results_builder import result_set, run_result


def test_its_text_is_its_path() -> None:
    key = RunKey("quic-go", "picoquic:bbr", "sat", 3)
    assert str(key) == "quic-go_picoquic+bbr/sat/3"
    assert key.path == PurePosixPath("quic-go_picoquic+bbr", "sat", "3")


def test_a_folder_name_is_undone() -> None:
    for name in ("picoquic", "picoquic:bbr", "a_b"):
        assert name_of_folder(folder_name(name)) == name


def test_a_planned_run_and_its_result_have_the_same_key() -> None:
    run = plan_of(result_set().manifest)[0]
    result = run_result(server=run.server.name, client=run.client.name, repetition=run.repetition)
    assert run.key == result.key
    assert run.path == result.key.path
