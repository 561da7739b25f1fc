"""Root file systems of images for virtual machines: packed once for each image, and never used half packed."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from quicsat.links.guest_roots import ARCHIVE, GuestRoots
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.model.units import MIB
from tests.fakes import VIRTUAL_TIME, FakeEngine, Life, connect, endpoint, virtual_time


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(good=endpoint, odd=endpoint)


def roots_of(engine: FakeEngine) -> GuestRoots:
    return GuestRoots(connect(engine), VIRTUAL_TIME)


def packed(engine: FakeEngine) -> list[str]:
    """Names of the root file systems that were packed, in order."""
    return [life.command[1] for life in engine.all_lives if life.command[:1] == ("root",)]


def test_a_root_file_system_is_the_export_of_its_image(engine: FakeEngine) -> None:
    roots = roots_of(engine)
    assert roots.ensure("good") == "/roots/good.erofs"
    assert engine.roots == {"good": b"root of good"}
    assert engine.lives == {}


def test_names_are_digests_without_their_kind(engine: FakeEngine) -> None:
    engine.roots["ab12"] = b""
    assert roots_of(engine).ensure("sha256:ab12") == "/roots/ab12.erofs"
    assert packed(engine) == []


def test_each_image_is_packed_once(engine: FakeEngine) -> None:
    roots = roots_of(engine)
    for image in ("good", "odd", "good", "odd"):
        roots.ensure(image)
    assert packed(engine) == ["good", "odd"]
    assert roots_of(engine).ensure("good") == "/roots/good.erofs"
    assert packed(engine) == ["good", "odd"]


def test_two_threads_do_not_pack_the_same_image() -> None:
    both = threading.Barrier(2)
    engine = FakeEngine(good=endpoint)
    roots = roots_of(engine)

    def ensure(_: int) -> str:
        both.wait()
        return roots.ensure("good")

    with ThreadPoolExecutor(2) as pool:
        assert {*pool.map(ensure, range(2))} == {"/roots/good.erofs"}
    assert packed(engine) == ["good"]
    assert [life.command for life in engine.all_lives].count(("roots",)) == 1


def test_the_container_that_packs_has_no_rights_and_no_network(engine: FakeEngine) -> None:
    roots_of(engine).ensure("good")
    [packer] = [life for life in engine.all_lives if life.command[:1] == ("root",)]
    assert packer.command == ("root", "good", f"/{ARCHIVE}")
    assert packer.host_config["network_mode"] == "none"
    assert packer.host_config["cap_drop"] == ["ALL"]
    assert packer.host_config["cap_add"] == []
    assert packer.host_config["security_opt"] == ["no-new-privileges"]
    assert packer.host_config["mem_limit"] == packer.host_config["memswap_limit"] == 2048 * MIB
    assert "export" not in engine.started()


def test_a_failed_packing_says_why_and_is_tried_again() -> None:
    tries: list[str] = []

    def fail_once(life: Life) -> int:
        if life.command[0] == "root":
            tries.append(life.command[1])
            if len(tries) == 1:
                life.say("virtual-time: root: mkfs could not pack good")
                return 1
        return virtual_time(life)

    engine = FakeEngine(good=endpoint, **{VIRTUAL_TIME: fail_once})
    roots = roots_of(engine)
    with pytest.raises(HarnessFault, match="be packed: virtual-time: root: mkfs could not") as caught:
        roots.ensure("good")
    assert caught.value.code == ErrorCode.VIRTUAL_MACHINE_FAILED
    assert engine.lives == {}
    assert roots.ensure("good") == "/roots/good.erofs"
    assert tries == ["good", "good"]


def test_a_packing_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(life: Life) -> int:
        return virtual_time(life) if life.command[0] == "roots" else int(not life.ended.wait(60))

    engine = FakeEngine(good=endpoint, **{VIRTUAL_TIME: hang})
    engine.roots["odd"] = b""
    roots = roots_of(engine)
    roots.ensure("odd")
    monkeypatch.setattr("quicsat.links.guest_roots.PATIENCE", 0.1)
    with pytest.raises(HarnessFault, match="could not be packed: without a word"):
        roots.ensure("good")
    assert engine.lives == {}


@pytest.mark.parametrize("verb", ["export", "create", "put", "start"])
def test_a_refusal_of_the_daemon_is_its_own_fault(engine: FakeEngine, verb: str) -> None:
    roots = roots_of(engine)
    roots.ensure("odd")
    engine.refused = {verb}
    with pytest.raises(HarnessFault, match=f"{verb} was refused") as caught:
        roots.ensure("good")
    assert caught.value.code == ErrorCode.DAEMON_FAULT
    engine.refused = set()
    assert roots.ensure("good") == "/roots/good.erofs"
    assert engine.lives == {}
