"""A judgement as JUnit XML, as Markdown and as annotations: content, and text of images that tries to break out."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from quicsat.model.expectations import CellPattern, Expectations, KnownFailure
from quicsat.model.outcomes import Outcome
from quicsat.model.results import Measurement, ResultSet, RunResult
from quicsat.report.change_comment import LARGEST, MOST_CELLS, code, comment, prose
from quicsat.report.github import MOST_ANNOTATIONS, command, of_judgement
from quicsat.report.junit import junit
from quicsat.statistics.comparison import Conclusion
from quicsat.statistics.judgement import Judgement, judge
from tests.results_builder import result_set, run_result, runs, virtual

HOSTILE = (
    'a`` `b` | c ]]> </failure> <img src=x onerror=alert(1)> & "q" @team #1 ![p](http://x.example/p.png) '
    "\x00\x1b[31m\ufffe\ud800\u202e\n::error::x\n##[add-mask]y %0A::warning::z"
)
FAILED, SLOWER, KNOWN, ERROR, FINE, UNSUPPORTED = "f", "s", "k", "e", "p", "u"


N = 10
"""Repetitions of each cell."""


def ended(server: str, outcome: Outcome | None = None, reason: str = "") -> list[RunResult]:
    """The runs of a cell without a goodput."""
    return [run_result(None, server=server, outcome=outcome, reason=reason, repetition=n) for n in range(1, N + 1)]


def campaign(goodput: float, *more: str) -> ResultSet:
    """A pair per finding."""
    results = [
        *runs(*[goodput] * N, server=SLOWER),
        *runs(*[8e6] * N, server=FINE),
        *ended(FAILED, Outcome.FAILED, HOSTILE),
        *ended(KNOWN),
        *ended(ERROR, Outcome.ERROR, "the daemon went away"),
        *ended(UNSUPPORTED, Outcome.UNSUPPORTED),
        *(run for name in more for run in ended(name, reason=HOSTILE * 3)),
    ]
    servers = (SLOWER, FINE, FAILED, KNOWN, ERROR, UNSUPPORTED, *more)
    return virtual(result_set(results, servers=servers, repetitions=N))


def with_window(results: ResultSet, window: float, members: int = N) -> ResultSet:
    """The same, with this initial window of the slower server in the first members."""
    changed = (
        replace(run, measurement=Measurement({**run.measurement.values, "initial_window": window}))
        if run.server == SLOWER and run.measurement and run.repetition <= members
        else run
        for run in results.results
    )
    return replace(results, results=tuple(changed))


def judged(*more: str) -> tuple[ResultSet, Judgement]:
    """A campaign with one finding of each kind; in its baseline, no cell failed."""
    good = (SLOWER, FINE, FAILED, *more)
    before = result_set([run for name in good for run in runs(*[8e6] * N, server=name)], servers=good, repetitions=N)
    now = with_window(campaign(4e6, *more), 10240.0)
    expected = Expectations((KnownFailure(CellPattern((KNOWN,)), "issue | 7\x1b\x00"),))
    return now, judge(now, expected, with_window(virtual(before), 40960.0))


# ---- JUnit ------------------------------------------------------------------------------------


def test_junit_has_a_test_case_per_cell() -> None:
    root = ElementTree.fromstring(junit(*judged()))
    assert root.attrib == {"name": "quicsat", "tests": "8", "failures": "3", "errors": "2", "skipped": "2"}
    suite, _, campaign = root
    assert campaign.find("testcase/error").attrib["type"] == "undecided"
    assert suite.get("name") == "sat"
    cells = {case.get("name", "").split()[1].rstrip(","): case for case in suite}
    assert cells[FINE].find("failure") is cells[FINE].find("skipped") is None
    assert cells[FINE].find("properties/property[@name='goodput [bit/s]']").attrib["value"] == "8000000"
    slower = cells[SLOWER].find("failure")
    assert slower.get("type") == "slower than the baseline"
    assert str(slower.get("message")).startswith("The goodput changed by -50.0 % (")
    assert slower.text == "Bytes that the server sends in the first round trip: 40 KiB → 10 KiB."
    assert cells[ERROR].find("error") is not None
    known = cells[KNOWN].find("skipped")
    assert known.get("message") == "known failure. It is expected to fail: issue | 7."
    assert cells[UNSUPPORTED].find("skipped") is not None


def test_text_of_images_stays_text_in_junit() -> None:
    root = ElementTree.fromstring(junit(*judged()))
    [failure] = root.findall(".//testcase[@name='server f, client quiche']/failure")
    assert list(failure) == []
    assert failure.text is not None
    assert "</failure> <img src=x onerror=alert(1)> &" in failure.text
    assert all(sign.isprintable() for sign in failure.text)


# ---- Markdown ---------------------------------------------------------------------------------


def rendered(text: str) -> str:
    """The HTML that Markdown with tables and HTML becomes, as GitHub and GitLab render it."""
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def without_code(html: str) -> str:
    """The part in which names, addresses and tags have a meaning."""
    return re.sub(r"<code>.*?</code>", "", html, flags=re.S)


def test_the_comment_names_the_changed_cells_with_reasons() -> None:
    text = comment(*judged(), {(SLOWER, "quiche", "sat"): "offset-s_quiche-SAT.png"}, "the artifact quicsat")
    assert text.startswith("### ❌ quicsat: something is worse than expected\n")
    assert "| ❌ | `sat` | `s` | `quiche` | slower than the baseline | 8.00 Mbit/s | 4.00 Mbit/s | -50.0 % |" in text
    assert "- Bytes that the server sends in the first round trip: 40 KiB → 10 KiB." in text
    assert f"- Change of goodput in members 1-10: {', '.join(['-50.0'] * 10)} %." in text
    assert "- Time-offset diagram: `offset-s_quiche-SAT.png` in the artifact quicsat" in text
    assert "#### ❌ sat, server f, client quiche" in text
    assert "sat, server p, client quiche" not in text
    assert "virtual time (3 µs per system call), seed 1" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Goodput fell by -2.4 % (95 % interval -4.2 to -0.6 %; 6/15 members).", None),
        ("+0.57 s until 2 MB, 39.4 KiB → 19.6 KiB", "`+0.57 s until 2 MB, 39.4 KiB → 19.6 KiB`"),
        ("virtual time (perturbed by delay=1%), seed 1", "virtual time (perturbed by `delay=1%`), seed 1"),
        ("build <b>x</b> now", "build `<b>x</b>` now"),
        ("ask @team or #12 or GH-7", "ask `@team` or `#12` or `GH-7`"),
        (
            "see http://x.example or www.x.example or 1a2b3c4d",
            "see `http://x.example` or `www.x.example` or `1a2b3c4d`",
        ),
    ],
)
def test_words_are_prose_unless_markdown_or_github_takes_them_for_more(text: str, shown: str | None) -> None:
    assert prose(text) == (shown or text)


def test_a_changed_first_flight_is_told_even_if_goodput_holds() -> None:
    before = with_window(
        virtual(result_set(runs(*[8e6] * N, server=SLOWER), servers=(SLOWER,), repetitions=N)), 40960.0
    )
    judgement = judge(with_window(before, 10240.0), Expectations(), before)
    [told] = judgement.behaviour
    assert "40 KiB → 10 KiB" in told
    assert told in comment(before, judgement)
    assert judgement.conclusion is Conclusion.FINE
    assert not judge(before, Expectations(), before).behaviour


def test_behaviour_of_a_few_members_is_not_told() -> None:
    before = with_window(campaign(8e6), 40960.0)
    few = with_window(before, 1e6, N // 3)
    assert judge(few, Expectations(), before).behaviour == ()


def test_a_row_of_a_cell_that_fails_says_how_often() -> None:
    before = virtual(result_set(runs(*[8e6] * N), repetitions=N))
    now = virtual(result_set(runs(*[8.1e6] * (N // 2), *[None] * (N - N // 2)), repetitions=N))
    [row] = [line for line in comment(now, judge(now, Expectations(), before)).splitlines() if "| `sat` |" in line]
    assert [field.strip() for field in row.split("|")[6:8]] == ["8.00 Mbit/s", "8.10 Mbit/s (5/10)"]


def test_text_of_images_stays_text_in_the_comment() -> None:
    text = comment(*judged())
    assert "onerror" in text
    html = rendered(text)
    assert set(re.findall(r"<(\w+)", html)) <= {
        "h3", "h4", "p", "strong", "ul", "li", "code", "details", "summary",
        "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    assert not any(sign in without_code(html) for sign in ("onerror", "@", "#1", "![", "http", "add-mask"))
    assert {row.count("<td") for row in html.split("<tr>")[2:]} == {8}
    assert all(line.isprintable() for line in text.splitlines())
    assert not any(line.startswith("::") for line in text.splitlines())


def test_notes_are_a_list_of_their_own() -> None:
    now, found = judged()
    notes = rendered(comment(now, replace(found, notes=("one", "two"))))
    assert notes.split("<strong>Notes</strong>")[1].split("</ul>")[0].count("<li>") == 2


@pytest.mark.parametrize("text", ["`", "``x``", "a` <b>", "\x00", "a\nb", "\\"])
def test_a_code_span_cannot_be_left(text: str) -> None:
    shown = code(text)
    assert "`" not in shown[1:-1]
    assert "\n" not in shown


def test_a_campaign_without_changes() -> None:
    now = virtual(result_set(runs(8e6), repetitions=1))
    text = comment(now, judge(now, Expectations(), now))
    assert text.startswith("### ✅ quicsat: nothing is worse than expected\n\n1 passed.\n")
    assert "| test case |" not in text


def test_a_comment_is_never_larger_than_github_takes() -> None:
    text = comment(*judged(*(f"n{number}" for number in range(60))))
    assert len(text) <= LARGEST + 1000
    assert text.count("\n#### ") <= MOST_CELLS
    assert f"And {3 + 60 - MOST_CELLS} more cells." in text


# ---- all of them --------------------------------------------------------------------------------

RATES = {
    Conclusion.FINE: (8e6,) * N,
    Conclusion.UNDECIDED: (*(4e6,) * 5, *(16e6,) * 5),
    Conclusion.WORSE: (4e6,) * N,
    Conclusion.UNFINISHED: (8e6, 8e6),
    Conclusion.ERRORS: (*(8e6,) * 9, None),
}


@pytest.mark.parametrize("conclusion", sorted({*Conclusion} - {Conclusion.UNLIKE}))
def test_all_reports_say_the_same(conclusion: Conclusion) -> None:
    """None of them looks like a success where the exit status is none."""
    results = [
        run_result(rate, repetition=number, outcome=None if rate else Outcome.ERROR)
        for number, rate in enumerate(RATES[conclusion], 1)
    ]
    finished = None if conclusion is Conclusion.UNFINISHED else "2026-11-21T08:00:00Z"
    now = virtual(result_set(results, repetitions=N, finished=finished))
    found = judge(now, Expectations(), virtual(result_set(runs(*[8e6] * N), repetitions=N)))
    assert found.conclusion is conclusion
    root = ElementTree.fromstring(junit(now, found))
    bad = conclusion is Conclusion.WORSE, conclusion not in (Conclusion.WORSE, Conclusion.FINE)
    assert (root.get("failures") != "0", root.get("errors") != "0") == bad
    sign = {Conclusion.WORSE: "❌", Conclusion.FINE: "✅"}.get(conclusion, "⚠️")
    assert comment(now, found).startswith(f"### {sign} quicsat: {conclusion}\n")
    levels = {line.split(" ")[0] for line in of_judgement(found)}
    assert levels == {Conclusion.WORSE: {"::error"}, Conclusion.FINE: set()}.get(conclusion, {"::warning"})


def test_gains_and_losses_are_told_by_the_same_rule() -> None:
    """Two of five cells lose 3 and 5 % with all seeds, and the limit is 10 %."""
    sizes = {"a": 0.97, "b": 0.95, "c": 1.03, "d": 1.05, "e": 1.005}
    before, after = (
        [each for name, size in sizes.items() for each in runs(*[8e6 * (size if new else 1)] * N, server=name)]
        for new in (False, True)
    )
    one, now = (virtual(result_set(each, servers=tuple(sizes), repetitions=N)) for each in (before, after))
    found = judge(now, Expectations(regression=0.1), one)
    assert found.conclusion is Conclusion.FINE
    assert found.counts == "2 slower, within the limit, 2 faster than the baseline, 1 passed"
    text = comment(now, found)
    assert all(f"`{name}` | `quiche`" in text for name in "abcd")
    assert "`e` | `quiche`" not in text
    assert sorted(line.split("server ")[0] for line in of_judgement(found)) == ["::notice title=sat%2C "] * 4
    root = ElementTree.fromstring(junit(now, found))
    assert len(root.findall(".//system-out")) == 4


# ---- annotations ------------------------------------------------------------------------------


def test_annotations_are_one_command_each() -> None:
    lines = of_judgement(judged()[1])
    assert [line.split(" ")[0] for line in lines] == [*["::error"] * 4, *["::warning"] * 2]
    assert "no valid result in the baseline" in lines[4]
    assert lines[0].startswith("::error title=sat%2C server f%2C client quiche%3A new failure::")
    assert "%0ARepetitions 1-10: failed (file-size): " in lines[0]
    assert not any("\n" in line or "\r" in line for line in lines)
    assert lines[0].count("::") == 2 + HOSTILE.count("::")


def test_only_as_many_annotations_as_github_shows() -> None:
    lines = of_judgement(judged(*(f"n{number}" for number in range(20)))[1])
    assert sum(line.startswith("::error title=sat") for line in lines) == MOST_ANNOTATIONS


def test_a_command_escapes_its_parts() -> None:
    assert command("error", "a,b:c\n", "50 %\nx\r\ny") == "::error title=a%2Cb%3Ac::50 %25%0Ax%0Ay"
