"""Objectives in YAML: sizes and times, inherited or not, and one sentence per fault."""

from pathlib import Path

import pytest

from quicsat.config.loader import known_workloads, load_test_cases
from quicsat.model.emulated_link import ClientSide, ClientSideDirection, UniformLoss, loss_share
from quicsat.model.gateways import PEPS
from quicsat.model.objective import MB, Objective
from quicsat.model.test_case import with_workload
from tests.config.my_yaml import faults, read
from tests.ready import ready_test_cases

ROOT = Path(__file__).resolve().parents[2]
KNOWN = ready_test_cases()
BASE = "name: one\nabbreviation: ONE\nextends: sat\nfile size: 20 MB\n"
OWN = BASE + "objectives: {10 MB: 5 s, 2 MB: 3000 ms}\n"
NEXT = "---\nname: two\nabbreviation: TWO\nextends: one\n"
EXAMPLE = "{2 MB: 3 s, 10 MB: 5 s}"
SIZES = "B, kB, MB, GB, KiB, MiB, GiB"
TOO_LARGE = "but all files together have 20 MB; at most that is allowed."
READ = (Objective(2 * MB, 3.0), Objective(10 * MB, 5.0))


def test_the_smallest_comes_first_and_there_are_none_by_default() -> None:
    assert read(OWN)[0].objectives == READ
    assert KNOWN["sat"].objectives == ()


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("", READ),
        ("link: {loss: 1 %}\n", READ),
        ("file size: 1 MB\n", READ),  # those that are larger do not apply
        ("objectives: {1 MB: 1 s}\n", (Objective(MB, 1.0),)),
        ("objectives: none\n", ()),
        ("workload: objects\n", ()),
    ],
)
def test_they_are_inherited_with_the_files(more: str, found: tuple[Objective, ...]) -> None:
    assert read(OWN + NEXT + more)[1].objectives == found


def test_members_of_a_family_have_those_of_the_family() -> None:
    assert [case.objectives for case in read(OWN + "link: {pep: [none, A]}\n")] == [READ, READ]


def test_another_workload_has_none() -> None:
    assert with_workload(read(OWN)[0], known_workloads()["objects"]).objectives == ()


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("soon", f'objectives "soon" is neither none nor a mapping from sizes to times; write for example {EXAMPLE}.'),
        ("{}", f"objectives: has no sizes; write for example {EXAMPLE}, or none."),
        ("{2: 3 s}", f'objectives: "2" has no unit; allowed: 1 B to 10 GiB (units: {SIZES}).'),
        ("{0 MB: 3 s}", 'objectives: "0 MB" is out of range: 1 B to 10 GiB.'),
        ("{2 MB: 3}", 'objectives: 2 MB "3" has no unit; allowed: 1 ms to 24 h (units: us, ms, s, min, h).'),
        ("{2 MB: 0 s}", 'objectives: 2 MB "0 s" is out of range: 1 ms to 24 h.'),
        ("{2 MB: [3 s, 4 s]}", 'objectives: 2 MB "[3 s, 4 s]" is no duration; allowed: 1 ms to 24 h.'),
        ("{2 MB: 3 s, 2000 kB: 4 s}", 'objectives: "2000 kB" is the same size as "2 MB".'),
        ("{2 MB: 3 s, 100 MB: 20 s}", f"objectives: 100 MB in 20 s, {TOO_LARGE}"),
    ],
)
def test_faults_have_one_sentence(value: str, fault: str) -> None:
    assert faults(f"{BASE}objectives: {value}\n") == (f'my.yaml:5: "one": {fault}',)


def test_functional_tests_have_none() -> None:
    text = "name: one\nabbreviation: ONE\nextends: handshake\nobjectives: {1 kB: 1 s}\n"
    assert faults(text) == ('my.yaml:4: "one": a functional test has no objectives.',)


def test_those_of_the_paper_belong_to_its_accesses_with_loss_and_without() -> None:
    cases = load_test_cases(ROOT / "testcases/satcom/objectives.yaml", KNOWN)
    slow = (Objective(2 * MB, 3.0), Objective(10 * MB, 5.0), Objective(100 * MB, 20.0))
    fast = (Objective(2 * MB, 3.0), Objective(10 * MB, 6.0), Objective(100 * MB, 10.0))
    assert [(case.emulated.forward.rate, case.emulated.back.rate, case.objectives) for case in cases] == [
        *[(50e6, 10e6, slow)] * 2, *[(250e6, 3e6, fast)] * 2, *[(50e6, 10e6, slow)] * 5, *[(250e6, 3e6, fast)] * 5,
    ]  # fmt: skip
    assert [loss_share(case.emulated.forward.loss) for case in cases] == [0, 0.01, 0, 0.01, *[0] * 10]
    assert [case.emulated.pep for case in cases] == [*[None] * 4, *[None, *PEPS.values()] * 2]
    behind = [ClientSideDirection(0.001, loss) for loss in (None, UniformLoss(0.01))]
    assert [case.emulated.client_side for case in cases[4:]] == [
        *[ClientSide(behind[0], behind[0])] * 5, *[ClientSide(behind[1], behind[1])] * 5,
    ]  # fmt: skip
    assert [case.random_name for case in cases[4:]] == [*["satcom-50"] * 5, *["satcom-250"] * 5]
