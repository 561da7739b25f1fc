"""Tables: exact on small results, and harmless whatever names and reasons contain."""

from dataclasses import replace
from textwrap import dedent

import pytest

from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.family import Family, SweptValue
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.run import Run
from quicsat.model.text import printable
from quicsat.plan.make_plan import make_plan
from quicsat.report import inventory_lists
from quicsat.report.terminal_tables import failures, matrix, overhead, plan, plan_summary
from tests.results_builder import SAT, SATLOSS, implementation, result_set, run_result, runs, virtual_only

ATTACK = "\x1b]0;title\x07\x1b[31mred\x1b[0m\x9b2Jx\u202etxt\r\n\x00| <b>"


def several(outcome: Outcome, repetitions: list[int], server: str, client: str, reason: str = "") -> list[RunResult]:
    """Repetitions of one pair that ended alike."""
    return [
        run_result(None, server=server, client=client, outcome=outcome, repetition=repetition, reason=reason)
        for repetition in repetitions
    ]


def mixed() -> ResultSet:
    """A cell of each kind, three repetitions each."""
    results = [
        *runs(12.1e6, 12.4e6, 11.8e6, server="picoquic", client="quiche"),
        *runs(5.1e6, None, 4.9e6, server="msquic", client="quiche"),
        *runs(None, None, None, server="quic-go", client="quiche"),
        *several(Outcome.UNSUPPORTED, [1, 2, 3], "msquic", "kwik"),
        run_result(3.456e6, server="picoquic", client="kwik"),
        *several(Outcome.FAILED, [1, 3], "quic-go", "kwik", reason="File 1 is 1 byte short."),
        *several(Outcome.ERROR, [2], "quic-go", "kwik", reason="The daemon did not answer."),
        *several(Outcome.FAILED, [1, 2, 3], "msquic", "xquic"),
        *several(Outcome.ERROR, [1, 2, 3], "picoquic", "xquic"),
    ]
    servers, clients = ("msquic", "picoquic", "quic-go"), ("kwik", "quiche", "xquic")
    return result_set(results, servers=servers, clients=clients, repetitions=3)


def seven_fields(text: str) -> list[list[str]]:
    """The rows of a table with seven columns."""
    rows = [[field.strip() for field in line.strip("│").split("│")] for line in text.splitlines()]
    return [row for row in rows if len(row) == 7]


LEGEND = """\
n = 3 repetitions per pair. Mean ± standard deviation of the goodput in Mbit/s and mean efficiency \
(share of 20.00 Mbit/s), of the repetitions that succeeded.
T timeout, × failed, – unsupported, ! harness error, » skipped, · not run. \
(2/3, 1 T): of 3 repetitions 2 succeeded, 1 timed out.
All servers, all clients: mean efficiency of the pairs that have one, each counted once.
≈ fragile: the standard deviation is more than 5 % of the mean."""


def test_a_matrix_with_a_cell_of_each_kind() -> None:
    assert matrix(mixed(), "sat") == (
        dedent("""\
        sat: 10 MiB over a geostationary satellite link

        ┌─────────────────┬───────────────────────────────┬────────────────────────┬─────────────────┬─────────────┐
        │ client \\ server │ msquic                        │ picoquic               │ quic-go         │ all servers │
        ├─────────────────┼───────────────────────────────┼────────────────────────┼─────────────────┼─────────────┤
        │ kwik            │ –                             │ 3.46  17 %  (1/3, 2 ·) │ (0/3, 2 ×, 1 !) │ 17 %        │
        │ quiche          │ 5.00 ± 0.14  25 %  (2/3, 1 T) │ 12.1 ± 0.3  60 %       │ T               │ 43 %        │
        │ xquic           │ ×                             │ !                      │ ·               │             │
        ├─────────────────┼───────────────────────────────┼────────────────────────┼─────────────────┼─────────────┤
        │ all clients     │ 25 %                          │ 39 %                   │                 │ 34 %        │
        └─────────────────┴───────────────────────────────┴────────────────────────┴─────────────────┴─────────────┘

        """)
        + LEGEND
    )


