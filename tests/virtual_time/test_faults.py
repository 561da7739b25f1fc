"""Inputs that no guest can use, and a panic of its kernel: each ends soon, and says why."""

import io
import re
import tarfile

import pytest

from quicsat.model.units import MIB
from tests.virtual_time.machine import Machines, description, disk, input_disk

PATIENCE = 60
STOP = """
while :; do
    for stat in /proc/[0-9]*/stat; do
        read -r process name state _ _ _ _ _ _ _ _ _ _ used _ 2>/dev/null <"$stat" || continue
        [[ $name$state == "(uml-userspace)R" ]] && ((used >= 100)) && kill -STOP "$process" && exit
    done
done
"""
"""Stops the process of the host for which the guest's kernel waits: it has computed for a second for the client.

Any other process that runs may belong to the guest's first program, which the kernel needs again only after the client.
"""
KILL = """
while :; do
    for stat in /proc/[1-9][0-9][0-9]*/stat; do
        read -r process name _ parent _ 2>/dev/null <"$stat" || continue
        [[ $name$parent != "(linux)1" ]] || kill -KILL "$process"
    done
done
"""
"""Kills processes of the host that the guest's kernel has made and that have not begun: they still have its name."""


def archive(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """An archive of headers and contents, in the format that the guest reads."""
    with io.BytesIO() as target, tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for header, content in entries:
            tar.addfile(header, io.BytesIO(content))
        tar.close()
        return target.getvalue()


def file(name: str, content: bytes = b"", **more: object) -> tuple[tarfile.TarInfo, bytes]:
    """An entry of an archive."""
    header = tarfile.TarInfo(name)
    header.size = len(content)
    for key, value in more.items():
        setattr(header, key, value)
    return header, content


RUN = file("run", description("exit 0"))


def damaged(place: int, text: bytes) -> bytes:
    """An archive with other bytes in its first header."""
    good = archive(RUN)
    return good[:place] + text + good[place + len(text) :]


INPUTS = {
    "nothing": (b"", "the input has no description"),
    "no archive": (b"x" * 512, "the input is no archive"),
    "a wrong checksum": (damaged(100, b"7"), "the input is no archive"),
    "an early end": (archive(file("run", bytes(MIB)))[:8192], "the input ends early"),
    "a long description": (archive(file("run", bytes(2 * MIB))), "the description is too long"),
    "an entry without value": (archive(file("run", b"mode\0")), 'description: no value in "mode"'),
    "an unknown key": (archive(file("run", b"colour=red\0")), 'description: unknown key or value: "colour" is "red"'),
    "a number that is none": (archive(file("run", b"settle=soon\0")), 'description: settle is "soon"'),
    "too few latencies": (
        archive(file("run", b"client.latencies=1 2\0")), "description: latencies has too few numbers",
    ),
    "too many costs": (
        archive(file("run", b"client.costs=1 2 3 4 5 6 7 8 9 10\0")), "description: costs has too many numbers",
    ),
    "no program": (archive(file("run", b"ready event=x\0")), "description: the client has no program"),
    "a file of nobody": (archive(file("intruder/x"), RUN), "input: intruder/x belongs to no container"),
    "a file without owner": (archive(file("x"), RUN), "input: x belongs to no container"),
    "a link": (
        archive(file("client/x", type=tarfile.SYMTYPE, linkname="/etc"), RUN),
        "input: client/x is neither file nor directory",
    ),
    "a device": (
        archive(file("client/x", type=tarfile.BLKTYPE, devmajor=98, devminor=16), RUN),
        "input: client/x is neither file nor directory",
    ),
    "a directory in the place of a file": (archive(file("client/etc", b"x"), RUN), "input: etc: Is a directory"),
}  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_that_cannot_be_used(machines: Machines, name: str) -> None:
    content, words = INPUTS[name]
    ended = machines.boot(archive=disk(content) or bytes(4096), patience=PATIENCE)
    assert ended.status == 0
    assert f"guest: {words}" in ended.console
    assert ended.result["fault"].startswith(words)


def test_no_name_of_the_input_leads_out_of_its_container(machines: Machines) -> None:
    names = ("client/../../escaped", "client//absolute", "client/proc/../../../up/there")
    script = "ls /escaped /absolute /up/there"
    content = archive(*(file(name, b"x") for name in names), file("run", description(script)))
    ended = machines.boot(archive=disk(content), patience=PATIENCE)
    assert ended.result["client.status"] == "0"
    assert ended.said.split() == ["/absolute", "/escaped", "/up/there"]


def test_a_small_output(machines: Machines) -> None:
    ended = machines.boot("exit 0", output=8192, patience=PATIENCE)
    assert ended.status == 0
    assert "guest: the output has no more than 8192 bytes" in ended.console


def test_a_panic_ends_the_kernel(machines: Machines) -> None:
    """As process 1 of its container the kernel does not get the signal that it sends itself."""
    ended = machines.boot("exit 0", parameters=["rdinit=/nothing"], patience=PATIENCE)
    assert ended.status == 134
    assert "Kernel panic" in ended.console


def test_a_guest_that_hangs_ends(machines: Machines) -> None:
    with machines.guest({"input": input_disk("while :; do :; done")}) as identity:
        api = machines.daemon.slow
        api.start(identity)
        api.exec_start(api.exec_create(identity, ["bash", "-c", STOP])["Id"])
        assert api.wait(identity, timeout=None)["StatusCode"] == 1
        console = api.logs(identity).decode(errors="replace")
    assert "virtual-time: the guest is ended: all of it slept for 20 s (kernel and processes: S" in console


def boot_while_processes_are_killed(machines: Machines) -> str:
    """The console of a guest some of whose processes of the host may be killed before they begin."""
    script = "for ((number = 0; number < 1000; number++)); do (:); done; exit 7"
    with machines.guest({"input": input_disk(script)}) as identity:
        api = machines.daemon.slow
        api.start(identity)
        api.exec_start(api.exec_create(identity, ["bash", "-c", KILL])["Id"], detach=True)
        assert api.wait(identity, timeout=None)["StatusCode"] == 0
        return str(api.logs(identity).decode(errors="replace"))


def test_a_process_of_the_host_that_ends_before_it_begins_is_started_again(machines: Machines) -> None:
    """The kernel hears of its end before it knows its number. On a busy host, a guest may lose none: then another."""
    consoles = (boot_while_processes_are_killed(machines) for _ in range(6))
    assert any(re.search(r"um: process \d+ of the host has ended, status 0x9\b", console) for console in consoles)
