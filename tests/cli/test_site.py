"""``./run.py site``: builds the site of stored campaigns and prints a summary."""

import socket
from pathlib import Path

from quicsat.model.errors import MachineError
from quicsat.report.plot_request import Gallery, PlotRequest
from tests.cli.conftest import CommandLine, Draws


def test_a_site_is_built(places: list[str], tmp_path: Path, quicsat: CommandLine) -> None:
    summary = quicsat.out("site", places[0], "-o", tmp_path / "web")
    assert summary.startswith(f"{tmp_path}/web: 1 campaign, ")
    assert " pages, " in summary
    assert (tmp_path / "web" / "index.html").is_file()


def test_missing_figures_are_drawn_and_only_once(places: list[str], tmp_path: Path, quicsat: CommandLine) -> None:
    draws = Draws()
    words = ("site", places[0], "-o", tmp_path / "web")
    assert quicsat(*words, "--no-plots", draw=draws)[0] == 0
    assert draws.requests == []
    for _ in range(2):
        _, _, err = quicsat(*words, draw=draws)
    assert "an old name." not in err
    [request] = draws.requests
    assert (request.target, [each.label for each in request.campaigns]) == (Path(places[0]) / "plots", ["one"])
    with (Path(places[0]) / "result.json").open("a") as file:
        file.write("\n")
    assert "an old name." in quicsat(*words, draw=draws)[2]
    assert len(draws.requests) == 2


def test_figures_that_cannot_be_drawn_keep_no_site_from_being_built(
    places: list[str], tmp_path: Path, quicsat: CommandLine
) -> None:
    def fail(_request: PlotRequest) -> Gallery:
        raise MachineError("There is no room.")

    status, _, err = quicsat("site", places[0], "-o", tmp_path / "web", draw=fail)
    assert (status, "could not be drawn: There is no room." in err) == (0, True)
    (Path(places[0]) / "plots").symlink_to(tmp_path)
    draws = Draws()
    assert "is a symbolic link" in quicsat("site", places[0], "-o", tmp_path / "web", draw=draws)[2]
    assert draws.requests == []


def test_a_port_that_is_taken_is_told_before_the_site_is_built(
    places: list[str], tmp_path: Path, quicsat: CommandLine
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        err = quicsat.refusal("site", places[0], "-o", tmp_path / "web", "--serve", port)
    told = f"port {port}: cannot be listened on: Address already in use. Name another port, for example 8001.\n"
    assert err == told
    assert not (tmp_path / "web").exists()