def test_a_matrix_in_markdown() -> None:
    text = matrix(mixed(), "sat", markdown=True, width=20, colour=True)
    heading, _, head, line, *rows = text.splitlines()[:8]
    assert heading == "### sat: 10 MiB over a geostationary satellite link"
    fields = [[field.strip() for field in row.strip("|").split("|")] for row in (head, *rows)]
    assert fields == [
        ["client \\\\ server", "msquic", "picoquic", "quic-go", "all servers"],
        ["kwik", "–", "3.46  17 %  (1/3, 2 ·)", "(0/3, 2 ×, 1 !)", "17 %"],
        ["quiche", "5.00 ± 0.14  25 %  (2/3, 1 T)", "12.1 ± 0.3  60 %", "T", "43 %"],
        ["xquic", "×", "!", "·", ""],
        ["all clients", "25 %", "39 %", "", "34 %"],
    ]
    assert set(line) == set("|:- ") and line.count("|") == 6
    assert text.endswith("\n\n" + LEGEND.replace("\n", "\n\n"))


def test_numbers_are_of_successes_only_and_a_single_one_has_no_deviation() -> None:
    results = result_set([run_result(5e6), *several(Outcome.TIMEOUT, [2, 3], "picoquic", "quiche")], repetitions=3)
    assert "│ 5.00  25 %  (1/3, 2 T) │" in matrix(results, "sat")
    assert "│ 5.00  25 % │" in matrix(result_set(runs(5e6), repetitions=1), "sat")


def test_successes_without_numbers_are_ticked() -> None:
    bare = replace(run_result(5e6), measurement=None)
    assert "│ ✓        │" in matrix(result_set([bare], repetitions=1), "sat")
    assert "│ ✓  (1/2, 1 ·) │" in matrix(result_set([bare], repetitions=2), "sat")


def test_only_the_test_case_asked_for() -> None:
    results = result_set(
        [run_result(5e6), run_result(2e6, test_case="satloss")], test_cases=(SAT, SATLOSS), repetitions=1
    )
    assert "5.00  25 %" in matrix(results, "sat") and "2.00" not in matrix(results, "sat").split("n = ")[0]
    assert "2.00  10 %" in matrix(results, "satloss")
    with pytest.raises(InputError, match=r'no test case "leo"\. Known: sat, satloss\.'):
        matrix(results, "leo")


@pytest.mark.parametrize("width", [40, 80, 119, 200])
def test_wide_matrices_are_split_by_columns(width: int) -> None:
    servers = tuple(f"server-{number}" for number in range(18))
    results = [result for server in servers for result in runs(5e6, 5.2e6, server=server)]
    text = matrix(result_set(results, servers=servers, repetitions=2), "sat", width=width)
    title, lines = text.split("\n\n")[0], text.split("\n\n", 1)[1].splitlines()
    assert " ".join(title.split()) == "sat: 10 MiB over a geostationary satellite link"
    assert max(map(len, lines)) <= width
    heads = [line for line in lines if line.startswith("│ client \\ server │")]
    shown = [field.strip() for head in heads for field in head.split("│")[2:-1]]
    assert shown == [*servers, "all servers"], "each column once, in order"
    assert sum(line.startswith("│ quiche ") for line in lines) == len(heads)
    fullest = max(len(head) for head in heads)
    assert fullest + 22 > width or len(heads) == 1, "as many columns in a block as there is room for"


def test_colour_adds_nothing_but_colour() -> None:
    drawn = [(matrix(mixed(), "sat", colour=colour), failures(mixed(), colour=colour)) for colour in (False, True)]
    for plain, coloured in zip(*drawn, strict=True):
        assert "\x1b" not in plain
        assert "\x1b[36mmsquic\x1b[0m" in coloured
        assert "\n".join(printable(line) for line in coloured.splitlines()) == plain


