"""Options become a selection, or one error with all faults; a selection becomes ordered runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interop.errors import InputError
from interop.model import EmulatedLink, Implementation, Role, TestCase
from interop.names import quoted
from interop.plan import choose, is_file, make_plan, replace_images, select

BOTH = frozenset(Role)


def implementation(name: str, roles: frozenset[Role] = BOTH) -> Implementation:
    return Implementation(name, f"owner/{name}:latest", f"https://example.org/{name}", roles)


def case(name: str, abbreviation: str, repetitions: int = 2) -> TestCase:
    link = EmulatedLink("simple-p2p", 0.015, 0.015, 20e6, 20e6, 25, 25)
    return TestCase(name, abbreviation, "A test case", link, (1000,), repetitions, 60.0)


IMPLEMENTATIONS = {
    "quic-go": implementation("quic-go"),
    "picoquic": implementation("picoquic"),
    "chrome": implementation("chrome", frozenset({Role.CLIENT})),
    "nginx": implementation("nginx", frozenset({Role.SERVER})),
}
TEST_CASES = {"terrestrial": case("terrestrial", "T"), "sat": case("sat", "SAT"), "satloss": case("satloss", "SATL", 3)}


def load(path: Path, known: Mapping[str, TestCase]) -> tuple[TestCase, ...]:
    if path.name == "bad.yaml":
        raise InputError("bad.yaml:1: first.", "bad.yaml:2: second.")
    return tuple(case(f"{path.stem}{number}", f"{path.stem}{number}".upper()) for number in (1, 2))


def chosen(**options: list[str]) -> tuple[list[str], list[str], list[str]]:
    selection = choose(IMPLEMENTATIONS, TEST_CASES, load, **options)
    return (
        [server.name for server in selection.servers],
        [client.name for client in selection.clients],
        [test_case.name for test_case in selection.test_cases],
    )


def problems(**options: list[str]) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        chosen(**options)
    return caught.value.problems


# ---- selection ------------------------------------------------------------------------------


def test_without_options_all_that_fit_are_chosen() -> None:
    assert chosen() == (
        ["quic-go", "picoquic", "nginx"],
        ["quic-go", "picoquic", "chrome"],
        ["terrestrial", "sat", "satloss"],
    )


def test_lists_by_blank_and_comma_keep_the_order_asked_for() -> None:
    options = {"servers": ["picoquic,quic-go", "nginx"], "clients": ["chrome , picoquic,"], "tests": ["sat", "T"]}
    assert chosen(**options) == (["picoquic", "quic-go", "nginx"], ["chrome", "picoquic"], ["sat", "terrestrial"])


def test_names_and_abbreviations_in_any_case_and_repeats() -> None:
    options = {"servers": ["QUIC-GO,quic-go"], "clients": ["Chrome"], "tests": ["SaTl,satloss", "SATLOSS"]}
    assert chosen(**options) == (["quic-go"], ["chrome"], ["satloss"])


def test_unknown_test_case() -> None:
    assert problems(tests=["satlos"]) == (
        'No test case "satlos". Did you mean satloss? Known: terrestrial, sat, satloss.',
    )


def test_unknown_server_is_told_the_servers() -> None:
    assert problems(servers=["quicgo"]) == (
        'No server "quicgo". Did you mean quic-go? Known: quic-go, picoquic, nginx.',
    )


def test_wrong_role() -> None:
    assert problems(servers=["chrome"]) == ("chrome is only a client; it cannot be a server.",)
    assert problems(clients=["quic-go,NGINX"]) == ("nginx is only a server; it cannot be a client.",)


def test_faults_of_all_options_are_reported_at_once() -> None:
    found = problems(
        servers=["chrome,quicgo"], clients=["x"], tests=["bad.yaml", "satlos"], images=["nope=a/b", "quic-go"]
    )
    assert len(found) == 8
    assert {"bad.yaml:1: first.", "bad.yaml:2: second."} <= set(found)


@pytest.mark.parametrize("empty", ["", ",", " , "])
def test_an_option_with_nothing_in_it_does_not_mean_all(empty: str) -> None:
    found = problems(servers=[empty], clients=[empty], tests=[empty])
    assert [message.split(" was named.")[0] for message in found] == ["No server", "No client", "No test case"]


def test_words_for_several_test_cases() -> None:
    assert chosen(tests=["onlymeasurements"])[2] == ["terrestrial", "sat", "satloss"]
    [problem] = problems(tests=["onlyTests"])
    assert "there are no functional tests yet" in problem


def test_files_of_test_cases() -> None:
    assert chosen(tests=["./leo.yaml", "sat"])[2] == ["leo1", "leo2", "sat"]
    assert chosen(tests=["leo.yml,LEO2"])[2] == ["leo1", "leo2"]


@pytest.mark.parametrize(("word", "means_file"), [("a.yaml", True), ("A.YML", True), ("d/a", True), ("sat", False)])
def test_what_means_a_file(word: str, means_file: bool) -> None:
    assert is_file(word) is means_file


def test_later_files_know_the_test_cases_of_earlier_ones() -> None:
    seen: list[set[str]] = []

    def remember(path: Path, known: Mapping[str, TestCase]) -> tuple[TestCase, ...]:
        seen.append(set(known))
        return load(path, known)

    choose(IMPLEMENTATIONS, TEST_CASES, remember, tests=["a.yaml,b.yaml"])
    assert seen == [set(TEST_CASES), {*TEST_CASES, "a1", "a2"}]


def test_pairs_that_would_share_a_folder() -> None:
    known = {name: implementation(name) for name in ("a", "a_b", "b_c", "c")}
    with pytest.raises(InputError) as caught:
        choose(known, TEST_CASES, load, servers=["a,a_b"], clients=["b_c,c"])
    assert caught.value.problems == (
        "a with b_c and a_b with c would have the same folder; run them one after the other.",
    )


def test_select_works_for_any_value() -> None:
    assert select(["B", "one"], {"a": 1, "b": 2}, "number", {"one": "a"}) == ((2, 1), [])


# ---- images ---------------------------------------------------------------------------------


def test_images_are_replaced_and_marked() -> None:
    result, faults = replace_images(IMPLEMENTATIONS, ["quic-go=me/q:1,PICOQUIC=p", "nginx=host:5000/n"])
    assert faults == []
    assert result["quic-go"] == replace(IMPLEMENTATIONS["quic-go"], image="me/q:1", replaced=True)
    assert (result["picoquic"].image, result["nginx"].image) == ("p", "host:5000/n")
    assert result["chrome"] == IMPLEMENTATIONS["chrome"]


def test_a_selection_holds_the_replaced_images() -> None:
    selection = choose(IMPLEMENTATIONS, TEST_CASES, load, clients=["picoquic"], images=["picoquic=p:2"])
    assert [client.image for client in selection.clients] == ["p:2"]
    assert "p:2" in [server.image for server in selection.servers]


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("quicgo=a/b", 'No implementation "quicgo" to replace. Did you mean quic-go?'),
        ("quic-go", '"quic-go" is no replacement; write "name=image".'),
        ("quic-go=", "is no replacement"),
        ("=a/b", "is no replacement"),
        ("quic-go=A B", '"A B" is no image reference'),
        ("quic-go=a,quic-go=b", "quic-go is to be replaced by two images, a and b."),
    ],
)
def test_wrong_replacements(word: str, fault: str) -> None:
    result, [found] = replace_images(IMPLEMENTATIONS, [word])
    assert fault in found
    assert set(result) == set(IMPLEMENTATIONS)


@given(st.lists(st.text(max_size=20)), st.lists(st.text(max_size=20)), st.lists(st.text(max_size=20)))
def test_no_option_raises_anything_but_input_error(servers: list[str], tests: list[str], images: list[str]) -> None:
    def not_there(path: Path, known: Mapping[str, TestCase]) -> tuple[TestCase, ...]:
        raise InputError(f"{quoted(str(path))}: no such file.")

    try:
        choose(IMPLEMENTATIONS, TEST_CASES, not_there, servers=servers, tests=tests, images=images)
    except InputError as error:
        assert all(problem.isprintable() for problem in error.problems)


# ---- the plan -------------------------------------------------------------------------------

SERVERS = (IMPLEMENTATIONS["quic-go"], IMPLEMENTATIONS["nginx"])
CLIENTS = (IMPLEMENTATIONS["picoquic"], IMPLEMENTATIONS["chrome"])


def test_repetitions_of_all_pairs_alternate() -> None:
    plan = make_plan(SERVERS, CLIENTS, [TEST_CASES["sat"], TEST_CASES["terrestrial"]], repetitions=2, seed=1)
    assert [str(run.path) for run in plan] == [
        f"{pair}/{name}/{repetition}"
        for name in ("sat", "terrestrial")
        for repetition in (1, 2)
        for pair in ("quic-go_picoquic", "quic-go_chrome", "nginx_picoquic", "nginx_chrome")
    ]


def test_test_cases_keep_their_own_repetitions_and_timeout_unless_told_otherwise() -> None:
    cases = list(TEST_CASES.values())
    own = make_plan(SERVERS, CLIENTS, cases, seed=1)
    assert Counter(run.test_case.name for run in own) == {"terrestrial": 8, "sat": 8, "satloss": 12}
    assert {run.test_case for run in own} == set(cases)
    told = make_plan(SERVERS, CLIENTS, cases, repetitions=1, timeout=7.5, seed=1)
    assert len(told) == 12
    assert {(run.test_case.repetitions, run.test_case.timeout) for run in told} == {(1, 7.5)}


def test_all_pairs_of_a_repetition_meet_the_same_losses() -> None:
    plan = make_plan(SERVERS, CLIENTS, list(TEST_CASES.values()), seed=42)
    seeds = {(run.test_case.name, run.repetition): run.seed for run in plan}
    assert all(run.seed == seeds[run.test_case.name, run.repetition] for run in plan)
    assert len(set(seeds.values())) == len(seeds)


def test_seeds_are_the_same_tomorrow_and_on_another_machine() -> None:
    [run] = make_plan(SERVERS[:1], CLIENTS[:1], [TEST_CASES["sat"]], repetitions=1, seed=1)
    assert run.seed == 2102432703
    [other] = make_plan(SERVERS[1:], CLIENTS[1:], [TEST_CASES["sat"]], repetitions=1, seed=2)
    assert other.seed != run.seed


@given(st.integers(), st.integers(1, 20))
def test_seeds_suit_the_simulator(seed: int, repetitions: int) -> None:
    plan = make_plan(SERVERS[:1], CLIENTS[:1], [TEST_CASES["sat"]], repetitions=repetitions, seed=seed)
    assert [run.repetition for run in plan] == list(range(1, repetitions + 1))
    assert all(1 <= run.seed <= 2**31 - 1 for run in plan)


@pytest.mark.parametrize(
    ("repetitions", "timeout", "count"),
    [(0, None, 1), (10_001, None, 1), (None, 0.0, 1), (None, float("inf"), 1), (None, float("nan"), 1), (-1, -1.0, 2)],
)
def test_impossible_repetitions_and_timeouts(repetitions: int | None, timeout: float | None, count: int) -> None:
    with pytest.raises(InputError) as caught:
        make_plan(SERVERS, CLIENTS, [TEST_CASES["sat"]], repetitions=repetitions, timeout=timeout, seed=1)
    assert len(caught.value.problems) == count


def test_a_plan_that_nobody_lives_to_see_the_end_of() -> None:
    many = [implementation(f"i{number}") for number in range(11)]
    with pytest.raises(InputError, match="The plan has 1210000 runs, more than 1000000"):
        make_plan(many, many, [TEST_CASES["sat"]], repetitions=10_000, seed=1)
