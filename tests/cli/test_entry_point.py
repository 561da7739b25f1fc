"""The start of the program: packages that are missing."""

import pytest

from quicsat.cli import commands
from quicsat.cli.entry_point import start


def import_fails(name: str) -> object:
    def load(_: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    return load


def test_a_missing_package_is_named_although_a_command_imports_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["run.py", "plan"])
    monkeypatch.setattr(commands, "load", import_fails("prettytable.colortable"))
    assert start() == 3
    told = "The Python package prettytable is missing; `make setup` installs all that is needed.\n"
    assert capsys.readouterr().err == told


def test_a_module_of_our_own_that_is_missing_is_an_error_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["run.py", "plan"])
    monkeypatch.setattr(commands, "load", import_fails("quicsat.plan.gone"))
    with pytest.raises(ModuleNotFoundError):
        start()
