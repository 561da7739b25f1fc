"""The key of a run: one text for messages, paths and comparisons; the link that it has with a perturbation."""

from dataclasses import replace
from pathlib import PurePosixPath

from quicsat.model.names import folder_name, name_of_folder
from quicsat.model.perturbation import NOMINAL, Perturbation
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


def test_all_flows_have_the_link_of_the_perturbation() -> None:
    alone = plan_of(result_set().manifest)[0]
    run = replace(alone, others=(alone,))
    link, by = run.test_case.emulated, Perturbation(delay=1.5, rate=0.5, start=1.0)
    found = run.under(by)
    assert [each.test_case.emulated for each in (found, *found.others)] == [link.scaled(1.5, 0.5)] * 2
    assert (found.key, found.seed, run.under(NOMINAL)) == (run.key, run.seed, run)
