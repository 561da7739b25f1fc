"""Description of a run for the virtual machine: what its three containers are, and all deadlines in simulated time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from quicsat.docker.containers import CONTRACT_CAPABILITIES
from quicsat.docker.daemon_images import ImageProgram
from quicsat.links import gateway_description
from quicsat.links.addresses import ADDRESSES, CLIENT, GATEWAYS, hosts, interfaces
from quicsat.links.cross_traffic import ROUTE
from quicsat.links.gateway_description import Layout, layout_of
from quicsat.links.memlock import MEMLOCK
from quicsat.links.session import LOG_GRACE, READY_TIMEOUT, STOP_GRACE, SessionRequest
from quicsat.links.simulator_arguments import CROSS_PORT, simulator_environment
from quicsat.links.tcp_samples import COMMAND, LOGS, SAMPLER, options, sampled_part
from quicsat.model.cpu_cost import DEFAULT, CostModel
from quicsat.model.emulated_link import CrossTraffic
from quicsat.model.flow import part_name
from quicsat.model.implementation import Role
from quicsat.model.perturbation import WAKE_UP_LATENCIES
from quicsat.model.units import MIB

SECOND = 1_000_000_000
"""Nanoseconds."""
SETTLE = 5.0
"""Seconds between the set-up of the networks and the first program: IPv6 announcements are over then."""
LOG_BYTES = 2 * MIB
"""Of the output of each program, as ``ContainerSpec.log_bytes``."""
SIMULATOR_LOGS = "/logs"
RUNNING, CONNECTED = '"event":"running"', '"event":"connected"'
"""What the simulator and the sender of cross traffic print when they have begun."""
SIMULATOR = "simulator"
PARTS = (Role.CLIENT, SIMULATOR, Role.SERVER)
"""Containers with an image and a network of their own, beside gateways, which share an image."""
SEEDED = {"OPENSSL_ia32cap": "~0x4000000000000000:~0x40000"}
"""Hides RDRAND and RDSEED from BoringSSL, AWS-LC and OpenSSL (bit 30 of ECX of CPUID 1, bit 18 of EBX of CPUID 7), so
that their random numbers come from the kernel, which the run's seed determines."""
CAPABILITIES = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8,
    "NET_BIND_SERVICE": 10, "NET_ADMIN": 12, "NET_RAW": 13, "SYS_CHROOT": 18, "SYS_NICE": 23, "MKNOD": 27,
    "AUDIT_WRITE": 29, "SETFCAP": 31, "SYS_ADMIN": 21,
}  # fmt: skip
"""Numbers of capabilities (linux/capability.h)."""
SIMULATOR_RIGHTS = frozenset({"NET_ADMIN", "NET_RAW", "SYS_NICE"})
DOCKER_DEFAULT = frozenset(CAPABILITIES) - {"NET_ADMIN", "SYS_ADMIN", "SYS_NICE"}
"""Capabilities of a container that asks for no others."""
ENDPOINT = (DOCKER_DEFAULT | {*CONTRACT_CAPABILITIES.added}) - {*CONTRACT_CAPABILITIES.dropped}


@dataclass(frozen=True)
class GuestProgram:
    """A program in the machine."""

    program: ImageProgram
    environment: Mapping[str, str]
    """Beside that of the image."""
    capabilities: frozenset[str]
    terminal: bool = False
    collected: tuple[str, ...] = ()
    """Directories that are handed back."""
    costs: CostModel = DEFAULT
    cost_factor: float = 1.0
    """Of all its costs."""


