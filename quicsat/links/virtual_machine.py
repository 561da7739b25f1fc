"""Emulated links in virtual time: endpoints and simulator run in a user-mode Linux machine whose clock is simulated.

Its clock stands still while a program computes, so no other load of the host changes a result. The machine is a process
in a container without network and without capabilities. See docs/guide/virtual-time.md and virtual-time/README.md.
"""

import datetime
import itertools
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from quicsat.docker.archive import ArchiveLimits, pack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import Container, ContainerEvent, ContainerSpec, create_container
from quicsat.docker.daemon_images import DaemonImages, ImageProgram
from quicsat.links.artefact_limits import run_limits, trace_limits
from quicsat.links.client_side_traces import keep_client_trace
from quicsat.links.container_session import next_event
from quicsat.links.gateway_description import (
    KEYS,
    LOGS,
    SHARED_KEYS,
    SHARED_SAMPLES,
    SIDES,
    Layout,
    gateway_files,
    layout_of,
)
from quicsat.links.guest_description import (
    LOG_BYTES,
    PARTS,
    SECOND,
    SIMULATOR,
    SIMULATOR_LOGS,
    describe,
    further_parts,
    host_names,
    own_gateways,
)
from quicsat.links.guest_files import GuestOutput, pack_input, read_output
from quicsat.links.guest_roots import MOUNT, VOLUME, GuestRoots
from quicsat.links.session import CANNOT_EXECUTE, DIRECTORIES, EarlyEnd, InputOrigin, SessionRecord, SessionRequest
from quicsat.links.simulator_arguments import SERVER_SILENT, simulator_files
from quicsat.links.simulator_report import unpack_report
from quicsat.links.tcp_samples import SAMPLER, keep_samples
from quicsat.links.tunnel_traces import keep_endpoint_traces
from quicsat.model.emulated_link import Interval, SimulatorReport
from quicsat.model.errors import HarnessFault
from quicsat.model.evidence import COMPUTED_STATUS, Deadline, Exit
from quicsat.model.flow import part_name
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.run import Run
from quicsat.model.run_limits import wall_clock_limit
from quicsat.model.text import counted
from quicsat.model.units import MIB

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
"""When the clock of each machine begins; certificates are made for this moment."""
DIRECTORY = "run/virtual-time"
"""Where the machine's container holds its disks."""
MEMORY, MEMORY_PER_BYTE = 1024 * MIB, 12
"""Bytes of a machine's memory, beside a multiple of the size of the files: it also holds traces and logs."""
OVERHEAD = 512 * MIB
"""Bytes of its container beyond that."""
PROCESSES = 4096
READS, PAUSE = 20, 0.25
"""How often the output of a machine is asked for, and seconds in between. While podman unmounts the root of a container
that has ended, it says that the container has no such file."""
CPUS = 2
"""CPUs that programs see: as many as the machine has that quicsat asks for in real time."""
LEAST_MEMORY = 128 * MIB
"""Bytes that a machine has, however small the limit of its test case is: its kernel and the simulator need them."""
OUT_OF_MEMORY = (b"Out of memory", b"ran out of memory on the host side")
"""What the machine's kernel prints when it ends a program that asks for more memory than there is: the machine's own,
or pages that the host lets one process map (vm.max_map_count)."""
VICTIM = re.compile(rb"Out of memory: Killed process [^\n]* anon-rss:(\d+)kB, [^\n]* oom_score_adj:(-?\d+)")
"""The program that it ended: its memory, and the value by which virtual-time/init tells the parts apart."""
HARMLESS = re.compile("make_uml_dir: |Failed to initialize umid ")
"""How the lines begin that each machine prints at its start: it has no directory for the file with its process id."""
COMPUTED = b"virtual-time: a process of the guest is ended"
"""What the machine prints when it ends a process that computes without end."""
CPU_PATIENCE, CPU_FACTOR = 300, 5
"""Seconds of CPU time that one process may use, and a multiple of the simulated deadline beside them. With a CPU for
itself, a machine gets so far before ``wall_clock_limit`` is over; else, the host is to blame."""
GATEWAY_DISK = len(PARTS) + 2
"""Number of the block device with the root of gateways, after those of ``PARTS``; further endpoints follow."""
_numbers = itertools.count(1)


