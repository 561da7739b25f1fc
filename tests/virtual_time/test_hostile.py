"""A hostile client wastes what the guest has, or leaves traps among its files: the guest ends with a whole report."""

import re
import secrets

import pytest

from quicsat.model.units import MIB
from tests.virtual_time.machine import (
    DIRECTORY,
    MEMORY,
    OUTPUT,
    OVERHEAD,
    PIDS,
    Ended,
    Machines,
    cpu_seconds,
    input_disk,
)

PATIENCE = 90
"""Seconds of CPU time in which every guest here ends."""


def whole(ended: Ended, output: int = OUTPUT) -> dict[str, str]:
    """The report of a guest that powered off by itself without a fault of its own; its output has ``output`` bytes."""
    assert ended.status == 0, ended.console
    assert not ended.out_of_memory
    assert len(ended.output) == output
    assert "fault" not in ended.result
    return ended.result


# ---- ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("kill -9 -1; kill -9 1; exit 5", "5"),  # process 1 of a PID namespace is spared
        ("kill -SEGV $BASHPID; perl -e 'kill 11, $$'; exit 6", "6"),
        ("trap '' TERM INT HUP; sleep 1000000", "137"),
        ("exec /nothing", "127"),
    ],
)
def test_ends(machines: Machines, script: str, status: str) -> None:
    ended = machines.boot(script, patience=PATIENCE)
    assert whole(ended)["client.status"] == status


def test_a_program_that_never_rests_is_killed_from_outside(machines: Machines) -> None:
    """Simulated time stands still while it computes, so no deadline of the guest passes."""
    assert machines.boot("while :; do :; done", patience=5).status == -1


# ---- waste ----------------------------------------------------------------------------------


def test_a_fork_bomb_is_limited_to_its_container(machines: Machines) -> None:
    """It may end the guest's kernel. It meets the limits of the container and harms nobody else."""
    bomb = input_disk("bomb() { bomb | bomb & }; bomb; sleep 1000000")
    with machines.guest({"input": bomb}) as identity:
        api = machines.daemon.slow
        api.start(identity)
        most, used = 0, 0.0
        while api.inspect_container(identity)["State"]["Running"] and used < 15:
            usage = api.stats(identity, stream=False, one_shot=True)
            used = cpu_seconds(usage)
            most = max(most, usage["pids_stats"].get("current", 0))
            assert usage["memory_stats"].get("usage", 0) <= (MEMORY + OVERHEAD) * MIB
    assert 20 < most <= PIDS


@pytest.mark.parametrize(
    ("waste", "status"),
    [
        ("tail /dev/zero", "(137|139)"),  # 139: it has more pieces than the host maps (vm.max_map_count)
        ("perl -e '$x .= q(x) x 65536 while 1'", "137"),
        ("head -c 2G /dev/zero >/dev/shm/x", "1"),
    ],
)
def test_memory(machines: Machines, waste: str, status: str) -> None:
    ended = machines.boot(f"{waste}; echo status $?; exit 0", patience=PATIENCE)
    assert re.search(f"status {status}$", ended.said), ended.said
    whole(ended)


def test_a_full_disk(machines: Machines) -> None:
    """What finds no room in the output is left out and counted; all else is there."""
    ended = machines.boot(
        "cd /logs; echo small >a; head -c 80M /dev/zero >b; truncate -s 1T c; truncate -s 9G d; echo last >e; exit 0",
        output=64 * MIB,
        patience=PATIENCE,
    )
    assert whole(ended, 64 * MIB)["lost"] == "3"
    assert {name: text for name, text in ended.files.items() if name.startswith("client/")} == {
        "client/logs/a": b"small\n",
        "client/logs/e": b"last\n",
    }


def test_a_long_name(machines: Machines) -> None:
    ended = machines.boot("cd /logs; echo long >$(printf %0255d 7); echo short >a; exit 0", patience=PATIENCE)
    assert "lost" not in whole(ended)
    assert ended.files[f"client/logs/{7:0255d}"] == b"long\n"
    assert ended.files["client/logs/a"] == b"short\n"


def test_many_files(machines: Machines) -> None:
    words = "cd /logs; perl -e 'for (1..20000) { open F, q(>), $_ or die }'; exit 0"
    ended = machines.boot(words, patience=PATIENCE)
    assert int(whole(ended)["lost"]) > 1000
    assert len(ended.files) > 10000


def test_a_flood_of_output(machines: Machines) -> None:
    """The end is kept, in as many bytes as asked for; none of it reaches the console."""
    ended = machines.boot("yes | head -c 10000000; echo; echo the end", patience=PATIENCE, limit=MIB)
    whole(ended)
    assert ended.said.rstrip().endswith("the end")
    assert len(ended.files["client.output"]) <= MIB
    assert len(ended.console) < 1000


# ---- traps ----------------------------------------------------------------------------------


def test_files_that_are_none_are_left_out_or_stay_links(machines: Machines) -> None:
    secret = secrets.token_hex(16)
    script = rf"""
    cd /logs
    ln -s /proc/1/environ environ; ln -s {DIRECTORY}/secret secret; ln -s / all; ln -s ../../../etc up
    ln -s /dev/zero zero; mkfifo fifo; ln /etc/hostname hard; echo x >'..\..\name'; echo x >"$(printf 'two\nlines')"
    mkdir -p "$(printf 'deep/%.0s' {{1..60}})"; echo x >"$(printf 'long%.0s' {{1..60}})"
    perl -e 'use Socket; socket S, AF_UNIX, SOCK_STREAM, 0; bind S, sockaddr_un("socket") or die $!'
    mkdir shut; echo x >shut/file; chmod 0 shut shut/file; touch -d 1900-01-01 old; touch -d 2400-01-01 young
    exit 0"""
    ended = machines.boot(script, files={"secret": secret.encode()}, patience=PATIENCE)
    whole(ended)
    inside = [member for member in ended.members if "/" in member.name]
    assert all(member.name.startswith(("client/logs", "simulator/logs")) for member in inside)
    assert not any(".." in member.name.split("/") for member in inside)
    assert all(member.isreg() or member.isdir() or member.issym() for member in inside)
    found = {member.name.removeprefix("client/logs/"): member for member in inside}
    assert {name for name, member in found.items() if member.issym()} == {"environ", "secret", "all", "up", "zero"}
    assert {"hard", "..\\..\\name", "two\nlines", "shut/file", "old", "young"} <= found.keys()
    assert not {"fifo", "socket"} & found.keys()
    assert secret.encode() not in ended.output


@pytest.mark.parametrize("target", ["/proc/1", DIRECTORY, "/../../..", "/dev", "logs"])
def test_a_link_in_the_place_of_a_directory_leads_nowhere_else(machines: Machines, target: str) -> None:
    secret = secrets.token_hex(16)
    ended = machines.boot(f"rm -r /logs; ln -s {target} /logs", files={"secret": secret.encode()}, patience=PATIENCE)
    whole(ended)
    assert secret.encode() not in ended.output
    assert not any(name.startswith("client/logs/parts") for name in ended.files)
