"""What goes to make room: traces first, results last, and never what is pinned, in use, or the newest."""

import fcntl
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quicsat.results.prune import (
    PINNED,
    RetentionPolicy,
    Stage,
    StoredCampaign,
    describe,
    find_campaigns,
    remove,
    select_removals,
)
from quicsat.results.store import JOURNAL, Journal
from tests.faults import manifest
from tests.results.test_merge import ENDS, PLAN, result

NOW = datetime(2026, 11, 21, tzinfo=UTC)
DAY = timedelta(days=1)


def stored(age: int, traces: int = 100, logs: int = 10, results: int = 1, protected: str = "") -> StoredCampaign:
    sizes = {Stage.TRACES: traces, Stage.LOGS: logs, Stage.RESULTS: results}
    return StoredCampaign(Path(f"/c{age}"), NOW - age * DAY, sizes, protected)


def chosen(campaigns: list[StoredCampaign], policy: RetentionPolicy, free: int = 0) -> list[tuple[str, str]]:
    removals = select_removals(campaigns, policy, NOW, free)
    return [(each.stored.directory.name, each.stage.name.lower()) for each in removals]


CAMPAIGNS = [stored(age) for age in (1, 20, 40)]


def test_without_rules_nothing_goes() -> None:
    assert chosen(CAMPAIGNS, RetentionPolicy()) == []


def test_by_age() -> None:
    policy = RetentionPolicy(traces=14 * DAY, logs=30 * DAY)
    assert chosen(CAMPAIGNS, policy) == [("c40", "traces"), ("c20", "traces"), ("c40", "logs")]
    assert chosen([stored(14)], policy) == [("c14", "traces")]
    assert chosen([stored(40, traces=0, logs=0)], policy) == []


def test_traces_of_all_go_before_logs_of_any_for_want_of_room() -> None:
    assert chosen(CAMPAIGNS, RetentionPolicy(most_bytes=333)) == []
    assert chosen(CAMPAIGNS, RetentionPolicy(most_bytes=332)) == [("c40", "traces")]
    assert chosen(CAMPAIGNS, RetentionPolicy(most_bytes=32)) == [
        ("c40", "traces"), ("c20", "traces"), ("c1", "traces"), ("c40", "logs"),
    ]  # fmt: skip
    assert chosen(CAMPAIGNS, RetentionPolicy(most_bytes=0))[-1] == ("c1", "logs")  # results stay


def test_room_on_the_disk() -> None:
    assert chosen(CAMPAIGNS, RetentionPolicy(free_bytes=150), free=150) == []
    assert chosen(CAMPAIGNS, RetentionPolicy(free_bytes=150), free=10) == [("c40", "traces"), ("c20", "traces")]


def test_results_go_by_number_alone() -> None:
    assert chosen(CAMPAIGNS, RetentionPolicy(keep=2)) == [("c40", "results")]
    assert chosen(CAMPAIGNS, RetentionPolicy(keep=2, traces=14 * DAY)) == [("c40", "results"), ("c20", "traces")]
    assert chosen(CAMPAIGNS, RetentionPolicy(keep=9)) == []


def test_the_newest_that_is_finished_stays() -> None:
    broken = replace(stored(1), finished=False)
    assert chosen([broken, stored(20), stored(40)], RetentionPolicy(keep=1)) == [("c40", "results")]


def test_what_is_protected_stays() -> None:
    campaigns = [stored(1), stored(20, protected="in use"), stored(40, protected="pinned")]
    assert chosen(campaigns, RetentionPolicy(keep=1, traces=DAY, most_bytes=0)) == [("c1", "traces"), ("c1", "logs")]