class VirtualSession:
    """One run in a machine of its own; see :class:`quicsat.links.session.Session`."""

    def __init__(self, request: SessionRequest, record: SessionRecord, container: Container) -> None:
        self._request = request
        self._record = record
        self._container = container
        self._output: GuestOutput | None = None

    def run(self) -> None:
        """Boot the machine and wait until it has powered off; the record gets what it reports."""
        request, record = self._request, self._record
        try:
            with record.phase("transfer"):
                request.control.on_client_start()
                run_machine(self._container, request)
        finally:
            request.control.on_client_end()
        with record.phase("collect"):
            self._output = _read(self._container, request)
        ends = _ends(self._output, self._container.output(), request)
        result = self._output.result
        with _readable_report():
            if "lost" in result:
                left_out = counted(int(result["lost"]), "file was", "files were")
                record.note(f"{left_out} left out: no room, or a name that is too long")
            record.add(timed_out=Deadline(result["timed_out"]) if "timed_out" in result else None)
        for (flow, role), end in ends.items():
            part = part_name(role, flow)
            record.end(role, end, flow)
            if _cannot_execute(end, self._output.text(part)):
                record.note(f"{part}: cannot be started: {_words(self._output.text(part))}")
        if record.timed_out is None and any(_held_up(record.exits_of(flow)) for flow in request.flows):
            record.add(timed_out=Deadline.TRANSFER)

    @contextmanager
    def fetch(self, role: Role, path: str, flow: int = 1) -> Iterator[Iterator[bytes]]:
        """See :meth:`quicsat.links.session.Session.fetch`."""
        assert self._output is not None
        yield self._output.chunks(part_name(role, flow), path)

    def output(self, role: Role, flow: int = 1) -> bytes:
        """See :meth:`quicsat.links.session.Session.output`."""
        assert self._output is not None
        return self._output.text(part_name(role, flow))

    def collect(self, directory: Path, client: Interval | None, /) -> SimulatorReport | None:
        """See :meth:`quicsat.links.session.Session.collect`."""
        output = self._output
        assert output is not None
        if "carried" not in output.result:
            return None

        def last_words() -> str:
            return _words(output.text(SIMULATOR)) or "without a word"

        limits = trace_limits(self._request.run.test_case)
        report = unpack_report(output.chunks(SIMULATOR, SIMULATOR_LOGS), directory, limits, client, last_words)
        for part, path in ((SAMPLER, LOGS), (SIMULATOR, SHARED_SAMPLES)):
            keep_samples(directory, output.chunks(part, path), limits)
        if self._request.run.test_case.emulated.vpn:
            shared = _layout(self._request).shared
            places = {gateway: (SIMULATOR, f"/{gateway}") if shared else (gateway, LOGS) for gateway in SIDES}
            logs = {gateway: output.chunks(*place) for gateway, place in places.items()}
            keep_endpoint_traces(directory, logs, limits)
        keep_client_trace(directory, self._request.run)
        return report

    def close(self) -> None:
        """Delete the copies of what the machine left."""
        if self._output is not None:
            self._output.close()


