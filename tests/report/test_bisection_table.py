"""What a bisection has found, as a table and in words."""

import pytest

from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet
from quicsat.report.bisection_table import LONGEST_TITLE, Named, answer_in_words, bisection_table
from quicsat.report.table import Table, Unit
from quicsat.statistics.bisection import Bisected
from tests.statistics.test_bisection import TESTED, Behaviour, Builds, noise, server_loses

HOSTILE = "\x1b[31mHalve\x07 the window" + " of all" * 20


def named(count: int) -> list[Named]:
    return [Named(f"v{place}", "2026-11-29", HOSTILE, "error: broken") for place in range(count + 1)]


def found_of(builds: Builds) -> tuple[Bisected, Table, str]:
    found = builds.search()
    results: dict[int, ResultSet] = {
        each.place: made for each in found.judged if (made := builds(each.place, found.look)) is not None
    }
    names = named(builds.count)
    return found, bisection_table(found, names, results), answer_in_words(found, names)


def test_a_row_per_build_with_its_change_from_the_first() -> None:
    found, table, answer = found_of(Builds(8, server_loses(0.3, 6), broken=(3,)))
    assert [row[0] for row in table.rows] == [f"v{each.place}" for each in found.judged]
    assert table.columns[1].unit is Unit.RATE
    changes = {row[0]: row[2] for row in table.rows}
    assert changes["v0"] is None
    assert changes["v6"] == pytest.approx(-0.3, abs=0.01)
    assert "It came with v6 (2026-11-29," in answer
    assert "-30." in answer or "-29." in answer


def test_what_others_wrote_is_made_printable_and_cut() -> None:
    _, table, answer = found_of(Builds(2, server_loses(0.3, 1)))
    assert {len(str(row[5])) for row in table.rows} <= {*range(20, LONGEST_TITLE + 1)}
    assert all(text.isprintable() for row in table.rows for text in map(str, row))
    assert answer.isprintable()


def test_skipped_builds_are_named_with_their_reason() -> None:
    _, table, answer = found_of(Builds(8, server_loses(0.3, 5), broken=(4, 5)))
    assert len([note for note in table.notes if "error: broken" in note]) == 2
    assert "one of v4 to v6" in answer
    assert "2 builds" in answer


def test_a_step_that_is_not_all_of_the_change_says_so() -> None:
    def behaviour(place: int, server: str, client: str, member: int) -> float:
        return 8 * (0.7 if server == TESTED and place >= 5 else 1.0) * 0.995**place * noise(place, server, member)

    answer = found_of(Builds(8, behaviour))[2]
    assert "% of the change" in answer


@pytest.mark.parametrize(("behaviour", "words"), [
    (lambda *_: 8.0, "to the bit"),
    (server_loses(0.0, 1, size=0.01), "80 % power"),
    (lambda at, server, *_: Outcome.UNSUPPORTED if server == TESTED and at > 2 else 8.0, "succeeded → unsupported"),
    (lambda place, _server, _client, member: Outcome.FAILED if place > 2 or (place and member % 2) else 8.0, "v2 "),
])  # fmt: skip
def test_other_answers(behaviour: Behaviour, words: str) -> None:
    assert words in found_of(Builds(4, behaviour))[2]


def test_the_success_of_a_flaky_end_is_counted() -> None:
    def behaviour(place: int, _server: str, _client: str, member: int) -> float | Outcome:
        return Outcome.FAILED if place > 2 and member % 3 else 8.0

    _, table, answer = found_of(Builds(4, behaviour))
    assert "succeeded → 2 of 6 runs succeeded" in answer
    assert {row[0]: row[2] for row in table.rows}["v4"] == pytest.approx(-2 / 3)
