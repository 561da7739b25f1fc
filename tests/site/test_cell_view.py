"""What the page of a cell shows: the median run, notes."""

from dataclasses import replace
from pathlib import Path

from quicsat.model.negotiated import Negotiated
from quicsat.model.real_link import Baseline, CaptureReport, RealDirection, RealLink, RealLinkReport
from quicsat.model.results import Measurement
from quicsat.site.campaigns import SiteCampaign
from quicsat.site.cell_view import detail, representative, slowest
from tests.results_builder import SAT, result_set, run_result, runs

KEY = ("picoquic", "quiche", "sat")


def test_over_a_real_link_it_shows_what_the_bare_link_did() -> None:
    link = RealLink("modem", "far", RealDirection(20e6), RealDirection(2e6), 0.6)
    look = Baseline("2026-11-21T06:00:00Z", (0.6, None), 0.1)
    report = RealLinkReport("modem", "far", 0.0, CaptureReport(9, 9, 0), CaptureReport(9, 9, 0), look)
    found = [replace(each, evidence=replace(each.evidence, real_link=report)) for each in runs(8e6, 9e6)]
    results = result_set(found, test_cases=(replace(SAT, link=link),))
    [note] = detail(SiteCampaign(Path(), "one", results), KEY, {}).notes
    assert note.text.startswith("The bare link at 2026-11-21T06:00:00Z: RTT 600.0 ms")
    assert note.repetitions == "Repetitions 1-2"


def test_the_representative_is_the_lower_median_of_those_that_succeeded() -> None:
    assert representative(runs(None, 9e6, 5e6, 7e6, 8e6)) == 4
    assert representative(runs(None, None)) == 1


def test_the_slowest_of_those_that_succeeded() -> None:
    assert slowest(runs(8e6, 7e6, None, 9e6)) == 2
    assert slowest(runs(None, None)) == 1


def test_notes_stand_once_with_their_repetitions() -> None:
    results = [run_result(8e6, repetition=number) for number in (1, 2, 3)]
    noted = [
        replace(each, evidence=replace(each.evidence, notes=("A log was cut.",))) if each.repetition != 2 else each
        for each in results
    ]
    found = detail(SiteCampaign(Path(), "one", result_set(noted, repetitions=3)), KEY, {})
    assert [(note.text, note.repetitions) for note in found.notes] == [("A log was cut.", "Repetitions 1, 3")]


def test_a_valid_attempt_that_was_repeated_is_told() -> None:
    first, last = run_result(None), run_result(8e6, attempt=2)
    results = replace(result_set([last], repetitions=1), earlier=(first,))
    found = detail(SiteCampaign(Path(), "one", results), KEY, {})
    assert (found.attempts, found.retried) == ((first, last), (first,))


def test_what_a_reader_looks_for_first_stands_first_and_alone_has_no_spread() -> None:
    one = detail(SiteCampaign(Path(), "one", result_set(runs(8e6), repetitions=1)), KEY, {})
    assert [short for _, short in one.main] == ["goodput", "efficiency"]
    assert one.spread_of_main == ()
    many = detail(SiteCampaign(Path(), "one", result_set(runs(8e6, 9e6), repetitions=2)), KEY, {})
    assert [each.count for each in many.spread_of_main] == [2, 2]


def test_negotiated_facts_of_all_repetitions() -> None:
    sent = ({"initial_max_data": 65536}, {"initial_max_data": 1048576}, {"initial_max_data": 65536})
    found = [
        replace(each, measurement=Measurement({"goodput": 8e6}, negotiated=Negotiated(1, 0x1301, "h3", client=client)))
        for each, client in zip(runs(8e6, 8e6, 8e6), sent, strict=True)
    ]
    facts = dict(detail(SiteCampaign(Path(), "one", result_set(found, repetitions=3)), KEY, {}).negotiated)
    assert facts["client: initial max data [B]"] == "65536, 1048576"
    assert facts["client: max ack delay [ms]"] == "25"
    assert (facts["version"], facts["cipher"], facts["alpn"]) == ("QUIC v1", "AES-128-GCM", "h3")
    assert not any(name.startswith("server") for name in facts)
    assert detail(SiteCampaign(Path(), "one", result_set(runs(8e6))), KEY, {}).negotiated == ()
