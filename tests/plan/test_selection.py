"""Options become a selection, or one error with all faults; a selection becomes ordered runs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quicsat.model.emulated_link import (
    Blackhole,
    Corruption,
    CorruptionMode,
    Direction,
    EmulatedLink,
    Rebind,
    TimersFrom,
)
from quicsat.model.errors import InputError
from quicsat.model.family import Family, SweptValue
from quicsat.model.flow import Flow
from quicsat.model.implementation import (
    BuildArgument,
    CongestionControl,
    Implementation,
    Protocol,
    ReleaseSeries,
    Role,
    Variant,
)
from quicsat.model.names import base_name, is_implementation, is_named, name_of_folder
from quicsat.model.outcomes import Check, Rules
from quicsat.model.package import Package, Registry, release_order
from quicsat.model.run import Run
from quicsat.model.test_case import TestCase, with_workload
from quicsat.model.text import quoted
from quicsat.model.webtransport import WebTransport
from quicsat.model.workload import ObjectType, RequestOrder, Workload, WorkloadFiles
from quicsat.plan import pairs
from quicsat.plan.make_plan import make_plan
from quicsat.plan.pairs import left_out
from quicsat.plan.select_implementations import replace_images, select_images, select_implementations, without_variants
from quicsat.plan.select_names import select
from quicsat.plan.select_test_cases import is_file, select_test_cases
from quicsat.plan.selection import Selection, choose, with_webtransport

BOTH = frozenset(Role)


def implementation(name: str, roles: frozenset[Role] = BOTH) -> Implementation:
    return Implementation(name, f"owner/{name}:latest", f"https://example.org/{name}", roles)


def case(name: str, abbreviation: str, repetitions: int = 2) -> TestCase:
    link = EmulatedLink.symmetric("simple-p2p", Direction(0.015, 20e6, 25))
    return TestCase(name, abbreviation, "A test case", link, (1000,), repetitions, 60.0)


IMPLEMENTATIONS = {
    "quic-go": implementation("quic-go"),
    "picoquic": implementation("picoquic"),
    "chrome": implementation("chrome", frozenset({Role.CLIENT})),
    "nginx": implementation("nginx", frozenset({Role.SERVER})),
}
PICOQUIC = replace(
    IMPLEMENTATIONS["picoquic"],
    variants=(Variant("bbr", "-G bbr", "-G bbr", "bbr"), Variant("cubic", "-G cubic", "", "cubic")),
    congestion_control=CongestionControl("bbr", ("bbr", "cubic"), True, "a test", "2026-11-21"),
)
WITH_VARIANTS = IMPLEMENTATIONS | {"picoquic": PICOQUIC}
FUNCTIONAL = replace(case("handshake", "H"), check=Check.HANDSHAKE)
TEST_CASES = {"terrestrial": case("terrestrial", "T"), "sat": case("sat", "SAT"), "satloss": case("satloss", "SATL", 3)}


PAGE = Workload("page", RequestOrder.ORDERED, (0, 1), (ObjectType.HTML, ObjectType.IMAGE))
WORKLOADS = {
    "page": WorkloadFiles(PAGE, "PG", "a page", (2000, 1000), 0.0),
    "sizes": WorkloadFiles(Workload("sizes", RequestOrder.SEPARATE), "SZ", "two sizes", (1000, 10_000), 900.0),
    "bulk": WorkloadFiles(Workload("bulk", RequestOrder.CONCURRENT, duration=20.0), "BULK", "20 s", (), 0.0),
}


def load(path: Path, *_: object) -> tuple[TestCase, ...]:
    if path.name == "bad.yaml":
        raise InputError("bad.yaml:1: first.", "bad.yaml:2: second.")
    return tuple(case(f"{path.stem}{number}", f"{path.stem}{number}".upper()) for number in (1, 2))


def chosen(**options: Any) -> tuple[list[str], ...]:
    selection = choose(WITH_VARIANTS, TEST_CASES, load, WORKLOADS, **options)
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


def test_lists_by_blank_and_comma_keep_the_order_asked_for_in_any_case_without_repeats() -> None:
    options = {"servers": ["picoquic,quic-go", "nginx"], "clients": ["chrome , picoquic,"], "tests": ["sat", "T"]}
    assert chosen(**options) == (["picoquic", "quic-go", "nginx"], ["chrome", "picoquic"], ["sat", "terrestrial"])
    options = {"servers": ["QUIC-GO,quic-go"], "clients": ["Chrome"], "tests": ["SaTl,satloss", "SATLOSS"]}
    assert chosen(**options) == (["quic-go"], ["chrome"], ["satloss"])


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"tests": ["satlos"]}, 'No test case "satlos". Did you mean satloss? To list all: ./run.py list tests'),
        ({"tests": ["onlyTests"]}, "onlyTests selects nothing. Known: terrestrial, sat, satloss."),
        ({"tests": ["sat+pag"]}, 'No workload "pag". Did you mean page? Known: page, sizes, bulk.'),
        ({"tests": ["saat+page"]}, 'No test case "saat". Did you mean SAT? To list all: ./run.py list tests'),
        ({"tests": ["sat+"]}, "No workload was named. Known: page, sizes, bulk."),
        ({"servers": ["quicgo"]}, 'No server "quicgo". Did you mean quic-go? Known: quic-go, picoquic, nginx.'),
        ({"servers": ["chrome"]}, "chrome is only a client; it cannot be a server."),
        ({"clients": ["quic-go,NGINX"]}, "nginx is only a server; it cannot be a client."),
        ({"servers": ["picoquic:bbrr"]}, 'picoquic has no variant "bbrr". Did you mean bbr? Known: bbr, cubic.'),
        ({"servers": ["picoquic:"]}, 'picoquic has no variant "". Known: bbr, cubic.'),
        ({"servers": ["quic-go:bbr"]}, 'quic-go has no variant "bbr". Known: none.'),
        ({"servers": ["picoqic:bbr"]}, 'No server "picoqic". Did you mean picoquic? Known: quic-go, picoquic, nginx.'),
        ({"clients": ["picoquic:cubic"]}, "picoquic:cubic changes nothing in a client; name picoquic."),
        ({"images": ["quicgo=a/b"]}, 'No implementation "quicgo" to replace. Did you mean quic-go? Known: quic-go, '),
        ({"images": ["quic-go"]}, '"quic-go" is no replacement; write "name=image".'),
        ({"images": ["quic-go="]}, "is no replacement"),
        ({"images": ["=a/b"]}, "is no replacement"),
        ({"images": ["quic-go=A B"]}, '"A B" is no image reference'),
        ({"images": ["quic-go=a,quic-go=b"]}, "quic-go is to be replaced by two images, a and b."),
        ({"images": ["picoquic:bbr=a/b"]}, '"picoquic:bbr" has the image of its implementation; write "picoquic='),
    ],
)
def test_faults(options: dict[str, list[str]], fault: str) -> None:
    [problem] = problems(**options)
    assert fault in problem


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
    known = {"h": FUNCTIONAL, **TEST_CASES}
    assert select_test_cases(["ONLYTESTS"], known, load) == ((FUNCTIONAL,), [])
    assert FUNCTIONAL not in select_test_cases(["onlyMeasurements"], known, load)[0]


def test_functional_tests_are_over_hq_unless_they_are_about_http3() -> None:
    speaker = implementation("speaker")
    both = replace(speaker, protocols=(Protocol.H3,))
    cases = [FUNCTIONAL, replace(FUNCTIONAL, client_test="http3"), case("sat", "SAT")]
    assert [run.protocol for run in make_plan([both], [both], cases, repetitions=1, seed=1)] == ["hq", "h3", "h3"]


def test_upstreams_rules_change_links_and_verdicts_of_functional_tests_only() -> None:
    link = replace(
        FUNCTIONAL.emulated.with_forward(corruption=Corruption(0.3, 3)), blackhole=Blackhole(5, 2), rebind=Rebind(1, 5)
    )
    cases = [replace(FUNCTIONAL, link=link), case("sat", "SAT")]
    one = implementation("one")
    test, sat = (run.test_case for run in make_plan([one], [one], cases, repetitions=1, rules=Rules.UPSTREAM, seed=1))
    assert (test.rules, sat.rules) == (Rules.UPSTREAM, Rules.STANDARD)
    assert test.link == replace(
        link.with_forward(corruption=Corruption(0.3, 3, CorruptionMode.LOSS)),
        blackhole=Blackhole(5, 2, timers_from=TimersFrom.START),
        rebind=Rebind(1, 5, timers_from=TimersFrom.START),
    )
    assert next(run.test_case.rules for run in make_plan([one], [one], cases, seed=1)) is Rules.STANDARD


def test_files_of_test_cases() -> None:
    assert chosen(tests=["./leo.yaml", "sat"])[2] == ["leo1", "leo2", "sat"]
    assert chosen(tests=["leo.yml,LEO2"])[2] == ["leo1", "leo2"]


@pytest.mark.parametrize(("word", "means_file"), [("a.yaml", True), ("A.YML", True), ("d/a", True), ("sat", False)])
def test_what_means_a_file(word: str, means_file: bool) -> None:
    assert is_file(word) is means_file


def test_later_files_know_the_test_cases_of_earlier_ones() -> None:
    seen: list[set[str]] = []

    def remember(path: Path, known: Mapping[str, TestCase], *_: object) -> tuple[TestCase, ...]:
        seen.append(set(known))
        return load(path, known, {})

    choose(IMPLEMENTATIONS, TEST_CASES, remember, tests=["a.yaml,b.yaml"])
    assert seen == [set(TEST_CASES), {*TEST_CASES, "a1", "a2"}]


LOSSY = {
    f"lossy@loss={rate}pct": replace(
        case(f"lossy@loss={rate}pct", f"LOS@{rate}pct"),
        family=Family("lossy", "LOS", (SweptValue("loss", f"{rate} %", rate / 100, "%", 0.01),)),
    )
    for rate in (0, 5)
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["lossy"], [*LOSSY]),
        (["LOS", "sat"], [*LOSSY, "sat"]),
        (["lossy@loss=5pct"], ["lossy@loss=5pct"]),
        (["los@5PCT", "lossy"], ["lossy@loss=5pct", "lossy@loss=0pct"]),
        (["los+sizes"], [f"{name}+sizes" for name in LOSSY]),
        (["onlyMeasurements"], [*TEST_CASES]),
        ([], [*TEST_CASES]),
        (["SAT", "G"], ["sat", "geo"]),
        (["geo+sizes"], ["geo+sizes"]),
    ],
)
def test_families_and_test_cases_on_request_are_chosen_only_by_name(words: list[str], expected: list[str]) -> None:
    on_request = {"geo": case("geo", "G")}
    for found, faults in (
        select_test_cases(words, TEST_CASES | LOSSY, load, WORKLOADS, on_request),
        select_test_cases(words, TEST_CASES, load, WORKLOADS, on_request | LOSSY),
    ):
        assert ([each.name for each in found], faults) == (expected, [])


def test_names_of_own_files_take_precedence_over_test_cases_on_request() -> None:
    mine = case("geo", "G")
    on_request = {"geo": case("geo", "G2"), "other": case("other", "g")}
    found, faults = select_test_cases(["./mine.yaml", "geo"], TEST_CASES, lambda *_: (mine,), WORKLOADS, on_request)
    assert (found, faults) == ((mine,), [])
    assert select_test_cases(["./mine.yaml", "other"], TEST_CASES, lambda *_: (mine,), WORKLOADS, on_request)[1]


def test_seeds_are_those_of_the_family_or_of_another_test_case_also_with_the_same_workload() -> None:
    sat, files = TEST_CASES["sat"], WORKLOADS["page"]
    other = replace(sat, name="other", abbreviation="O", random_numbers_of="sat")
    cases = [*LOSSY.values(), sat, other, *(with_workload(case, files) for case in (sat, other))]
    runs = make_plan([IMPLEMENTATIONS["quic-go"]], [IMPLEMENTATIONS["picoquic"]], cases, seed=1)
    of_family, again, *own = ([run.seed for run in runs if run.test_case.name == case.name] for case in cases)
    assert of_family == again != own[0] == own[1] != own[2] == own[3]
    assert len({*of_family}) == 2


def test_pairs_that_would_share_a_folder() -> None:
    known = {name: implementation(name) for name in ("a", "a_b", "b_c", "c")}
    with pytest.raises(InputError, match="a with b_c and a_b with c would have the same folder"):
        choose(known, TEST_CASES, load, servers=["a,a_b"], clients=["b_c,c"])


def test_select_works_for_any_value() -> None:
    assert select(["B", "one"], {"a": 1, "b": 2}, "number", {"one": "a"}) == ((2, 1), [])


# ---- variants -------------------------------------------------------------------------------


def chosen_variants(**options: Any) -> tuple[tuple[Implementation, ...], tuple[Implementation, ...]]:
    selection = choose(WITH_VARIANTS, TEST_CASES, load, WORKLOADS, **options)
    return selection.servers, selection.clients


def test_a_variant_is_an_implementation_of_the_same_image() -> None:
    servers, clients = chosen_variants(
        servers=["picoquic:BBR,Picoquic:cubic", "picoquic:bbr"], clients=["picoquic:bbr"]
    )
    bbr, cubic = servers
    assert (bbr.name, bbr.folder, cubic.name) == ("picoquic:bbr", "picoquic+bbr", "picoquic:cubic")
    assert clients == (bbr,)
    assert (bbr.server_parameters, bbr.client_parameters, bbr.image) == ("-G bbr", "-G bbr", PICOQUIC.image)
    assert (bbr.is_variant, PICOQUIC.is_variant) == (True, False)
    assert bbr.congestion_control == PICOQUIC.congestion_control
    assert cubic.congestion_control == CongestionControl("cubic", ("bbr", "cubic"), None, "a test", "2026-11-21")


def test_a_variant_has_the_image_that_replaces_that_of_its_implementation() -> None:
    [bbr], _ = chosen_variants(servers=["picoquic:bbr"], images=["picoquic=me/p:1"])
    assert (bbr.image, bbr.replaced) == ("me/p:1", True)


def test_runs_of_variants_have_safe_folders_of_their_own() -> None:
    servers, _ = chosen_variants(servers=["picoquic,picoquic:bbr,picoquic:cubic"])
    runs = make_plan(servers, servers[:2], [TEST_CASES["sat"]], repetitions=1, seed=1)
    paths = [str(run.path) for run in runs]
    assert paths[:3] == ["picoquic_picoquic/sat/1", "picoquic_picoquic+bbr/sat/1", "picoquic+bbr_picoquic/sat/1"]
    assert len(set(paths)) == 6
    assert not any(":" in path for path in paths)


# ---- releases -------------------------------------------------------------------------------


OLD, NEW = BuildArgument("PINS", "a==1"), BuildArgument("PINS", "b==2")
RELEASED = replace(
    PICOQUIC, build="endpoints/picoquic", package=Package(Registry.CRATES, "pico"),
    releases=(ReleaseSeries("0.9.10", "endpoints/old", (OLD,)), ReleaseSeries("1.2", None, (NEW,))),
)  # fmt: skip
GO = replace(IMPLEMENTATIONS["quic-go"], package=Package(Registry.GO, "a/b"), releases=(ReleaseSeries("v0.1"),))
WITH_RELEASES = WITH_VARIANTS | {"picoquic": RELEASED, "quic-go": GO}


def chosen_release(word: str) -> Implementation:
    [found] = choose(WITH_RELEASES, TEST_CASES, load, WORKLOADS, servers=[word], images=["picoquic=me/p:1"]).servers
    return found


def test_a_release_is_an_implementation_with_an_image_of_its_own() -> None:
    found = chosen_release("Picoquic@1.2.0-RC1")
    assert (found.name, found.folder, found.release) == ("picoquic@1.2.0-rc1", "picoquic@1.2.0-rc1", "1.2.0-rc1")
    assert (found.image, found.replaced, found.is_variant, found.congestion_control) == ("", False, False, None)
    assert found.build_arguments == (OLD, BuildArgument("VERSION", "1.2.0-rc1"))
    assert found.build == "endpoints/old"
    newer = chosen_release("picoquic@1.10:bbr")
    assert (newer.name, newer.folder, newer.server_parameters) == (
        "picoquic@1.10:bbr", "picoquic@1.10+bbr", "-G bbr",
    )  # fmt: skip
    assert (newer.build, newer.build_arguments) == ("endpoints/picoquic", (NEW, BuildArgument("VERSION", "1.10")))
    assert is_implementation(newer.name)
    assert name_of_folder(newer.folder) == newer.name
    assert [base_name(name) for name in (newer.name, "picoquic:bbr", "picoquic")] == ["picoquic"] * 3
    assert all(is_named(newer.name, [name]) for name in ("picoquic", "Picoquic@1.10", newer.name))
    assert not is_named(newer.name, ["picoquic:bbr"])


def test_versions_of_go_begin_with_v() -> None:
    assert chosen_release("quic-go@0.5.1").name == chosen_release("quic-go@V0.5.1").name == "quic-go@v0.5.1"


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("nginx@1.0", "nginx: its folder builds one version only, and no other releases."),
        ("picoquic@0.9.9", "picoquic: 0.9.9 is older than 0.9.10, the oldest release that its folder builds."),
        *((f"picoquic@{version}", "is no version, which is 1 to 40 of a-z") for version in (
            "", "latest", "../1", "1/2", "1 2", "1;x", "1$(x)", "1_2", "1+2", "1~2", "1@2", "-1", "٣", "1" * 41,
        )),
        ("picoquic@1.2:x", 'picoquic@1.2 has no variant "x".'),
    ],
)  # fmt: skip
def test_a_release_that_cannot_be_meant_is_refused(word: str, fault: str) -> None:
    found, faults = select_implementations([word], WITH_RELEASES, Role.SERVER)
    assert found == () and len(faults) == 1
    assert fault in faults[0]


def test_versions_are_sorted_by_their_numbers() -> None:
    versions = ["v0.9.0", "0.10.0", "1.0.0-rc1", "1.0", "1.0.1", "1.1.0b1", "1.1"]
    assert sorted({*versions}, key=release_order) == versions
    assert release_order("1.0")[:2] == release_order("1.0.0")[:2]


def test_images_of_variants_are_those_of_their_implementation_or_release() -> None:
    chosen, _ = select_images(["picoquic:bbr", "picoquic@1.2:bbr", "picoquic@1.2"], WITH_RELEASES)
    assert [each.name for each in without_variants(chosen, WITH_RELEASES)] == ["picoquic", "picoquic@1.2"]


# ---- images ---------------------------------------------------------------------------------


def test_images_by_name() -> None:
    assert select_images([], WITH_VARIANTS) == (tuple(WITH_VARIANTS.values()), ("simulator",))
    found, others = select_images(["Simulator,chrome", "picoquic:bbr,CHROME"], WITH_VARIANTS)
    assert ([each.name for each in found], others) == (["chrome", "picoquic:bbr"], ("simulator",))
    assert select_images(["Virtual-Time"], WITH_VARIANTS) == ((), ("virtual-time",))
    with pytest.raises(InputError) as caught:
        select_images(["simulatr", "picoquic:x", "chrome"], WITH_VARIANTS)
    assert [problem.split(".")[0] for problem in caught.value.problems] == [
        'No image "simulatr"',
        'picoquic has no variant "x"',
    ]
    assert "Did you mean simulator?" in caught.value.problems[0]
    with pytest.raises(InputError, match="No image was named"):
        select_images([","], WITH_VARIANTS)


def test_images_are_replaced_and_marked() -> None:
    result, faults = replace_images(IMPLEMENTATIONS, ["quic-go=me/q:1,PICOQUIC=p", "nginx=host:5000/n"])
    assert faults == []
    assert result["quic-go"] == replace(IMPLEMENTATIONS["quic-go"], image="me/q:1", replaced=True)
    assert (result["picoquic"].image, result["nginx"].image) == ("p", "host:5000/n")
    assert result["chrome"] == IMPLEMENTATIONS["chrome"]


@given(st.lists(st.text(max_size=20)), st.lists(st.text(max_size=20)), st.lists(st.text(max_size=20)))
@example([], [], ["\x1b@=0", "\x1b:=0"])
def test_no_option_raises_anything_but_input_error(servers: list[str], tests: list[str], images: list[str]) -> None:
    def not_there(path: Path, *_: object) -> tuple[TestCase, ...]:
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


def speaking(name: str, *protocols: Protocol) -> Implementation:
    return replace(implementation(name), protocols=protocols)


HQ, H3, TCP, WEBTRANSPORT = Protocol
NGINX, CHROME = speaking("nginx", *Protocol), speaking("chrome", H3)
CURL, KWIK = speaking("curl", TCP), speaking("k", HQ)


def test_a_pair_prefers_hq_then_h3_then_tcp() -> None:
    clients = (KWIK, CHROME, CURL, speaking("both", H3, TCP))
    runs = make_plan([NGINX], clients, [TEST_CASES["sat"]], repetitions=1, seed=1)
    assert [(run.client.name, run.protocol) for run in runs] == [("k", HQ), ("chrome", H3), ("curl", TCP), ("both", H3)]
    told = [(run.endpoint_test_case.client_test, run.endpoint_test_case.server_test) for run in runs]
    assert told == [(test, test) for test in ("transfer", "http3", "tcp", "http3")]
    assert {run.test_case for run in runs} == {replace(TEST_CASES["sat"], repetitions=1)}


def test_pairs_without_a_protocol_in_common_are_left_out_and_told() -> None:
    servers, clients = (NGINX, KWIK, speaking("other", HQ)), (KWIK, CHROME, CURL)
    runs = make_plan(servers, clients, [TEST_CASES["sat"]], repetitions=1, seed=1)
    pairs = [(run.server.name, run.client.name) for run in runs]
    assert pairs == [("nginx", "k"), ("nginx", "chrome"), ("nginx", "curl"), ("k", "k"), ("other", "k")]
    told = "left out, no protocol in common: chrome with k, other; curl with k, other"
    assert left_out(servers, clients) == told
    assert left_out([NGINX], clients) == ""
    with pytest.raises(InputError, match=r"^Nothing to run: left out, no protocol in common: chrome with k\.$"):
        make_plan([KWIK], [CHROME], [TEST_CASES["sat"]], seed=1)


def test_a_test_case_may_ask_for_a_protocol_or_for_something_else() -> None:
    http3 = replace(TEST_CASES["sat"], client_test="http3", server_test="http3", repetitions=1)
    handshake = replace(TEST_CASES["terrestrial"], client_test="handshake", repetitions=1)
    first, second, third = make_plan([NGINX], [speaking("c", HQ, H3)], [http3, handshake], seed=1) + make_plan(
        [NGINX], [CHROME], [handshake], seed=1
    )
    assert (first.protocol, first.endpoint_test_case) == (H3, http3)
    assert (second.protocol, second.endpoint_test_case) == (HQ, handshake)
    assert (third.endpoint_test_case.client_test, third.endpoint_test_case.server_test) == ("handshake", "http3")


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


# ---- workloads ------------------------------------------------------------------------------


def combined(*words: str) -> tuple[TestCase, ...]:
    found, problems = select_test_cases(words, TEST_CASES, load, WORKLOADS)
    assert problems == []
    return found


def test_each_workload_combines_with_each_link() -> None:
    names = [f"{case}+{workload}" for case in TEST_CASES for workload in WORKLOADS]
    assert [case.name for case in combined(*names)] == names
    page, plain = combined("SAT+pg,sat+page", "sat")
    assert (page.name, page.abbreviation, page.link) == ("sat+page", "SAT-PG", plain.link)
    assert page.file_sizes == (2000, 1000)


def test_a_workload_chooses_the_test_that_endpoints_see() -> None:
    page, sizes, bulk = combined("sat+page", "sat+sizes", "sat+bulk")
    assert [(each.client_test, each.server_test) for each in (page, sizes, bulk)] == [
        ("ordered", "transfer"), ("multiconnect", "multiconnect"), ("transfer", "transfer"),
    ]  # fmt: skip
    assert sizes.timeout == 900


def test_bulk_offers_more_than_can_arrive_and_ends_after_its_time() -> None:
    [bulk] = combined("sat+bulk")
    assert bulk.file_sizes == (20 * bulk.link.forward.rate / 8,)
    runs = make_plan([implementation("a")], [implementation("b")], [bulk], timeout=5.0, seed=1)
    assert runs[0].test_case.timeout == 20


def test_protocols_of_workloads() -> None:
    both, h3, hq = speaking("both", HQ, H3), speaking("h3", H3), speaking("hq", HQ)
    page, sizes, bulk = combined("sat+page", "sat+sizes", "sat+bulk")
    protocols = {
        (run.test_case.name, run.server.name): (run.protocol, run.endpoint_test_case.client_test)
        for run in make_plan([both, h3, hq], [both], [page, sizes, bulk], repetitions=1, seed=1)
    }
    assert protocols["sat+page", "both"] == (Protocol.H3, "ordered-http3")
    assert protocols["sat+page", "hq"] == (Protocol.HQ, "ordered")
    assert protocols["sat+bulk", "both"] == (Protocol.HQ, "transfer")
    assert protocols["sat+sizes", "h3"] == (Protocol.HQ, "multiconnect")


def test_several_files_over_tcp_come_over_http2() -> None:
    names = ("sat+page", "sat+sizes", "several", "sat+bulk", "sat")
    page, sizes, bulk = combined("sat+page", "sat+sizes", "sat+bulk")
    several = replace(TEST_CASES["sat"], name="several", file_sizes=(1000, 1000))
    cases = [page, sizes, several, bulk, TEST_CASES["sat"]]
    runs = make_plan([speaking("server", TCP)], [CURL], cases, repetitions=1, seed=1)
    assert {run.protocol for run in runs} == {TCP}
    told = {run.test_case.name: run.endpoint_test_case.client_test for run in runs}
    tests = ("ordered-http2", "multiconnect-http2", "http2", "tcp", "tcp")
    assert told == dict(zip(names, tests, strict=True))
    assert {run.endpoint_test_case.server_test for run in runs} == {"tcp"}


def test_visits_over_tcp_come_over_http2_if_the_pair_has_nothing_else() -> None:
    case = replace(
        TEST_CASES["sat"], name="r", client_test="resumption", server_test="resumption", check=Check.RESUMPTION
    )
    cases = [case, replace(case, name="z", client_test="zerortt", server_test="zerortt", check=Check.ZERO_RTT)]
    runs = make_plan([speaking("server", TCP)], [CURL], cases, repetitions=1, seed=1)
    told = {(run.protocol, run.endpoint_test_case.client_test, run.endpoint_test_case.server_test) for run in runs}
    assert told == {(TCP, "resumption-http2", "resumption-http2"), (Protocol.HQ, "zerortt", "zerortt")}
    both = speaking("server", Protocol.HQ, TCP), speaking("client", Protocol.HQ, TCP)
    (run,) = make_plan([both[0]], [both[1]], [case], repetitions=1, seed=1)
    assert (run.protocol, run.endpoint_test_case.client_test) == (Protocol.HQ, "resumption")


def test_a_functional_test_has_no_workload() -> None:
    known = {"retry": replace(TEST_CASES["sat"], name="retry", check=Check.RETRY)}
    found, problems = select_test_cases(["retry+page"], known, load, WORKLOADS)
    assert found == ()
    assert problems == ["retry+page is impossible: retry is a functional test, whose files are part of it."]


# ---- further flows --------------------------------------------------------------------------


def with_others(*flows: tuple[Flow, ...], **options: Any) -> tuple[Selection, tuple[Run, ...]]:
    selection = choose(IMPLEMENTATIONS, TEST_CASES, load, WORKLOADS, flows=flows, tests=["sat"], **options)
    ends = selection.servers, selection.clients, selection.test_cases
    return selection, make_plan(*ends, repetitions=1, seed=1, others=selection.others)


def test_each_set_of_flows_is_a_test_case_of_its_own_with_the_same_losses() -> None:
    sets = (Flow(),), (Flow("nginx", "chrome", 1.5), Flow())
    selection, runs = with_others(*sets, servers=["quic-go"], clients=["picoquic"])
    assert [case.name for case in selection.test_cases] == ["sat~same", "sat~nginx_chrome_1.5s~same"]
    assert [each.name for each in selection.others] == ["nginx", "chrome"]
    pairs = [[(flow.server.name, flow.client.name) for flow in (run, *run.others)] for run in runs]
    first = ("quic-go", "picoquic")
    assert pairs == [[first, first], [first, ("nginx", "chrome"), first]]
    [alone] = make_plan(selection.servers, selection.clients, [TEST_CASES["sat"]], repetitions=1, seed=1)
    assert {run.seed for run in runs} == {alone.seed}
    assert {end.name for end, _ in runs[1].ends} == {"quic-go", "picoquic", "nginx", "chrome"}


@pytest.mark.parametrize(
    ("flow", "fault"),
    [
        (Flow("nginy", "chrome"), r'No server "nginy"\. Did you mean nginx\?'),
        (Flow("chrome", "nginx"), "chrome is only a client; it cannot be a server"),
    ],
)
def test_flows_of_unknown_implementations(flow: Flow, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        with_others((flow,), servers=["quic-go"], clients=["picoquic"])


def test_a_flow_whose_pair_has_no_protocol_in_common() -> None:
    known = {each.name: each for each in (NGINX, KWIK, CURL)}
    with pytest.raises(InputError, match="The flow k/curl is impossible"):
        choose(known, TEST_CASES, load, tests=["sat"], clients=["k"], flows=[(Flow("k", "curl"),)])


def test_functional_tests_have_one_flow() -> None:
    with pytest.raises(InputError, match="has one flow"):
        choose(IMPLEMENTATIONS, {"handshake": FUNCTIONAL}, load, tests=["handshake"], flows=[(Flow(),)])


# ---- WebTransport ---------------------------------------------------------------------------

SESSION = replace(FUNCTIONAL, name="webtransport-handshake", abbreviation="WT", webtransport=WebTransport.HANDSHAKE)
RECEIVING = replace(SESSION, name="transfer-datagram-receive", abbreviation="DR", webtransport=WebTransport.RECEIVE)
BOTH_KINDS = {"handshake": FUNCTIONAL, SESSION.name: SESSION, RECEIVING.name: RECEIVING, "sat": TEST_CASES["sat"]}


def test_tests_of_webtransport_run_only_on_request() -> None:
    assert select_test_cases((), BOTH_KINDS, load)[0] == (FUNCTIONAL, TEST_CASES["sat"])
    assert select_test_cases(("onlyTests",), BOTH_KINDS, load)[0] == (FUNCTIONAL,)
    assert select_test_cases(("DR",), BOTH_KINDS, load)[0] == (RECEIVING,)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), [SESSION.name, RECEIVING.name]),
        (("onlyTests",), [SESSION.name, RECEIVING.name]),
        (("Handshake,DR",), ["webtransport-Handshake", "DR"]),
        (("sat",), ["sat"]),
    ],
)
def test_the_protocol_webtransport_selects_what_has_it(names: tuple[str, ...], expected: list[str]) -> None:
    known = {"a": speaking("a", H3, WEBTRANSPORT), "b": speaking("b", HQ)}
    able, cases, words = with_webtransport(known, BOTH_KINDS, names)
    assert (set(cases), words) == ({SESSION.name, RECEIVING.name}, expected)
    assert [each.name for each in select_implementations((), able, Role.SERVER)[0]] == ["a"]


def test_an_implementation_without_webtransport_has_no_role_in_its_tests() -> None:
    known = {"a": speaking("a", H3, WEBTRANSPORT), "b": speaking("b", HQ)}
    able = with_webtransport(known, BOTH_KINDS, ())[0]
    problems = ["b has no role in WebTransport tests. Implementations that have one: a."]
    assert select_implementations(("b",), able, Role.SERVER) == ((), problems)
    assert replace_images(able, ["b=me/b:1"])[1] == []


def test_pairs_for_webtransport_and_for_transfers_are_told_apart() -> None:
    session, both, plain = speaking("s", WEBTRANSPORT), speaking("b", HQ, WEBTRANSPORT), speaking("p", HQ)
    runs = make_plan([both, plain], [session, both, plain], [RECEIVING, TEST_CASES["sat"]], repetitions=1, seed=1)
    found = [(run.test_case.name, run.server.name, run.client.name, run.protocol) for run in runs]
    assert found == [
        *((RECEIVING.name, "b", client, WEBTRANSPORT) for client in "sb"),
        *(("sat", server, client, HQ) for server in "bp" for client in "bp"),
    ]
    assert runs[0].endpoint_test_case == runs[0].test_case
    assert left_out([both], [session], [RECEIVING]) == ""
    assert left_out([both], [session]) == "left out, no protocol in common: s with b"
    assert left_out([both], [plain], [RECEIVING]) == "left out, no protocol in common: p with b"


def test_many_pairs_that_are_left_out_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "MOST_LISTED", 1)
    hq, h3 = (replace(implementation(name), protocols=(protocol,)) for name, protocol in
              (("a", Protocol.HQ), ("b", Protocol.H3)))  # fmt: skip
    assert pairs.left_out([hq, h3], [hq, h3]) == "left out, no protocol in common: 2 pairs"
    assert pairs.left_out([hq], [h3]) == "left out, no protocol in common: b with a"
