"""Runs that were measured again with the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from interop.model.evidence import HostFacts
from interop.model.outcomes import Outcome
from interop.model.results import ImageFacts, ResultSet, RunResult, Versions
from interop.model.units import MBPS
from scripts.paper.repeated import Sample, by_case, pairs_of_runs, repeated, summary, without_a_version
from tests.results_builder import SAT, SATLOSS, result_set, run_result

CLIENTS = ("a", "b", "c", "d")


def campaign(goodputs: Sequence[float | None], day: int, seed: int = 7) -> ResultSet:
    """A run per client over ``sat``, which began at noon."""
    runs = [
        replace(run, evidence=replace(run.evidence, started=f"2026-11-{day}T12:00:00.000Z", seed=seed))
        for client, goodput in zip(CLIENTS, goodputs, strict=True)
        for run in [run_result(None if goodput is None else goodput * MBPS, client=client)]
    ]
    return result_set(runs, clients=CLIENTS, test_cases=(SAT, SATLOSS), repetitions=1)


MATRIX = campaign((5.0, 4.0, 3.0, None), 24)


def test_runs_are_reproduced_within_half_a_percent() -> None:
    found = pairs_of_runs(MATRIX, campaign((5.0, 4.0196, 3.02, None), 25))
    assert [each.is_reproduced for each in found] == [True, True, False, True]
    assert summary(found) == (
        "We repeated 4 runs of 2026-11-24 on the same machine on 2026-11-25, 24.0 hours later. 3 of the 4 runs were "
        "reproduced; of the 3 that succeeded, 1 had exactly the same goodput."
    )
    [row] = by_case("matrix", MATRIX, found).rows
    assert row[:6] == ("sat", 4, 3, 4, 3, 1)
    assert row[6] == pytest.approx(0.02 / 3)


def elsewhere(results: ResultSet) -> ResultSet:
    host = HostFacts("6.18", "x86_64", 2, 2**34, "20.10", 0.0, processor="Xeon")
    kept = tuple(replace(run, evidence=replace(run.evidence, host=host)) for run in results.results)
    return replace(results, results=kept)


def test_implementations_that_no_equal_runs_have_are_named() -> None:
    """b differs on the other machine; the server does so with b only."""
    found = pairs_of_runs(MATRIX, elsewhere(campaign((5.0, 4.2, 3.0, None), 25)))
    assert (
        "No successful run with b had exactly the same goodput on the different machine; of the 2 other successful "
        "runs, 2 had. See [Another machine]"
    ) in summary(found)
    assert "No successful run" not in summary(pairs_of_runs(MATRIX, elsewhere(campaign((5.0, 4.0, 3.0, None), 25))))
    assert "No successful run" not in summary(pairs_of_runs(MATRIX, campaign((5.0, 4.2, 3.0, None), 25)))


def test_another_outcome_is_not_reproduced() -> None:
    again = campaign((None, 4.0, 3.0, 2.0), 25)
    assert [each.is_reproduced for each in pairs_of_runs(MATRIX, again)] == [False, True, True, False]
    text = "\n".join(repeated([Sample("matrix", MATRIX, again)]))
    assert "picoquic with a over sat** was not reproduced: its outcome was first succeeded, and then timeout." in text
    assert "All runs of the sample" not in text


def test_both_can_fail_in_the_same_way() -> None:
    def failed(run: RunResult, outcome: Outcome) -> ResultSet:
        changed = replace(run, verdict=replace(run.verdict, outcome=outcome))
        return replace(MATRIX, results=(changed,))

    late = MATRIX.results[-1]
    [same] = pairs_of_runs(MATRIX, failed(late, Outcome.TIMEOUT))
    [other] = pairs_of_runs(MATRIX, failed(late, Outcome.FAILED))
    assert (same.is_reproduced, other.is_reproduced) == (True, False)


def test_the_text_has_the_size_of_the_sample_and_the_time_between() -> None:
    again = campaign((5.0, 4.0, 3.0, None), 25)
    text = "\n".join(repeated([Sample("spread", MATRIX, replace(again, results=again.results[:2]))]))
    assert (
        "Starting at 2026-11-25 12:00 UTC, we repeated a random sample of 2 of the 4 runs of the spread with seed "
        f"{MATRIX.manifest.seed}, using an unknown version of quicsat; the originals, 24 hours earlier, did not store "
        "their version."
    ) in text
    assert "All runs of the sample were reproduced." in text


@pytest.mark.parametrize(("first", "told"), [("1.1", "used quicsat 1.1."), ("1.2", "used the same version.")])
def test_the_text_has_both_versions(first: str, told: str) -> None:
    before, again = (
        replace(each, manifest=replace(each.manifest, versions=Versions(version, "20", "3", "3.43")))
        for each, version in ((MATRIX, first), (campaign((5.0, 4.0, 3.0, None), 25), "1.2"))
    )
    text = "\n".join(repeated([Sample("matrix", before, again)]))
    assert f", using quicsat 1.2; the originals, 24 hours earlier, {told}" in text


def test_a_run_with_another_seed_is_no_repetition() -> None:
    assert not list(repeated([Sample("matrix", MATRIX, campaign((5.0, 4.0, 3.0, None), 25, seed=8))]))


def test_each_campaign_has_its_own_table_the_first_one_first() -> None:
    later, sooner = campaign((5.0, 4.0, 3.0, None), 25), campaign((5.0, 4.0, 2.0, None), 24)
    text = "\n".join(repeated([Sample("matrix", MATRIX, later), Sample("matrix", MATRIX, sooner)]))
    assert text.index("was not reproduced") < text.index("All runs of the sample were reproduced.")
    assert text.count("## Repeated runs") == 1


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ("12", "All 2 images are the same."),
        ("13", "1 of the 2 images is the same; the others were rebuilt from the same sources."),
        ("34", "None of the 2 images is the same; all were rebuilt from the same sources."),
    ],
)
def test_images_are_the_same_or_rebuilt(ids: str, told: str) -> None:
    def built(results: ResultSet, ids: str) -> ResultSet:
        images = {name: ImageFacts(name, number) for name, number in zip(("a", "b"), ids, strict=True)}
        return replace(results, manifest=replace(results.manifest, images=images))

    again = built(campaign((5.0, 4.0, 3.0, None), 25), ids)
    assert told in "\n".join(repeated([Sample("matrix", built(MATRIX, "12"), again)]))


def test_images_with_other_sources_are_named() -> None:
    def built(results: ResultSet, tag: str, number: str) -> ResultSet:
        images = {"a": ImageFacts("a:1", number), "virtual-time": ImageFacts(f"virtual-time:{tag}", number)}
        return replace(results, manifest=replace(results.manifest, images=images))

    again = campaign((5.0, 4.0, 3.0, None), 25)
    text = "\n".join(repeated([Sample("matrix", built(MATRIX, "x", "1"), built(again, "y", "2"))]))
    assert "all were rebuilt from the same sources, except for the virtual machine of virtual time, whose" in text
    assert "these repetitions do not show an effect of the machine." in text
    text = "\n".join(repeated([Sample("matrix", built(MATRIX, "x", "1"), built(again, "x", "2"))]))
    assert "all were rebuilt from the same sources." in text
    assert "an effect of the machine" not in text


def on(machine: str, results: ResultSet) -> ResultSet:
    """The same results on a machine with this kernel."""
    host = HostFacts(machine, "x86_64", 2, 1, "20", 0.0)
    moved = (replace(run, evidence=replace(run.evidence, host=host)) for run in results.results)
    return replace(results, results=tuple(moved))


def test_the_summary_has_the_hours_and_dates_of_each_machine() -> None:
    later, sooner = campaign((5.0, 4.0, 3.0, None), 26), campaign((5.0, 4.0, 2.0, None), 25)
    text = "\n".join(repeated([Sample("matrix", MATRIX, later), Sample("matrix", MATRIX, sooner)]))
    assert (
        "We repeated 8 runs of 2026-11-24 on the same machine on 2026-11-25 and 2026-11-26, 24.0 to 48.0 hours later. "
        "7 of the 8 runs were reproduced; of the 6 that succeeded, 5 had exactly the same goodput."
    ) in text
    assert "different machine" not in text
    text = "\n".join(repeated([Sample("matrix", on("6.1", MATRIX), on("6.2", later))]))
    assert (
        "We repeated 4 runs of 2026-11-24 on a different machine on 2026-11-26, 48.0 hours later. All 4 runs were "
        "reproduced; the 3 that succeeded had exactly the same goodput. See [Another machine]"
    ) in text
    assert ", on a different machine (kernel 6.2 instead of 6.1), using" in text
    text = summary(pairs_of_runs(on("6.1", MATRIX), on("6.2", later))[:1])
    assert "We repeated 1 run of 2026-11-24 on a different machine" in text
    assert "later. The only run was reproduced; the one that succeeded had exactly the same goodput." in text
    text = summary(pairs_of_runs(MATRIX, later)[3:])
    assert text.endswith("later. The only run was reproduced.")
    text = summary(pairs_of_runs(MATRIX, campaign((5.01, None, 2.0, 1.0), 25)))
    assert text.endswith(
        "later. 1 of the 4 runs was reproduced; of the 2 that succeeded, none had exactly the same goodput."
    )


def test_images_of_the_simulator_and_the_virtual_machine_are_told() -> None:
    def built(results: ResultSet) -> ResultSet:
        images = {name: ImageFacts(name, "1") for name in ("a", "b", "simulator", "virtual-time")}
        return replace(results, manifest=replace(results.manifest, images=images))

    again = built(campaign((5.0, 4.0, 3.0, None), 25))
    assert (
        "All 4 images (of 2 implementations, the simulator and the virtual machine of virtual time) are the same."
    ) in "\n".join(repeated([Sample("matrix", built(MATRIX), again)]))


def test_the_sample_of_a_campaign_without_a_version() -> None:
    again = campaign((5.0, 4.0, 2.0, None), 25)
    manifest = replace(again.manifest, versions=Versions("1.2", "20", "3", "3.43"))
    sample = Sample("matrix", MATRIX, replace(again, manifest=manifest))
    assert without_a_version(MATRIX, [sample]) == (
        "The campaign with seed 1 contains all runs over `sat`; with quicsat 1.2, 3 of the 4 runs in a random sample "
        "of this campaign were reproduced (see [Repeated runs](#repeated-runs))."
    )
    more = replace(MATRIX, results=(*MATRIX.results, *campaign((1.0, 1.0, 1.0, 1.0), 25, seed=9).results))
    assert "The campaign with seed 1 did not store its version; with quicsat 1.2" in without_a_version(more, [sample])
    assert without_a_version(MATRIX, [Sample("matrix", sample.again, MATRIX)]) == ""
    assert without_a_version(MATRIX, [Sample("spread", MATRIX, sample.again)]) == ""
