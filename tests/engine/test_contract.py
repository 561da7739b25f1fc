"""What tests/fakes.py makes up holds for the real engine too."""

import itertools
import signal
from collections.abc import Mapping
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import pytest
import requests.exceptions

from quicsat.docker.client import Daemon
from quicsat.docker.containers import ContainerEvent, ContainerSpec, create_container
from quicsat.model.errors import HarnessFault
from tests.container_contract import PATIENCE, ContainerContract, Programs
from tests.waiting import until


def spec(daemon: Daemon, image: str, *command: str, name: str = "contract") -> ContainerSpec:
    return ContainerSpec(f"quicsat-{daemon.campaign}-{name}", image, command)


class TestContract(ContainerContract):
    """At the real engine."""

    @pytest.fixture
    def programs(self, daemon: Daemon, image_ids: Mapping[str, str]) -> Programs:
        hello = "trap 'exit 0' TERM; echo hello; sleep 60 & wait"
        commands = (("bash", "-c", hello), ("sh", "-c", "exit 3"), ("/no/such/program",))
        return Programs(*(spec(daemon, image_ids["simulator"], *command) for command in commands))


def test_sigterm_does_not_reach_a_first_process_without_a_handler(daemon: Daemon, image_ids: Mapping[str, str]) -> None:
    with create_container(daemon, spec(daemon, image_ids["simulator"], "sleep", "60")) as container:
        container.start()
        container.terminate()
        assert container.deaf
        container.finish(0)
        assert container.exit().status == 128 + signal.SIGKILL


def test_no_container_joins_the_network_of_one_that_has_ended(daemon: Daemon, image_ids: Mapping[str, str]) -> None:
    simulator = image_ids["simulator"]
    with create_container(daemon, spec(daemon, simulator, "true", name="holder")) as holder:
        holder.start()
        assert holder.wait(PATIENCE)
        late = replace(spec(daemon, simulator, "true", name="late"), network=f"container:{holder.id}")
        with create_container(daemon, late) as container, pytest.raises(HarnessFault, match="non running container"):
            container.start()


def test_lines_are_told_once_though_their_stream_breaks_off(
    daemon: Daemon, image_ids: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("bash", "-c", "for n in 1 2 3 4 5 6; do echo $n; sleep 0.3; done; sleep infinity")
    logs, asked = daemon.slow.logs, list[int]()

    def break_off(*arguments: Any, **options: Any) -> Any:
        asked.append(len(asked))
        if len(asked) == 1:
            raise requests.exceptions.ConnectionError("Connection refused")
        whole = logs(*arguments, **options)
        return itertools.islice(whole, 2) if len(asked) == 2 else whole

    monkeypatch.setattr(daemon.slow, "logs", break_off)
    with create_container(daemon, spec(daemon, image_ids["simulator"], *words)) as container:
        events: SimpleQueue[ContainerEvent] = SimpleQueue()
        container.start()
        container.watch(events, lines=True)
        told = [events.get().line for _ in range(6)]
        assert until(lambda: len(asked) >= 3)
        container.kill()
        told.append(events.get().line)
    assert told == ["1", "2", "3", "4", "5", "6", None]
