#!/usr/bin/env python3
"""Shows whether a run in virtual time gives the same packets on another processor, which QEMU emulates.

  bench/other_processor.py -o DIR --pairs quic-go:quic-go quiche:quic-go --processors max Haswell-v4

It makes a run of each pair on this machine, and copies what the virtual machine starts with. It then starts the same
virtual machine in a machine that QEMU emulates without hardware virtualization, once per processor. A run there takes
some minutes. The processor needs XSAVE. Needs gcc, cpio and qemu-system-x86_64. `apt-get download` and
`dpkg-deb --extract` bring the kernel of the emulated machine, such as linux-image-6.18.12+deb13-cloud-amd64; kernels
older than 6.18 are not tested.
"""
# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import hashlib
import io
import json
import lzma
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import docker
from docker.models.containers import Container

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from quicsat.links.guest_roots import MOUNT, VOLUME
from quicsat.report.table import Column, Table, render

HERE = Path(__file__).resolve().parent
DISKS = ("input", "output", "ubd2", "ubd3", "ubd4")
"""In the order of the devices /dev/vda, /dev/vdb, …"""
MODULES = ("virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk")
LONGEST = 1800.0
"""Seconds for a run in an emulated machine."""
TRACES = ("trace_node_left.pcap", "trace_node_right.pcap")


@dataclass(frozen=True)
class Machine:
    """What a virtual machine was started with, and the packets of its run."""

    command: tuple[str, ...]
    """The kernel and its parameters."""
    files: Path
    """Directory with the kernel, the first file system, and the disks."""
    output: int
    """Bytes of the sparse disk that it writes to."""
    packets: str
    """Digest of both traces."""


