"""Daemons of other machines: how ssh is called, that it is called again when it ends, and ends with us."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quicsat.docker import ssh_tunnel
from quicsat.docker.ssh_tunnel import connected
from quicsat.model.errors import MachineError
from quicsat.model.real_link import Host
from tests.fakes import FakeEngine
from tests.waiting import has_ended, until

ROOT = Path(__file__).resolve().parents[2]
HOST = Host("far", "ssh://me@far.example:2222/run/user/7/docker.sock", ssh_config=Path("/c/config"))
SSH = """#!/bin/bash
echo "$$ $*" >>{folder}/calls
[[ -e {folder}/refuse ]] && { echo "Permission denied (publickey)." >&2; exit 255; }
for word; do [[ $word == *:/* ]] && socket=${word%%:*}; done
touch "$socket"
exec cat
"""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called ssh that makes a file where a socket should be, and lives as long as its standard input."""
    program = tmp_path / "ssh"
    program.write_text(SSH.replace("{folder}", str(tmp_path)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("docker.APIClient", FakeEngine().client)
    return tmp_path


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_how_ssh_is_called(ssh: Path) -> None:
    with connected(HOST, "test") as daemon:
        assert daemon.host == "far"
        [call] = calls(ssh)
    for words in (" -F /c/config ", " -p 2222 ", " -l me ", ":/run/user/7/docker.sock far.example cat",
                  " BatchMode=yes ", " ExitOnForwardFailure=yes ", " ServerAliveInterval=5 ",
                  " ForwardAgent=no ", " ForwardX11=no ", " PermitLocalCommand=no ",
                  " RemoteCommand=none ", " Tunnel=no "):  # fmt: skip
        assert words in f"{call} "
    assert until(lambda: has_ended(int(call.split()[0])))


def test_the_usual_socket_and_user() -> None:
    command = ssh_tunnel._command(Host("far", "ssh://far.example"), Path("/s"))
    assert command[-3:] == ["/s:/var/run/docker.sock", "far.example", "cat"]
    assert not {"-F", "-p", "-l"} & set(command)


def test_it_connects_again(ssh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_tunnel, "SHORTEST_PAUSE", 0.01)
    with connected(HOST, "test"):
        os.kill(int(calls(ssh)[0].split()[0]), signal.SIGKILL)
        assert until(lambda: len(calls(ssh)) > 1)
        second = int(calls(ssh)[1].split()[0])
    assert until(lambda: has_ended(second))


def test_what_ssh_complains_about_is_told(ssh: Path) -> None:
    (ssh / "refuse").touch()
    with pytest.raises(MachineError, match=r"far cannot be reached over ssh: Permission denied"), connected(HOST, "x"):
        pass


def test_it_ends_with_a_campaign_that_is_killed(ssh: Path) -> None:
    script = """
import os, sys
from unittest.mock import patch
import docker
from quicsat.docker.ssh_tunnel import connected
from quicsat.model.real_link import Host
from tests.fakes import FakeEngine
with patch.object(docker, "APIClient", FakeEngine().client), connected(Host("far", "ssh://far.example"), "x"):
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert until(lambda: has_ended(int(calls(ssh)[0].split()[0])))
