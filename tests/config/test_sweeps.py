"""Lists of values in a test case make a family: its members, their names, and one sentence per fault."""

from itertools import product
from pathlib import Path

import pytest

from quicsat.config.loader import load_test_cases
from quicsat.model.emulated_link import Queue, UniformLoss, loss_share
from quicsat.model.family import Family, SweptValue
from quicsat.model.names import is_test_case
from quicsat.model.objective import MB
from tests.config.my_yaml import faults, read
from tests.ready import ready_test_cases

ROOT = Path(__file__).resolve().parents[2]
KNOWN = ready_test_cases()
MANY = list(range(1, 31))
LOSSY = "name: lossy\nabbreviation: LOS\nextends: sat\n"


@pytest.mark.parametrize(
    "line",
    [
        "link: {loss: [0, 0.1, 1.5] %}",
        "link: {loss: [0 %, 0.1 %, 1.5 %], delay: 300 ms}",
        "link:\n  loss: [ 0,0.1 , 1.5 ] %  # shares\n  delay: 300 ms",
        "link:\n  loss:\n    - 0 %\n    - 0.1 %\n    - 1.5 %",
    ],
)
def test_a_list_makes_a_member_for_each_value(line: str) -> None:
    found = read(LOSSY + line)
    assert [case.name for case in found] == ["lossy@loss=0pct", "lossy@loss=0.1pct", "lossy@loss=1.5pct"]
    assert [case.abbreviation for case in found] == ["LOS@0pct", "LOS@0.1pct", "LOS@1.5pct"]
    assert [case.emulated.forward.loss for case in found] == [None, UniformLoss(0.001), UniformLoss(0.015)]
    assert [case.description for case in found] == [KNOWN["sat"].description] * 3
    assert found[1].family == Family("lossy", "LOS", (SweptValue("loss", "0.1 %", 0.001, "%", 0.01),))
    assert all(is_test_case(case.name) for case in found)


def test_lists_of_two_keys_make_a_grid() -> None:
    found = read(LOSSY + "link: {delay: [15 ms, 300 ms], forward loss: [0, 5] %}")
    assert [case.name for case in found] == [
        "lossy@delay=15ms@forward-loss=0pct",
        "lossy@delay=15ms@forward-loss=5pct",
        "lossy@delay=300ms@forward-loss=0pct",
        "lossy@delay=300ms@forward-loss=5pct",
    ]
    assert [(case.emulated.back.delay, case.emulated.forward.loss) for case in found] == [
        (0.015, None), (0.015, UniformLoss(0.05)), (0.3, None), (0.3, UniformLoss(0.05)),
    ]  # fmt: skip
    assert [case.family.words for case in found if case.family][2] == "delay 300 ms, forward loss 0 %"


def test_files_words_and_keys_within_keys() -> None:
    found = read(
        LOSSY + "link: {queue: {discipline: [codel, pie], limit: [50, 100] packets}}\nfile size: [1 KiB, 2 MB]"
    )
    assert len(found) == 8
    last = found[-1]
    assert last.name == "lossy@queue-discipline=pie@queue-limit=100packets@file-size=2mb"
    assert isinstance(last.emulated.forward.queue, Queue)
    assert (last.emulated.forward.queue.discipline, last.emulated.forward.queue.limit) == ("pie", 100)
    assert last.file_sizes == (2_000_000,)
    assert last.family.values[0] == SweptValue("queue discipline", "pie")
    assert last.family.values[2] == SweptValue("file size", "2 MB", 2e6, "MB", 1e6)


def test_lists_that_are_values_make_no_family() -> None:
    found = read(LOSSY + "link: {scenario: droplist, drops: [2, 3]}\nfile sizes: [1 KiB, 2 KiB]")
    assert [(case.name, case.family, case.file_sizes) for case in found] == [("lossy", None, (1024, 2048))]
    profile = "link: {return drops: [2, 3], scenario: droplist, profile: {leo: {rate: [50 Mbit/s, 90 Mbit/s]}}}"
    assert [case.name for case in read(LOSSY + profile)] == ["lossy"]


def test_members_are_extended_and_families_are_not() -> None:
    family = LOSSY + "link: {loss: [0, 1] %}\n---\n"
    found = read(family + "name: mine\nabbreviation: MINE\nextends: lossy@loss=1pct\nlink: {delay: 1 ms}")
    mine = found[-1]
    assert (mine.name, mine.family, mine.emulated.forward.loss) == ("mine", None, UniformLoss(0.01))
    assert faults(family + "name: mine\nabbreviation: MINE\nextends: lossy") == (
        'my.yaml:8: "mine": lossy is a family; extend a member of it, like lossy@loss=0pct.',
    )


def test_a_member_may_stand_before_its_family() -> None:
    mine = "name: mine\nabbreviation: MINE\nextends: lossy@loss=1pct\n---\n"
    assert read(mine + LOSSY + "link: {loss: [0, 1] %}")[0].emulated.forward.loss == UniformLoss(0.01)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("link: {loss: [1 %, 1.0 %]}", 'loss lists the same value twice, "1 %" and "1.0 %".'),
        ("link: {delay: [1 s, 1000 ms]}", 'delay lists the same value twice, "1 s" and "1000 ms".'),
        ("link: {pep: [A, A]}", 'pep lists the same value twice, "A" and "A".'),
        ("link: {loss: [1 %, 101 %]}", 'loss "101 %" is out of range: 0 % to 100 %.'),
        ("link: {loss: [1, 2] ms}", 'loss "2 ms" has the unknown unit "ms"; units: %; allowed: 0 % to 100 %.'),
        ("link: {delay: [{a: b}, 2 ms]}", 'delay "[{a: b}, 2 ms]" is no duration; allowed: 0 s to 60 s.'),
        ("description: [a, b]", 'description "[a, b]" must be a single value.'),
        (f"link: {{delay: {MANY} ms, queue: {MANY}}}", "its lists make 900 members; at most 500 are allowed."),
        ("link: {client host: a, server host: b, round trip: 1 s, rate: [1 Mbit/s, 2 Mbit/s]}",
         "a real link has no lists of values; only an emulated link can be swept."),
    ],
)  # fmt: skip
def test_faults(line: str, fault: str) -> None:
    assert any(problem.endswith(fault) for problem in faults(LOSSY + line))


def test_names_of_members_are_safe() -> None:
    assert is_test_case("lossy@loss=0.1pct@delay=15ms")
    for wrong in ("lossy@", "lossy@loss", "lossy@loss=", "lossy@=1", "lossy@loss=1%", "lossy@loss=../x/", "@loss=1",
                  "lossy@a=" + "1" * 130):  # fmt: skip
        assert not is_test_case(wrong)


def test_the_losses_of_the_satcom_paper() -> None:
    cases = load_test_cases(ROOT / "testcases/satcom/loss.yaml", KNOWN)
    bursts = {case.name: case.emulated.forward.loss for case in cases[:2]}
    assert {name: round(loss_share(loss), 3) for name, loss in bursts.items()} == {
        "satcom-wired": 0.018,
        "satcom-wifi": 0.027,
    }
    found = sorted((case.total_size // MB, loss_share(case.emulated.forward.loss)) for case in cases[2:])
    assert {(case.emulated.forward.rate, case.emulated.back.rate) for case in cases[2:]} == {(10e6, 10e6)}
    losses = (0, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.02, 0.05)
    assert found == [*product((2, 10, 100), losses), *product([1000], losses[:5])]