def main() -> int:
    """Exit status: 0 all packets are the same, 1 some are not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--pairs", nargs="+", default=["quic-go:quic-go", "quiche:quic-go"], metavar="SERVER:CLIENT")
    parser.add_argument("--test-case", default="terrestrial", help="name or file of a test case")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--processors", nargs="+", default=["max", "EPYC", "Haswell-v4"], help="as for qemu -cpu")
    parser.add_argument("--kernel", type=Path, required=True, help="where a package linux-image-… was unpacked")
    options = parser.parse_args()
    missing = [name for name in ("gcc", "cpio", "qemu-system-x86_64") if shutil.which(name) is None]
    if missing or not list(options.kernel.rglob("vmlinuz-*")):
        raise SystemExit(f"missing: {', '.join(missing) or f'vmlinuz-… below {options.kernel}'}")
    rows, same = list[tuple[str, str, str]](), True
    machines = dict[str, tuple[Path, Machine]]()
    for pair in options.pairs:
        place = options.output / pair.replace(":", "_")
        server, _, client = pair.partition(":")
        machines[pair] = place, native(place, server, client, options.test_case, options.seed)
    print("The emulated machines need no Docker daemon: other campaigns may use it now.", flush=True)
    for pair, (place, machine) in machines.items():
        rows.append((pair, "this one", machine.packets))
        for processor in options.processors:
            packets = emulated(machine, place / processor, processor, options.kernel)
            same &= packets == machine.packets
            rows.append((pair, processor, packets))
            print(f"{pair}, {processor}: {'the same' if packets == machine.packets else 'other'} packets", flush=True)
    columns = (Column("server and client"), Column("processor"), Column("digest of the packets"))
    print(render(Table("processors", "Packets by processor", columns, tuple(rows), ()), "text"))
    (options.output / "packets.json").write_text(json.dumps(rows, indent=1))
    return 0 if same else 1


def native(place: Path, server: str, client: str, test_case: str, seed: int) -> Machine:
    """Make a run on this machine, and copy what its virtual machine starts with while it runs."""
    results = place / "results"
    words = ["-s", server, "-c", client, "-t", test_case, "--seed", str(seed), "--repetitions", "1"]
    how = ["--no-qlog", "--skip-compliance-check", "--clock", "virtual", "--images", "build", "--log-dir", str(results)]
    command = [sys.executable, str(ROOT / "run.py"), "run", *words, *how]
    files = place / "files"
    files.mkdir(parents=True)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as run:
        container = _machine_of(run)
        arguments = tuple(map(str, container.attrs["Config"]["Cmd"]))
        _copy(container, "/run/virtual-time/input", files / "input")
    if run.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {run.returncode}")
    found = [re.fullmatch(r"(ubd\d+)rc=(/.+)", word) for word in arguments]
    paths = {"kernel": "/linux", "guest.cpio": "/guest.cpio", **{each[1]: each[2] for each in found if each}}
    same = docker.from_env().containers.create(
        container.attrs["Image"], volumes={VOLUME: {"bind": MOUNT, "mode": "ro"}}
    )
    try:
        for name, path in paths.items():
            _copy(same, path, files / name)
    finally:
        same.remove()
    before = dict(word.removeprefix("--").split("=") for word in arguments[1 : arguments.index("--")])
    given = [re.sub(rf"^(ubd\d+)rc={MOUNT}/.+", r"\1rc=\1", word) for word in arguments[arguments.index("--") + 1 :]]
    fixed = ["time-travel=inf-cpu", "seccomp=on", "noreboot", "quiet", "loglevel=4", "panic=-1"]
    disks = ["ubd0r=input", "ubd1=output"]
    kernel = ["./kernel", "initrd=/guest.cpio", f"mem={before['memory']}M", *fixed, *disks, *given]
    packets = _digest([next(results.rglob(name)).read_bytes() for name in TRACES])
    return Machine(tuple(kernel), files, int(before["output"]), packets)


def _machine_of(run: subprocess.Popen[bytes]) -> Container:
    """The container of the virtual machine, once it runs."""
    engine = docker.from_env()
    while run.poll() is None:
        for container in engine.containers.list():
            if container.name and re.fullmatch(r"quicsat-.+-machine", container.name):
                return container
        time.sleep(0.05)
    raise SystemExit(f"the run ended with status {run.returncode} before its virtual machine was found")


def _copy(container: Container, path: str, target: Path) -> None:
    chunks, _ = container.get_archive(path)
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        content = archive.extractfile(archive.getmembers()[0])
        assert content
        target.write_bytes(content.read())


def emulated(machine: Machine, place: Path, processor: str, kernel: Path) -> str:
    """The digest of the packets of the same run in an emulated machine."""
    place.mkdir()
    first = place / "first"
    first.mkdir()
    subprocess.run(["gcc", "-O2", "-static", "-o", first / "init", HERE / "emulated_host.c"], check=True)
    modules = [path for name in MODULES for path in kernel.rglob(f"{name}.ko*")]
    for path in modules:
        text = path.read_bytes()
        if path.suffix == ".xz":
            text = lzma.decompress(text)
        (first / path.name.partition(".")[0]).write_bytes(text)
    (first / "modules").write_text("".join(f"/{path.name.partition('.')[0]}\n" for path in modules))
    (first / "command").write_text("".join(f"{word}\n" for word in machine.command))
    for name in ("kernel", "guest.cpio"):
        (first / name).write_bytes((machine.files / name).read_bytes())
    (first / "kernel").chmod(0o755)
    listed = "\n".join(str(path.relative_to(first)) for path in sorted(first.rglob("*")))
    with (place / "first.cpio").open("wb") as packed_files:
        words = ["cpio", "--create", "--format=newc", "--quiet"]
        subprocess.run(words, cwd=first, input=listed.encode(), stdout=packed_files, check=True)
    with (place / "output").open("wb") as disk:
        disk.truncate(machine.output)
    drives: list[str] = []
    for name in DISKS:
        file = (place if name == "output" else machine.files) / name
        kept = "" if name == "output" else ",readonly=on"
        drives += ["-drive", f"file={file},if=virtio,format=raw,cache=unsafe{kept}"]
    qemu = [
        *(
            "qemu-system-x86_64",
            "-accel",
            "tcg",
            "-cpu",
            processor,
            "-m",
            "4G",
            "-smp",
            "1",
            "-nographic",
            "-no-reboot",
        ),
        *("-kernel", str(next(kernel.rglob("vmlinuz-*"))), "-initrd", str(place / "first.cpio"), "-net", "none"),
        *("-append", "console=ttyS0 panic=-1 loglevel=4 mitigations=off"),
    ]
    with (place / "console").open("wb") as console:
        subprocess.run(
            [*qemu, *drives], stdin=subprocess.DEVNULL, stdout=console, stderr=console, check=True, timeout=LONGEST
        )
    try:
        return _digest(_traces(place / "output"))
    except (tarfile.TarError, KeyError) as error:
        raise SystemExit(f"no packets from the emulated processor {processor}; see {place / 'console'}") from error


def _traces(disk: Path) -> list[bytes]:
    """Both traces on the disk that a virtual machine has written to. Raises TarError or KeyError if there are none."""
    with tarfile.open(disk, "r:") as archive:
        files = {Path(member.name).name: member for member in archive if member.isfile()}
        return [content.read() for name in TRACES if (content := archive.extractfile(files[name]))]


def _digest(traces: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(traces)).hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(main())
