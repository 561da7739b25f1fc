"""Fixtures of campaigns at an engine of threads."""

from pathlib import Path

import pytest

from quicsat.execution import campaign_setup
from quicsat.model.implementation import Role
from tests.fakes import FakeEngine, end_with, endpoint, install, judge, only_as


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """All campaigns use it; clients of ``bad`` fail, and verdicts follow from evidence and files alone."""
    engine = FakeEngine(good=endpoint, bad=only_as(Role.CLIENT, end_with(1)))
    install(engine, monkeypatch, tmp_path)
    monkeypatch.setattr(campaign_setup, "analyse_once", judge)
    return engine