# ---- the disk -------------------------------------------------------------------------------


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    place = tmp_path / "results" / "2026"
    run = place / PLAN[0].path
    for name in ("sim/trace_node_left.pcap", "sim/link.json", "client/keys.log", "client/qlog/x.qlog", "server/log",
                 "output.txt", "series.parquet"):  # fmt: skip
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(b"x" * 100)
    (run / "client" / "output.txt").write_text("of the endpoint, which may be as large as it likes")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.pcap").write_text("not ours")
    (run / "client" / "link").symlink_to(outside)
    (run / "client" / "a.pcap").symlink_to(outside / "precious.pcap")
    plan = manifest(PLAN[:1])
    described = replace(plan, servers=("a",), implementations=ENDS, started="2026-01-01T00:00:00Z")
    with Journal.create(place, described) as journal:
        journal.append_result(result(PLAN[0]))
        journal.finish()
    (tmp_path / "results" / "latest").symlink_to("2026")
    (tmp_path / "results" / "notes").mkdir()
    return place


def names(place: Path) -> set[str]:
    run = place / PLAN[0].path
    return {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file() or path.is_symlink()}


def test_traces_and_logs_go_and_results_stay(campaign: Path) -> None:
    [found] = find_campaigns(campaign.parent)
    assert (found.directory, found.protected, found.finished) == (campaign, "", True)
    remove(select_removals([found], RetentionPolicy(traces=DAY), NOW, 0))
    assert names(campaign) == {
        "sim/link.json", "client/keys.log", "client/qlog/x.qlog", "server/log", "output.txt", "series.parquet",
        "client/output.txt", "client/link",
    }  # fmt: skip
    remove(select_removals(find_campaigns(campaign.parent), RetentionPolicy(logs=DAY), NOW, 0))
    assert names(campaign) <= {"sim/link.json", "client/keys.log", "output.txt", "series.parquet", "client/link"}
    assert (campaign.parents[1] / "outside" / "precious.pcap").read_text() == "not ours"
    assert find_campaigns(campaign.parent)[0].finished


def test_files_that_merged_campaigns_share_count_once(campaign: Path) -> None:
    [alone] = find_campaigns(campaign.parent)
    shared = campaign / PLAN[0].path / "sim" / "trace_node_left.pcap"
    (campaign.parent / "other.pcap").hardlink_to(shared)
    [found] = find_campaigns(campaign.parent)
    assert alone.sizes[Stage.TRACES] - found.sizes[Stage.TRACES] == shared.stat().st_size // 2


def test_what_is_pinned_or_in_use_stays(campaign: Path) -> None:
    with Journal.open(campaign):
        assert find_campaigns(campaign.parent)[0].protected == "in use"
    (campaign / PINNED).touch()
    [found] = find_campaigns(campaign.parent)
    assert found.protected == "pinned"
    assert select_removals([found], RetentionPolicy(traces=DAY, keep=0), NOW, 0) == []
    assert describe([], [found], done=False).splitlines()[0] == f"{campaign}: stays, pinned"


def test_a_campaign_that_began_to_write_meanwhile_keeps_all_of_it(campaign: Path) -> None:
    removals = select_removals(find_campaigns(campaign.parent), RetentionPolicy(traces=DAY), NOW, 0)
    before = names(campaign)
    with Journal.open(campaign):
        assert remove(removals) == []
    assert names(campaign) == before
    assert remove(removals) == removals
    assert names(campaign) < before


def test_a_campaign_can_begin_although_others_look_at_it(campaign: Path) -> None:
    """For as long as ``prune`` takes to look, and so can another ``prune``."""
    with (campaign / JOURNAL).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert find_campaigns(campaign.parent)[0].protected == ""
        threading.Timer(0.3, fcntl.flock, (file, fcntl.LOCK_UN)).start()
        with Journal.open(campaign) as journal:
            assert journal.record().result_set.finished


def test_a_campaign_as_a_whole(campaign: Path) -> None:
    [found] = find_campaigns(campaign.parent)
    newer = replace(found, directory=Path("/newer"), started=NOW)
    removals = select_removals([found, newer], RetentionPolicy(keep=1), NOW, 0)
    assert "all of it" in describe(removals, [found], done=False)
    remove(removals)
    assert not campaign.exists()
    assert (campaign.parents[1] / "outside" / "precious.pcap").exists()