def describe(
    request: SessionRequest,
    programs: Mapping[str, ImageProgram],
    *,
    cost_factor: float = 1.0,
    wait_for_ends: float | None = None,
) -> Iterator[tuple[str, str]]:
    """Keys and values of the description; ``programs`` by part: of endpoints, of ``simulator``, and of each gateway.

    ``cost_factor``: of the CPU costs of all programs.

    ``wait_for_ends``: seconds after which endpoints are killed that were started at once, with a simulator that waits
    for no server; None for a transfer.
    """
    run = request.run
    transfer = wait_for_ends is None
    yield "mode", "transfer" if transfer else "exits"
    yield "ready event", RUNNING
    yield from _times(
        {
            "ready timeout": READY_TIMEOUT,
            "transfer timeout": run.test_case.timeout if wait_for_ends is None else wait_for_ends,
            "linger": request.linger,
            "stop grace": STOP_GRACE,
            "log grace": LOG_GRACE,
            "settle": SETTLE,
        }
    )
    yield "output limit", str(LOG_BYTES)
    layout = layout_of(run.test_case.emulated, len(request.flows))
    yield from _interfaces(request, layout)
    sampled = sampled_part(run, layout) if transfer else None
    simulator = partial(GuestProgram, programs[SIMULATOR], cost_factor=cost_factor)
    environment = simulator_environment(run, wait_for_server=transfer)
    if layout.shared:
        yield from _with_gateways(simulator, environment, layout, sampled)
    else:
        yield from _part(SIMULATOR, simulator(environment, SIMULATOR_RIGHTS, collected=(SIMULATOR_LOGS,)))
    yield from _endpoints(request, programs, cost_factor)
    endpoints = [*Role, *(part_name(role, number) for number, role in further_parts(request))]
    yield from _sysctls(dict.fromkeys(endpoints, layout.endpoint_sysctls))
    if layout.endpoint_mtu:
        yield from ((f"{endpoint}.mtu", str(layout.endpoint_mtu)) for endpoint in endpoints)
    gateways = own_gateways(layout)
    yield from _sysctls(dict.fromkeys(gateways, layout.gateway_sysctls) | {SIMULATOR: layout.simulator_sysctls})
    yield from _gateways(layout, {gateway: programs[gateway] for gateway in gateways}, cost_factor)
    if sampled is not None and not (layout.shared and sampled in layout.gateways):
        yield "sampled", sampled
        yield from _part(SAMPLER, simulator({}, frozenset(), collected=(LOGS,)), COMMAND)
    traffic = run.test_case.emulated.cross_traffic
    if traffic is not None:
        yield from _cross_traffic(simulator({}, frozenset({"NET_ADMIN"})), traffic)


def own_gateways(layout: Layout) -> tuple[str, ...]:
    """Gateways with a network of their own: the machine has none behind the bridges of several flows."""
    return () if layout.shared else layout.gateways


def _interfaces(request: SessionRequest, layout: Layout) -> Iterator[tuple[str, str]]:
    """Addresses of all parts; those of the simulator with shared gateways are its own matter."""
    for part in (*PARTS, *own_gateways(layout)):
        if part != SIMULATOR:
            yield from _addresses(part, ADDRESSES[part])
        elif not layout.shared:
            yield from _addresses(part, layout.simulator_addresses)
    if layout.client_side and not layout.shared:
        yield "client side", "1"
    for number, role in further_parts(request):
        yield from _addresses(part_name(role, number), interfaces(role, number))


def _with_gateways(
    simulator: Callable[..., GuestProgram], environment: Mapping[str, str], layout: Layout, sampled: str | None
) -> Iterator[tuple[str, str]]:
    """The simulator with shared gateways as one program."""
    samples = options(gateway_description.SHARED_SAMPLES) if sampled in layout.gateways else ()
    own = gateway_description.shared_environment(layout, samples)
    left = (SIMULATOR_LOGS, *(f"/{gateway}" for gateway in layout.gateways), gateway_description.SHARED_SAMPLES)
    rights = frozenset(gateway_description.SHARED_CAPABILITIES)
    yield from _part(SIMULATOR, simulator({**environment, **own}, rights, collected=left), gateway_description.SHARED)


def _gateways(layout: Layout, programs: Mapping[str, ImageProgram], cost_factor: float) -> Iterator[tuple[str, str]]:
    """``programs``: of each gateway."""
    for gateway, image in programs.items():
        rights, left = frozenset(gateway_description.CAPABILITIES), (gateway_description.LOGS,) if layout.vpn else ()
        program = GuestProgram(image, layout.gateway_environment, rights, collected=left, cost_factor=cost_factor)
        yield from _part(gateway, program, gateway_description.gateway_command(gateway, layout))
    if programs:
        yield "gateway event", gateway_description.READY
        yield from _times({"gateway grace": gateway_description.STOP_GRACE})