class VirtualTestbed:
    """Makes a machine for each run; several may exist at the same time."""

    def __init__(
        self,
        daemon: Daemon,
        images: Mapping[str, str],
        roots: GuestRoots,
        programs: Mapping[str, ImageProgram],
        cost_factor: float,
        number: int,
    ) -> None:
        """``images``: ids of ``simulator``, ``virtual-time`` and, if links have gateways, ``link-gateways``.

        ``programs``: by image id, added to when needed.

        ``number``: counted from 1; parallel testbeds have different ones, and use different CPUs.
        """
        self._daemon = daemon
        self._images = images
        self._roots = roots
        self._programs = dict(programs)
        self._cost_factor = cost_factor
        self._number = number

    def input_origin(self, run: Run) -> InputOrigin:
        """Inputs follow from the seed of the run."""
        return InputOrigin(run.seed, START)

    @contextmanager
    def session(self, request: SessionRequest, record: SessionRecord) -> Iterator[VirtualSession]:
        """See :meth:`quicsat.links.backend.Testbed.session`."""
        with self._machine(request) as container:
            session = VirtualSession(request, record, container)
            try:
                yield session
            finally:
                session.close()

    def exits(self, request: SessionRequest, patience: float) -> Mapping[Role, EarlyEnd]:
        """See :meth:`quicsat.links.backend.Testbed.exits`."""
        with self._machine(request, wait_for_ends=patience) as container:
            run_machine(container, request)
            output = _read(container, request)
            try:
                found = _ends(output, container.output(), request)
                ends: dict[Role, EarlyEnd] = {}
                for role in request.endpoints:
                    end = found.get((1, role), Exit(None))
                    text = output.text(role)
                    ends[role] = EarlyEnd(_words(text) if _cannot_execute(end, text) else end, text)
                return ends
            finally:
                output.close()

    @contextmanager
    def _machine(self, request: SessionRequest, *, wait_for_ends: float | None = None) -> Iterator[Container]:
        """The container of a machine with its disks, not yet started."""
        layout = _layout(request)
        images = {SIMULATOR: self._images["link-gateways" if layout.shared else SIMULATOR]}
        endpoints = {
            part_name(role, number): (role, number, endpoint)
            for number, flow in request.flows.items()
            for role, endpoint in flow.endpoints.items()
        }
        images |= {part: endpoint.image for part, (_, _, endpoint) in endpoints.items()}
        gateways = dict.fromkeys(own_gateways(layout), self._images.get("link-gateways", ""))
        roots = {part: self._roots.ensure(image) for part, image in (images | gateways).items()}
        programs = {part: self._program(image) for part, image in (images | gateways).items()}
        files: dict[str, bytes | Path] = {f"{SIMULATOR}/etc/hosts": host_names(SIMULATOR)}
        files |= {f"{part}/etc/hosts": host_names(role, flow) for part, (role, flow, _) in endpoints.items()}
        profiles = simulator_files(request.run.test_case.emulated)
        files |= {f"{SIMULATOR}/{path}": content for path, content in profiles.items()}
        for part, (_, _, endpoint) in endpoints.items():
            files |= {f"{part}/{path}": content for path, content in endpoint.files.items()}
        keys = gateway_files(request.run.test_case.emulated.vpn, self.input_origin(request.run))
        for gateway, own in keys.items():
            part, place = (SIMULATOR, SHARED_KEYS[gateway]) if layout.shared else (gateway, KEYS)
            files |= {f"{part}/{place}{path.removeprefix(KEYS)}": content for path, content in own.items()}
        directories = [
            f"{part}/{name}"
            for part, (_, _, endpoint) in endpoints.items()
            for name in (*DIRECTORIES, *endpoint.directories)
        ]
        memory = machine_memory(request)
        with ExitStack() as stack:
            description = describe(request, programs, cost_factor=self._cost_factor, wait_for_ends=wait_for_ends)
            disk = stack.enter_context(pack_input(description, files, directories))
            spec = ContainerSpec(
                name=f"quicsat-{self._daemon.campaign}-{next(_numbers)}-machine",
                image=self._images["virtual-time"],
                command=self._command(request, roots, memory),
                dropped_capabilities=("ALL",),
                memory=memory + OVERHEAD,
                pids=PROCESSES,
                volumes={VOLUME: f"{MOUNT}:ro"},
                log_bytes=LOG_BYTES,
            )
            container = stack.enter_context(create_container(self._daemon, spec))
            container.put(pack({f"{DIRECTORY}/input": disk}))
            yield container

    def _command(self, request: SessionRequest, roots: Mapping[str, str], memory: int) -> tuple[str, ...]:
        run = request.run
        further = [part_name(role, flow) for flow, role in further_parts(request)]
        size = run_limits(run.test_case).total
        return (
            "run",
            f"--memory={memory // MIB}",
            f"--output={-(-size // MIB) * MIB}",
            f"--cpu={self._number}",
            f"--cpu-seconds={round(CPU_PATIENCE + CPU_FACTOR * run.test_case.timeout)}",
            "--",
            f"time-travel-start={round(START.timestamp()) * SECOND}",
            f"seed={run.seed}",
            f"um_cpus={CPUS}",
            *(f"ubd{number}rc={roots[part]}" for number, part in enumerate(PARTS, start=2) if part in roots),
            *(f"ubd{GATEWAY_DISK}rc={root}" for root in {roots[part] for part in SIDES if part in roots}),
            *(f"ubd{number}rc={roots[part]}" for number, part in enumerate(further, start=GATEWAY_DISK + 1)),
        )

    def _program(self, image: str) -> ImageProgram:
        if image not in self._programs:
            self._programs[image] = DaemonImages(self._daemon).program(image)
        return self._programs[image]


