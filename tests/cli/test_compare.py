"""``./run.py compare``: two campaigns, or two test cases of one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from quicsat.cli.exit_status import ExitStatus
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ImageFacts, ResultSet
from quicsat.results import store
from quicsat.results.store import write_result_json
from tests.cli.conftest import FAST, SLOW, CommandLine, Draws
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs, virtual


def test_compare_finds_what_got_worse(places: list[str], quicsat: CommandLine) -> None:
    out = quicsat.out("compare", *places, status=1)
    assert "one → two" in out
    assert "slower" in out
    assert "faster" in quicsat.out("compare", places[1], places[0])


def test_compare_two_links(places: list[str], quicsat: CommandLine) -> None:
    assert "-75.0" in quicsat.out("compare", places[0], "-t", "sat", "satloss", status=1)
    assert "300.0" in quicsat.out("compare", places[0], "-t", "satloss", "sat")


LINKS = ("-t", "sat", "satloss")


def over_two_links(place: Path, repetitions: int = 10, *, seed: int = 1, **changed: Any) -> str:
    """A stored campaign; over the second link, goodput is twice that over the first, and efficiency 80 % less."""
    rates = [8e6 + 1e5 * number for number in range(repetitions)]
    lossy = [
        run_result(2 * rate, test_case="satloss", repetition=number, forward_rate=200e6)
        for number, rate in enumerate(rates, 1)
    ]
    made = virtual(result_set([*runs(*rates), *lossy], test_cases=(SAT, SATLOSS), repetitions=repetitions))
    place.mkdir()
    write_result_json(place, replace(made, manifest=replace(made.manifest, seed=seed), **changed))
    return str(place)


def test_two_links_are_compared_by_efficiency_and_the_exit_status_tells_so(
    tmp_path: Path, quicsat: CommandLine
) -> None:
    place, file = over_two_links(tmp_path / "a"), tmp_path / "x.json"
    out = quicsat.out("compare", place, *LINKS, "--json", file, status=ExitStatus.FAILURE)
    assert ("-80.0" in out, "less efficient" in out, "Loss of efficiency" in out) == (True, True, True)
    assert not any(word in out for word in ("goodput", "slower", "confirm"))
    told = json.loads(file.read_text())
    assert {(each["metric"], each["change"], each["worse"]) for each in told["changes"]} == {
        ("efficiency", "slower", True)
    }
    assert "42 % → 8 %" in told["changes"][-1]["words"]
    better = quicsat.out("compare", place, "-t", "satloss", "sat")
    assert ("400.0" in better, "more efficient" in better, "Undecided" in better) == (True, True, False)


def test_what_two_links_cannot_show_is_no_success(tmp_path: Path, quicsat: CommandLine) -> None:
    few = over_two_links(tmp_path / "few", 2)
    assert "Undecided" in quicsat.out("compare", few, "-t", "satloss", "sat", status=ExitStatus.UNDECIDED)
    cut = store.load(Path(over_two_links(tmp_path / "whole"))).result_set
    kept = [each for each in cut.results if (each.test_case, each.repetition) != ("sat", 10)]
    unfinished = over_two_links(tmp_path / "cut", results=tuple(kept), finished=None)
    assert "19 of 20 runs" in quicsat.out("compare", unfinished, "-t", "satloss", "sat", status=ExitStatus.FAILURE)
    fault = run_result(None, outcome=Outcome.ERROR, repetition=10)
    faulty = over_two_links(tmp_path / "faulty", results=(*kept, fault))
    quicsat.out("compare", faulty, "-t", "satloss", "sat", status=ExitStatus.MACHINE)


def test_test_cases_of_campaigns_in_other_conditions_are_not_compared(tmp_path: Path, quicsat: CommandLine) -> None:
    places = []
    for name, case, seed in (("a", SAT, 1), ("b", SATLOSS, 1), ("c", SATLOSS, 2)):
        whole = store.load(Path(over_two_links(tmp_path / f"whole-{name}"))).result_set
        manifest = replace(whole.manifest, test_cases=(case,), seed=seed, planned_runs=10)
        (tmp_path / name).mkdir()
        write_result_json(
            tmp_path / name, replace(whole, manifest=manifest, results=tuple(whole.by_test_case[case.name]))
        )
        places.append(str(tmp_path / name))
    quicsat.out("compare", *places[:2], *LINKS, status=ExitStatus.FAILURE)
    assert "-80.0" in quicsat.out("compare", places[0], places[2], *LINKS, status=ExitStatus.USAGE)


def test_compare_draws_too(places: list[str], tmp_path: Path, quicsat: CommandLine) -> None:
    draws = Draws()
    quicsat.out("compare", *places, "--plot", tmp_path / "out", draw=draws, status=1)
    [plot_request] = draws.requests
    assert (plot_request.plots, plot_request.target) == (("comparison",), tmp_path / "out")


def test_campaigns_without_a_test_case_in_common_are_not_compared(
    places: list[str], tmp_path: Path, quicsat: CommandLine
) -> None:
    other = replace(SAT, name="other", abbreviation="O")
    place = tmp_path / "other"
    place.mkdir()
    write_result_json(place, result_set(test_cases=(other,)))
    err = quicsat.err("compare", places[0], place, draw=Draws(), status=2)
    assert "one and other have no test case in common" in err


def night(tmp_path: Path, day: int, results: ResultSet) -> Path:
    """A stored campaign of that day."""
    place = tmp_path / f"{day:02}"
    place.mkdir()
    manifest = replace(results.manifest, id=f"n{day}", started=f"2026-11-{day:02}T06:00:00Z")
    write_result_json(place, replace(results, manifest=manifest))
    return place


def whole(goodput: float) -> ResultSet:
    """Eight pairs in virtual time."""
    results = [each for name in "abcdefgh" for each in runs(goodput, server=name)]
    image = ImageFacts("me/a", f"sha256:{int(goodput) % 11:064}", version="1")
    return virtual(result_set(results, servers=tuple("abcdefgh"), repetitions=1, images={"a": image}))


def test_a_campaign_that_was_killed_early_hides_nothing_from_the_next_one(tmp_path: Path, quicsat: CommandLine) -> None:
    night(tmp_path, 1, whole(8e6))
    before = night(tmp_path, 2, whole(8e6))
    killed = whole(4e6)
    night(tmp_path, 3, replace(killed, results=killed.results[:2], finished=None))
    night(tmp_path, 4, result_set(runs(4e6)))  # the other clock
    night(tmp_path, 5, virtual(result_set(runs(4e6, server="other"), servers=("other",), repetitions=1)))
    after = night(tmp_path, 6, whole(4e6))
    night(tmp_path, 7, whole(4e6))
    file = tmp_path / "changes.json"
    status, out, err = quicsat("compare", "--previous", after, "--json", file, draw=Draws())
    assert status == 1
    assert "02 → 06" in out
    assert f"Image that changed: a: version 1, image {0:012} → {0:012}." in out
    assert "The campaign of 2026-11-03T06:00:00Z (2 of 8 runs) is incomplete." in err
    told = json.loads(file.read_text())
    assert told["before"] == {"directory": str(before), "started": "2026-11-02T06:00:00Z"}
    assert told["passed over"] == ["2026-11-03T06:00:00Z (2 of 8 runs)"]
    assert len(told["images"]) == 1
    assert [(each["worse"], each["change"]) for each in told["changes"]] == [
        (True, "slower"),
        *[(False, "slower, not significant")] * 8,
    ]
    assert told["changes"][0]["words"] == "all pairs together: slower (-50.0 %)"
    assert told["changes"][0]["members"] == "1/1"


def test_a_placebo_is_no_earlier_campaign(tmp_path: Path, quicsat: CommandLine) -> None:
    night(tmp_path, 1, whole(8e6))
    again = whole(4e6)
    night(tmp_path, 2, replace(again, manifest=replace(again.manifest, placebo=True)))
    assert "01 → 03" in quicsat.out("compare", "--previous", night(tmp_path, 3, whole(4e6)), draw=Draws(), status=1)


def test_a_campaign_without_an_earlier_one_is_undecided(tmp_path: Path, quicsat: CommandLine) -> None:
    place, file = night(tmp_path, 1, whole(8e6)), tmp_path / "changes.json"
    err = quicsat.err("compare", "--previous", place, "-j", file, draw=Draws(), status=ExitStatus.UNDECIDED)
    assert "there is no earlier campaign" in err
    told = json.loads(file.read_text())
    assert (told["before"], told["undecided"], told["changes"]) == (None, True, [])
    quicsat.err("compare", "--previous", place, "-j", file, draw=Draws(), status=ExitStatus.UNDECIDED)
    (place / "a_b/sat/1/sim").mkdir(parents=True)
    for other in (tmp_path / "notes.txt", place / "result.json", place / "a_b/sat/1/sim/link.json"):
        if not other.exists():
            other.write_text("[]")
        before = other.read_bytes()
        quicsat.refusal("compare", "--previous", place, "-j", other)
        assert other.read_bytes() == before


def test_a_comparison_that_cannot_show_a_loss_is_no_success(tmp_path: Path, quicsat: CommandLine) -> None:
    rates = ((8e6, 8.1e6), (8.1e6, 8e6))
    places = [str(night(tmp_path, day, result_set(runs(*each), repetitions=2))) for day, each in enumerate(rates, 1)]
    quicsat.out("compare", *places, draw=Draws(), status=ExitStatus.UNDECIDED)


def test_in_virtual_time_one_repetition_of_a_cell_decides_nothing(tmp_path: Path, quicsat: CommandLine) -> None:
    rates = (8e6, 7.9e6, 7.9e6)
    places = [
        str(night(tmp_path, day, virtual(result_set(runs(rate), repetitions=1)))) for day, rate in enumerate(rates, 1)
    ]
    assert "slower, not significant" in quicsat.out("compare", *places[:2], draw=Draws(), status=ExitStatus.UNDECIDED)
    assert "1 no change shown" in quicsat.out("compare", *places[1:], draw=Draws())


def test_one_test_case_of_each_of_two_campaigns(quicsat: CommandLine, tmp_path: Path) -> None:
    for name, case, rates in (("a", SAT, FAST), ("b", SATLOSS, SLOW)):
        (tmp_path / name).mkdir()
        results = result_set(runs(*rates, test_case=case.name), test_cases=(case,))
        write_result_json(tmp_path / name, results)
    out = quicsat.out("compare", tmp_path / "a", tmp_path / "b", "-t", "sat", "satloss", "--all", status=1)
    assert out.startswith("sat → satloss: efficiency, the share of the link\n")
    assert "│ SAT, SATL │ picoquic │ quiche │ less efficient │" in out


def test_a_second_campaign_is_missing(quicsat: CommandLine, places: list[str]) -> None:
    assert quicsat.refusal("compare", places[0]).startswith("A second campaign is missing: ")