def _endpoints(
    request: SessionRequest, programs: Mapping[str, ImageProgram], cost_factor: float
) -> Iterator[tuple[str, str]]:
    by = request.perturbation
    for number, flow in request.flows.items():
        for role, endpoint in flow.endpoints.items():
            name = part_name(role, number)
            stores = role in request.run.test_case.storing
            collected = ("/logs", "/downloads") if stores else ("/logs",)
            program = GuestProgram(
                programs[name], endpoint.environment, ENDPOINT, terminal=True, collected=collected,
                costs=endpoint.costs, cost_factor=cost_factor * by.cpu(role),
            )  # fmt: skip
            yield from _part(name, program, hostname=str(role))
            if by.wake_up:
                yield f"{name}.latency seed", str(by.wake_up_seed + (role is Role.SERVER))
                yield f"{name}.latencies", " ".join(str(round(each * by.wake_up)) for each in WAKE_UP_LATENCIES)
        if flow.start or number > 1:
            yield from _times({f"{part_name(Role.CLIENT, number)}.start": flow.start})


def further_parts(request: SessionRequest) -> list[tuple[int, Role]]:
    """Flow and role of the endpoints beside those of the first flow, in the order of their disks."""
    return [(number, role) for number in request.flows if number > 1 for role in (Role.CLIENT, Role.SERVER)]


def host_names(part: str, flow: int = 1) -> bytes:
    """The file /etc/hosts of a part; of an endpoint, of a flow counted from 1."""
    entries = [("localhost", "127.0.0.1"), ("localhost", "::1"), *hosts(GATEWAYS[part], flow)]
    return "".join(f"{address}\t{name}\n" for name, address in entries).encode()


def _addresses(part: str, interfaces: str) -> Iterator[tuple[str, str]]:
    """``interfaces``: as in ``ADDRESSES``."""
    for interface in interfaces.split(";"):
        name, _, addresses = interface.partition("=")
        yield from ((f"{part}.address", f"{name} {address}") for address in addresses.split(","))


def _sysctls(parameters: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """``parameters``: kernel parameters by part."""
    for part, values in parameters.items():
        yield from ((f"{part}.sysctl", f"{name}={value}") for name, value in values.items())


def _times(times: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    return ((name, str(round(value * SECOND))) for name, value in times.items())


def _part(
    name: str, guest: GuestProgram, command: Iterable[str] = (), *, hostname: str = ""
) -> Iterator[tuple[str, str]]:
    own = "sim" if name == SIMULATOR else hostname or name
    terminal = {"TERM": "xterm"} if guest.terminal else {}
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOSTNAME": own,
        **terminal,
        **SEEDED,
        **guest.program.environment,
        **guest.environment,
    }
    yield from ((f"{name}.argument", word) for word in (command or guest.program.command))
    yield from ((f"{name}.environment", f"{key}={value}") for key, value in environment.items())
    yield f"{name}.directory", guest.program.directory
    yield f"{name}.hostname", own
    yield f"{name}.user", guest.program.user
    yield f"{name}.capabilities", str(sum(1 << CAPABILITIES[each] for each in guest.capabilities))
    yield f"{name}.memlock", str(MEMLOCK)
    yield f"{name}.terminal", str(int(guest.terminal))
    yield from ((f"{name}.collect", path) for path in guest.collected)
    yield f"{name}.costs", " ".join(str(round(cost * guest.cost_factor * SECOND)) for cost in guest.costs.in_order)


def _cross_traffic(program: GuestProgram, traffic: CrossTraffic) -> Iterator[tuple[str, str]]:
    """Receiver and sender of the competing flow, in the networks of client and server."""
    send = (f"--host={CLIENT[0]}", f"--congestion-control={traffic.congestion_control}")
    ends = {"receiver": (GATEWAYS["client"][0], "receive"), "sender": (GATEWAYS["server"][0], "send", *send)}
    for name, (gateway, *words) in ends.items():
        command = ("sh", "-c", ROUTE, gateway, "tcp-stream", *words, f"--port={CROSS_PORT}")
        yield from _part(name, program, command)
    yield "connected event", CONNECTED