class VirtualBackend:
    """Creates testbeds at one daemon; see :class:`quicsat.links.backend.LinkBackend`."""

    def __init__(self, daemon: Daemon, images: Mapping[str, str], cost_factor: float = 1.0) -> None:
        """``images``: as for a testbed; ``cost_factor``: of the CPU costs of all programs."""
        self._daemon = daemon
        self._images = images
        self._cost_factor = cost_factor
        self._roots = GuestRoots(daemon, images["virtual-time"])
        self._lock = threading.Lock()
        self._open: set[int] = set()
        """Numbers of the testbeds that are open."""

    @property
    def notes(self) -> tuple[str, ...]:
        """None."""
        return ()

    @contextmanager
    def open(self) -> Iterator[VirtualTestbed]:
        """A testbed; it holds nothing of the daemon between two runs."""
        with self._lock:
            number = next(each for each in itertools.count(1) if each not in self._open)
            self._open.add(number)
        try:
            yield VirtualTestbed(self._daemon, self._images, self._roots, {}, self._cost_factor, number)
        finally:
            with self._lock:
                self._open.discard(number)


def _layout(request: SessionRequest) -> Layout:
    return layout_of(request.run.test_case.emulated, len(request.flows))


def machine_memory(request: SessionRequest) -> int:
    """Bytes of the machine of a run, in which all of its programs are."""
    case = request.run.test_case
    if case.limits is not None and case.limits.memory is not None:
        return max(case.limits.memory, LEAST_MEMORY)
    return MEMORY + MEMORY_PER_BYTE * len(request.flows) * case.total_size


def run_machine(container: Container, request: SessionRequest) -> None:
    """Start a machine and wait until it has powered off.

    Raises :class:`HarnessFault` (virtual-machine-failed) if that takes too long, ``Interrupted`` if it is asked to.
    """
    container.start()
    events: SimpleQueue[ContainerEvent] = SimpleQueue()
    container.watch(events)
    patience = wall_clock_limit(request.run.test_case.timeout)
    deadline = time.monotonic() + patience
    while container.running():
        if time.monotonic() >= deadline:
            reason = f"the virtual machine still ran after {patience:.0f} s: {_said(container.output()) or 'no word'}"
            raise HarnessFault(ErrorCode.VIRTUAL_MACHINE_FAILED, reason)
        next_event(events, deadline, request.control.stop)


def _read(container: Container, request: SessionRequest) -> GuestOutput:
    limits = run_limits(request.run.test_case)
    own = ArchiveLimits(total=limits.total, files=limits.files, fault=ErrorCode.TRACE_LIMIT)
    try:
        for number in range(READS):
            time.sleep(PAUSE if number else 0)
            with container.fetch(f"/{DIRECTORY}/output") as disk:
                if first := next(disk, b""):
                    return read_output(itertools.chain([first], disk), own)
        raise HarnessFault(ErrorCode.VIRTUAL_MACHINE_FAILED, "the virtual machine ended without a report")
    except HarnessFault as fault:
        if fault.code != ErrorCode.VIRTUAL_MACHINE_FAILED:
            raise
        said = _said(container.output()) or f"exit status {container.exit().status}"
        reason = f"{fault.reason}: {said}"
        raise HarnessFault(ErrorCode.VIRTUAL_MACHINE_FAILED, reason) from fault


def _said(console: bytes) -> str:
    """The machine's panic, else its last line that it does not print at each start, without its time; may be empty."""
    lines = [line.partition(" ")[2].strip()[-300:] for line in console.decode(errors="replace").splitlines()]
    panic = next((line for line in lines if line.startswith("Kernel panic")), "")
    return panic or next((line for line in reversed(lines) if not HARMLESS.match(line)), "")