def test_colour_is_decided_by_the_caller_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31mT\x1b[0m" in matrix(mixed(), "sat", colour=True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in matrix(mixed(), "sat")


def test_failures_are_grouped() -> None:
    assert seven_fields(failures(mixed())) == [
        ["server", "client", "test case", "repetition", "outcome", "code", "reason"],
        ["msquic", "quiche", "sat", "2", "timeout", "timeout", ""],
        ["quic-go", "quiche", "sat", "1-3", "timeout", "timeout", ""],
        ["quic-go", "kwik", "sat", "1, 3", "failed", "file-size", "File 1 is 1 byte short."],
        ["quic-go", "kwik", "sat", "2", "error", "daemon-fault", "The daemon did not answer."],
        ["msquic", "xquic", "sat", "1-3", "failed", "file-size", ""],
        ["picoquic", "xquic", "sat", "1-3", "error", "daemon-fault", ""],
    ]
    assert failures(mixed()).endswith("\nOf 3 runs an endpoint does not know the test.")


def test_failures_that_differ_are_kept_apart_and_our_fault_is_told() -> None:
    first = run_result(None, outcome=Outcome.FAILED, code=ErrorCode.CRASHED, reason="Signal 11.")
    second = replace(first, repetition=2, verdict=replace(first.verdict, reason="Signal 6."))
    third = run_result(None, outcome=Outcome.ERROR, repetition=3)
    third = replace(third, evidence=replace(third.evidence, fault="no space left"))
    text = failures(result_set([first, second, third]))
    assert [word in text for word in ("Signal 11.", "Signal 6.", "no space left")] == [True, True, True]


def test_long_reasons_are_wrapped_to_the_width() -> None:
    results = result_set([run_result(None, reason="word " * 50)])
    text = failures(results, width=110)
    assert max(map(len, text.splitlines())) <= 110
    assert text.count("word") == 50
    assert failures(results, markdown=True, width=80).count("\n") == 2


def test_no_failures() -> None:
    assert failures(result_set(runs(5e6, 6e6))) == "All 2 runs succeeded."
    assert failures(result_set()) == "No run has a result yet."


def test_overhead_per_phase() -> None:
    phases = [{"create": 1.0, "transfer": 20.0}, {"create": 3.0, "transfer": 30.0, "remove": 0.25}, {}]
    results = [run_result(5e6, repetition=n, phases=phase) for n, phase in enumerate(phases, start=1)]
    results[2] = replace(results[2], evidence=replace(results[2].evidence, phases={}))
    assert overhead(result_set(results)) == dedent("""\
        ┌──────────────────┬──────────┬──────────┬──────┐
        │ phase            │   median │     most │ runs │
        ├──────────────────┼──────────┼──────────┼──────┤
        │ create           │    2.0 s │    3.0 s │    2 │
        │ transfer         │   25.0 s │   30.0 s │    2 │
        │ remove           │ 250.0 ms │ 250.0 ms │    1 │
        ├──────────────────┼──────────┼──────────┼──────┤
        │ all but transfer │    2.1 s │    3.2 s │    2 │
        │ total            │   27.1 s │   33.2 s │    2 │
        └──────────────────┴──────────┴──────────┴──────┘""")
    assert overhead(result_set(results[2:])) == "No run has recorded the durations of its phases."


def test_overhead_of_durations_beyond_reason() -> None:
    huge = run_result(5e6, phases={"create": 1.7e308, "remove": 1.7e308})
    assert "│ total            │" in overhead(result_set([huge]))


def test_the_plan() -> None:
    server, client = implementation("picoquic"), implementation("quiche")
    runs = [Run(server, client, case, repetition, seed=1) for repetition in (1, 2) for case in (SAT, SATLOSS)]
    assert plan(runs) == dedent("""\
        ┌───┬──────────┬────────┬───────────┬────────────┬───────────┐
        │ # │ server   │ client │ test case │ repetition │   timeout │
        ├───┼──────────┼────────┼───────────┼────────────┼───────────┤
        │ 1 │ picoquic │ quiche │ sat       │          1 │ 2 min 0 s │
        │ 2 │ picoquic │ quiche │ satloss   │          1 │ 6 min 0 s │
        │ 3 │ picoquic │ quiche │ sat       │          2 │ 2 min 0 s │
        │ 4 │ picoquic │ quiche │ satloss   │          2 │ 6 min 0 s │
        └───┴──────────┴────────┴───────────┴────────────┴───────────┘""")
    assert plan_summary(runs) == ["1 pair, 2 test cases, 4 runs; their transfers take 16 min 0 s at most."]


def test_what_was_not_fetched_over_hq_is_marked() -> None:
    results = [
        *runs(12.1e6, 12.4e6, server="picoquic", client="quiche"),
        *(replace(run, protocol=Protocol.H3) for run in runs(5.1e6, None, server="nginx", client="quiche")),
        *(replace(run, protocol=Protocol.H3) for run in runs(None, None, server="nginx", client="chrome")),
        *(replace(run, protocol=Protocol.TCP) for run in runs(9e6, 9e6, server="nginx", client="curl")),
    ]
    clients = ("quiche", "chrome", "curl")
    text = matrix(result_set(results, servers=("picoquic", "nginx"), clients=clients, repetitions=2), "sat")
    rows = {line.split()[1]: line for line in text.splitlines() if line.startswith("│")}
    assert "12.2 ± 0.2  61 % │ 5.10  26 %  (1/2, 1 T)  h3 │" in rows["quiche"]
    assert "│ T  h3 " in rows["chrome"]
    assert "│ 9.00 ± 0.00  45 %  tcp " in rows["curl"]
    assert "\nh3: fetched over HTTP/3 and QUIC; " in text
    assert "\ntcp: fetched over HTTPS and TCP; " in text


def test_the_plan_tells_protocols_where_not_all_are_hq() -> None:
    run = Run(implementation("picoquic"), implementation("quiche"), SAT, 1, 1)
    assert "protocol" not in plan([run])
    lines = plan([run, replace(run, protocol=Protocol.H3)]).splitlines()
    assert [line.split("│")[-2].strip() for line in lines if line.startswith("│")] == ["protocol", "hq", "h3"]


def test_no_table_lets_control_characters_through() -> None:
    case = replace(SAT, description=ATTACK, abbreviation=ATTACK)
    failed = run_result(None, server=ATTACK, client=ATTACK, reason=ATTACK)
    results = result_set([failed], servers=(ATTACK,), clients=(ATTACK,), test_cases=(case,))
    attacker = replace(implementation(ATTACK), build=ATTACK)
    drawn = [
        matrix(results, "sat"),
        failures(results),
        overhead(result_set([run_result(5e6, phases={ATTACK: 1.0})])),
        plan([Run(attacker, attacker, case, 1, 1)]),
        inventory_lists.lines(inventory_lists.test_cases({case.name: case}, {})),
        inventory_lists.details(inventory_lists.implementations([attacker])[inventory_lists.IMPLEMENTATIONS]),
    ]
    for table in drawn:
        assert "redxtxt" in table
        assert all(character.isprintable() for line in table.split("\n") for character in line)
    for table in (matrix(results, "sat", markdown=True), failures(results, markdown=True)):
        assert "redxtxt \\| \\<b\\>" in table


# ---- clocks ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("cost", "told"), [(3e-6, "3 µs per system call"), (0.0, "computing takes no time")])
def test_the_legend_tells_virtual_time(cost: float, told: str) -> None:
    results, line = mixed(), f"The runs used virtual time ({told})."
    virtual = replace(results, manifest=replace(results.manifest, clock=Clock.VIRTUAL, cpu_cost=cost))
    real_time, virtual_time = (matrix(each, "sat").splitlines() for each in (results, virtual))
    assert line in virtual_time
    assert [each for each in virtual_time if each != line] == real_time


def test_pairs_that_hold_in_virtual_time_only_are_marked_and_explained() -> None:
    plain, marked = (matrix(virtual_only(mixed(), *clients), "sat") for clients in ((), ("quiche", "kwik")))
    assert ("†" in plain, marked.count("†")) == (False, 3)
    assert "12.1 ± 0.3  60 %  † " in marked
    assert "3.46  17 %  (1/3, 2 ·)  † " in marked
    [note] = [line for line in marked.splitlines() if line.startswith("† ")]
    assert "docs/measurements/virtual-time.md" in note
    assert matrix(virtual_only(mixed(), "*"), "sat").count("  †") == 3
    assert "†" not in matrix(virtual_only(mixed(), "*", test_case="satloss"), "sat")


def test_families_are_counted_in_the_plan() -> None:
    members = [
        replace(SAT, name=f"lossy@loss={rate}pct", abbreviation=f"LOS@{rate}pct",
                family=Family("lossy", "LOS", (SweptValue("loss", f"{rate} %", rate / 100, "%", 0.01),)))
        for rate in (0, 5)
    ]  # fmt: skip
    listed = inventory_lists.test_cases({case.name: case for case in [SAT, *members]}, {})
    [family] = listed[inventory_lists.SWEEPS]
    assert (family.name, dict(family.details)["members"]) == ("lossy", "2: loss 0 %, 5 %")
    made = make_plan([implementation("a"), implementation("b")], [implementation("c")], [SAT, *members],
                     repetitions=3, seed=1)  # fmt: skip
    summary = plan_summary(made)
    assert "18 runs; " in summary[0]
    assert summary[1:] == ["lossy: 2 members × 2 pairs, 12 runs."]
