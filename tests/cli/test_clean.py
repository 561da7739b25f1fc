"""``./run.py clean`` removes containers that were left behind."""

import pytest

from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.model.errors import HarnessFault
from tests.cli.conftest import Checkout
from tests.fakes import connect


def test_clean_removes_what_is_ours(checkout: Checkout) -> None:
    daemon = connect(checkout.engine, "other")
    with Ns3Backend(daemon, "simulator").open():
        assert checkout("clean") == (0, "Removed 3 containers.\n", "")
    assert checkout("clean") == (0, "No containers were left behind.\n", "")


def test_a_fault_that_nobody_expected_is_one_line(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object, **_options: object) -> None:
        raise HarnessFault("daemon-fault", "cannot list containers: Connection refused")

    monkeypatch.setattr("quicsat.docker.containers.remove_containers", fault)
    assert checkout("clean") == (3, "", "cannot list containers: Connection refused (daemon-fault)\n")