def _ends(output: GuestOutput, console: bytes, request: SessionRequest) -> dict[tuple[int, Role], Exit]:
    """How the endpoints ended that were started, by flow and role.

    Raises :class:`HarnessFault` if the machine itself, its simulator, a gateway or its cross traffic has failed.
    """
    result = output.result
    if "fault" in result:
        raise HarnessFault(ErrorCode.VIRTUAL_MACHINE_FAILED, f"the virtual machine failed: {result['fault']}")
    ends = {}
    for flow, role in itertools.product(request.flows, Role):
        end = _exit(part_name(role, flow), result, _victims(console), machine_memory(request))
        if end is not None:
            ends[flow, role] = end
    if any(words in console for words in OUT_OF_MEMORY) and not any(end.out_of_memory for end in ends.values()):
        raise HarnessFault(ErrorCode.VIRTUAL_MACHINE_FAILED, "the virtual machine ran out of memory")
    if COMPUTED in console:
        ends |= _computed(ends)
    for part in (*SIDES, SIMULATOR, "receiver", "sender"):
        status = result.get(f"{part}.status")
        silent = part == SIMULATOR and status == str(SERVER_SILENT)
        if status is not None and f"{part}.killed" not in result and not silent:
            words = _words(output.text(part)) or "without a word"
            name = f"{part} of the cross traffic" if part in ("receiver", "sender") else part
            raise HarnessFault(ErrorCode.SIMULATOR_FAILED, f"the {name} ended ({status}): {words}")
    return ends


def _victims(console: bytes) -> Mapping[str, int]:
    """Bytes that programs had which the kernel ended because there was no more memory, by their oom_score_adj."""
    found: Counter[str] = Counter()
    for kilobytes, priority in VICTIM.findall(console):
        found[priority.decode()] += 1024 * int(kilobytes)
    return found


def _exit(part: str, result: Mapping[str, str], victims: Mapping[str, int], memory: int) -> Exit | None:
    """How a program ended; None if it was never started. Raises :class:`HarnessFault` if the report is wrong.

    It ran out of memory itself if it had most of the ``memory`` of the machine, bytes.
    """
    if f"{part}.end" not in result:
        return None
    took = victims.get(result.get(f"{part}.oom_score_adj", ""), 0)
    with _readable_report():
        life = Interval(int(result[f"{part}.begin"]) / SECOND, int(result[f"{part}.end"]) / SECOND)
        return Exit(int(result[f"{part}.status"]), took > memory / 2, f"{part}.killed" in result, life)


def _computed(ends: Mapping[tuple[int, Role], Exit]) -> dict[tuple[int, Role], Exit]:
    """The endpoint that was ended because it computed without end: the first one that has failed. Nothing else ran."""
    failed = [(end.life.end, place) for place, end in ends.items() if end.status and not end.killed and end.life]
    return {place: replace(ends[place], status=COMPUTED_STATUS, killed=True) for _, place in sorted(failed)[:1]}


def _held_up(ends: Mapping[Role, Exit]) -> bool:
    """Whether an endpoint computed without end before the other one had finished."""
    done = any(end.status == 0 and not end.killed for end in ends.values())
    return not done and any(end.status == COMPUTED_STATUS and end.killed for end in ends.values())


@contextmanager
def _readable_report() -> Iterator[None]:
    """Raises :class:`HarnessFault` (virtual-machine-failed) for a value of the report that it cannot have."""
    try:
        yield
    except (KeyError, ValueError, OverflowError) as error:
        reason = f"the virtual machine left a report that cannot be read: {error}"
        raise HarnessFault(ErrorCode.VIRTUAL_MACHINE_FAILED, reason) from error


def _cannot_execute(end: Exit, text: bytes) -> bool:
    return end.status == CANNOT_EXECUTE and b" guest: " in text


def _words(text: bytes) -> str:
    """The last line of what a program wrote, without its time."""
    lines: Iterable[str] = text.decode(errors="replace").strip().splitlines()
    return next((line.partition(" ")[2].strip()[-300:] for line in reversed([*lines])), "")
