"""The compliance check: 127 for an unknown test name, in each role, and nothing else counts."""

import threading

import pytest

from quicsat.execution import compliance as module
from quicsat.execution.compliance import check_compliance
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.links.session import RunControl
from quicsat.model.errors import HarnessFault, Interrupted
from quicsat.model.implementation import Role
from quicsat.model.results import Compliance
from tests.fakes import (
    SIMULATOR,
    FakeEngine,
    Life,
    Program,
    after,
    connect,
    end_with,
    endpoint,
    hang,
    implementation,
    run_config,
)
from tests.faults import FaultyEngine

BOTH = tuple(Role)


def check(engine: FakeEngine, *roles: Role, stop: bool = False, refused: str = "") -> dict[Role, Compliance]:
    with Ns3Backend(connect(engine), SIMULATOR).open() as testbed:
        engine.refused = {refused}
        control = RunControl(threading.Event())
        if stop:
            control.stop.set()
        found = check_compliance(implementation("it"), roles or BOTH, testbed, run_config(engine), control)
    assert engine.lives == {}
    return {compliance.role: compliance for compliance in found}


def test_an_image_as_it_should_be() -> None:
    assert check(FakeEngine(it=endpoint)) == {role: Compliance("it", role, True, "", "it") for role in BOTH}


@pytest.mark.parametrize(
    ("program", "words"),
    [(end_with(0), "exit status 0"), (end_with(1), "exit status 1"), (end_with(139), "139"), (hang, "still ran")],
)
def test_an_image_that_is_not(program: Program, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if program is hang:
        monkeypatch.setattr(module, "TIMEOUT", 0.2)
    for compliance in check(FakeEngine(it=program)).values():
        assert not compliance.compliant
        assert words in compliance.reason


def test_an_image_that_cannot_be_started() -> None:
    engine = FakeEngine(it=endpoint)
    engine.unstartable = {"it"}
    assert all("cannot be started" in compliance.reason for compliance in check(engine).values())


def test_only_the_roles_that_are_needed() -> None:
    engine = FakeEngine(it=endpoint)
    assert set(check(engine, Role.CLIENT)) == {Role.CLIENT}
    assert "server" not in engine.started()


def test_the_test_name_is_unknown_to_everyone_and_the_simulator_waits_for_nobody() -> None:
    seen: set[str] = set()

    def look(life: Life) -> int:
        seen.add(life.environment["TESTCASE"])
        assert life.environment["REQUESTS"] in ("", "https://server4:443/file")
        return 127

    engine = FakeEngine(it=look)
    check(engine)
    check(engine)
    assert len(seen) == 2
    assert all(name.isalpha() and len(name) == 10 for name in seen)
    simulators = [life for life in engine.all_lives if "SCENARIO" in life.environment]
    assert {life.environment["WAITFORSERVER"] for life in simulators} == {""}


def test_a_refusal_of_the_daemon_says_nothing_about_the_image() -> None:
    with pytest.raises(HarnessFault, match="start was refused"):
        check(FakeEngine(it=endpoint), refused="start")


@pytest.mark.parametrize("gently", [True, False])
def test_a_daemon_that_is_started_anew_says_nothing_about_the_image(gently: bool) -> None:
    engine = FaultyEngine(0, 0)
    engine.programs["it"] = after(lambda: engine.restart(0.0, gently=gently), end_with(143))
    with pytest.raises(HarnessFault, match="the testbed ended" if gently else "the simulator ended"):
        check(engine, Role.CLIENT)


def test_interruption() -> None:
    with pytest.raises(Interrupted):
        check(FakeEngine(it=hang), stop=True)
