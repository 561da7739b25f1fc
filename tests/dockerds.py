"""Docker daemons with identities of their own, in network namespaces of their own, and programs beside them."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from quicsat.docker.client import Daemon
from quicsat.docker.containers import remove_container
from quicsat.docker.daemon_images import DaemonImages
from quicsat.model.errors import MachineError

PATIENCE = 60.0
DEFAULT_GROUP = "/docker"


class LaboratoryError(MachineError):
    """It cannot be raised here."""


def call(*words: str | Path, check: bool = True) -> str:
    """What a command says on its standard output; raises :class:`LaboratoryError` if it fails."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise LaboratoryError(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def inside(namespace: str) -> list[str]:
    """What stands before a command that is to run in a network namespace."""
    return ["nsenter", f"--net=/run/netns/{namespace}"]


def wait_for(ready: Callable[[], bool], what: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until a process is ``ready``; raises :class:`LaboratoryError` with its last words if it is not."""
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline or process.poll() is not None:
            raise LaboratoryError(f"{what} did not come up: {log.read_text(errors='replace')[-500:]}")
        time.sleep(0.1)


@contextmanager
def running(
    command: Sequence[str], log: Path, grace: float = 20, **options: object
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is asked to end when the block is left, and killed if it has not after ``grace`` seconds."""
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
                                   **options)  # type: ignore[call-overload]  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def specimen(source: Daemon, image: str) -> Iterator[str]:
    """A container that does nothing and that no campaign sweeps; its id."""
    config = source.slow.create_host_config(network_mode="none")
    created = source.slow.create_container(
        image, ["sleep", "infinity"], labels={"quicsat-lab": "1"}, host_config=config
    )["Id"]
    try:
        source.slow.start(created)
        yield created
    finally:
        remove_container(source, created)


def group_of(source: Daemon, container: str) -> str:
    """The cgroup in which a running container's own one lies, in the words of ``dockerd --cgroup-parent``.

    Daemons that put theirs there have the same share of the CPUs, and of their time for real-time programs.
    """
    pid = int(source.quick.inspect_container(container)["State"]["Pid"])
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:  # another machine's
        return DEFAULT_GROUP
    for line in lines:
        path = PurePosixPath(line.split(":", 2)[2])
        if container in path.name:
            return path.parent.name if path.suffix == ".scope" else str(path.parent)
    return DEFAULT_GROUP


def group_at(source: Daemon, reference: str) -> str:
    """The same of all containers of a daemon, found with one of an image that is there."""
    image = DaemonImages(source).find(reference)
    if image is None:
        raise LaboratoryError(f"{reference} is not at {source.url}")
    with specimen(source, image.id) as container:
        return group_of(source, container)


def bring(source: Daemon, target: Daemon, references: Collection[str]) -> None:
    """Copy images from one daemon to another, in one archive, so that layers that they share are copied once.

    Raises :class:`LaboratoryError` if one is not there or cannot be copied.
    """
    for reference in references:
        if DaemonImages(source).find(reference) is None:
            raise LaboratoryError(f"{reference} is not at {source.url}")
    with subprocess.Popen(["docker", "-H", source.url, "save", *references], stdout=subprocess.PIPE) as saved:
        loaded = subprocess.run(
            ["docker", "-H", target.url, "load", "--quiet"], stdin=saved.stdout, capture_output=True
        )
    if saved.returncode or loaded.returncode:
        raise LaboratoryError(f"images could not be copied to {target.url}: {loaded.stderr.decode()}")


def dockerd_command(folder: Path, group: str, *options: str) -> list[str]:
    """A daemon all of whose files are below ``folder``: its socket is ``docker.sock``."""
    return [
        "dockerd", "-H", f"unix://{folder}/docker.sock", *options, "--data-root", f"{folder}/data",
        "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid", "--cgroup-parent", group,
    ]  # fmt: skip


@contextmanager
def dockerd(name: str, namespace: str, folder: Path, group: str, options: Sequence[str] = ()) -> Iterator[str]:
    """A Docker daemon with an identity of its own and containers in a cgroup; the URL of its socket."""
    own = folder / name
    (own / "etc").mkdir(parents=True)
    socket = own / "docker.sock"
    script = f"mount --bind {own}/etc /etc/docker && exec {' '.join(dockerd_command(own, group, *options))}"
    command = [*inside(namespace), "unshare", "-m", "sh", "-c", script]
    with running(command, own / "log") as process:
        wait_for(socket.exists, f"the daemon of {name}", process, own / "log")
        yield f"unix://{socket}"
