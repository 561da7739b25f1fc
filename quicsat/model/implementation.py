"""Implementations, roles, protocols and variants; frozen values."""

from dataclasses import dataclass

from quicsat.model.cpu_cost import NOT_MEASURED, CpuCost
from quicsat.model.names import folder_name
from quicsat.model.package import Package
from quicsat.model.role import Protocol as Protocol  # they belong to an implementation, but need nothing of it
from quicsat.model.role import Role as Role

OWN_IMAGES = ("simulator", "link-tools", "virtual-time", "link-gateways")
"""Names of quicsat's own images, which no implementation may have; all but the first are built when runs need them."""


@dataclass(frozen=True)
class CongestionControl:
    """Congestion control algorithms of an implementation; unknown values are None or empty."""

    default: str | None = None
    known: tuple[str, ...] = ()
    """Names of those that can be selected, or that are built in."""
    hystart: bool | None = None
    """Whether slow start is left before a loss (HyStart, RFC 9406)."""
    source: str = ""
    """Source of this information: text or an address."""
    date: str = ""
    """Date of the source, YYYY-MM-DD."""


@dataclass(frozen=True)
class Variant:
    """Other parameters for an implementation's image, for example another congestion control."""

    name: str
    server: str = ""
    client: str = ""
    """Words for SERVER_PARAMS and CLIENT_PARAMS; a variant supports the roles for which it has parameters."""
    congestion_control: str | None = None


@dataclass(frozen=True)
class Contract:
    """Variables of the endpoint contract that most images do not read (docs/reference/endpoint-contract.md)."""

    protocols: tuple[str, ...] = ()
    """PROTOCOLS: application protocols to negotiate, the preferred one first; empty leaves the variable empty."""
    version: str = ""
    """VERSION: the QUIC version, ``0x1``, for images that expect it; empty leaves the variable out."""


@dataclass(frozen=True)
class BuildArgument:
    """An argument (``ARG``) of a Dockerfile with another value than its default."""

    name: str
    value: str


EVERY_CLIENT = "*"
"""In place of clients."""


@dataclass(frozen=True)
class ReleaseSeries:
    """Releases that are built in the same way: those from ``first`` up to the next series."""

    first: str
    """The oldest release of the series."""
    build: str | None = None
    """Folder; None for that of the implementation."""
    build_arguments: tuple[BuildArgument, ...] = ()
    """Added to those of the implementation."""


@dataclass(frozen=True)
class VirtualOnlyLink:
    """A link over which results in virtual time do not hold in real time."""

    test_case: str
    clients: tuple[str, ...]
    """Names, or ``EVERY_CLIENT`` alone."""


@dataclass(frozen=True)
class VirtualOnly:
    """The clients of a server whose goodput, or outcome, was measured to differ in real time, by link."""

    date: str = ""
    """Of the measurement; empty if there is none."""
    links: tuple[VirtualOnlyLink, ...] = ()

    def contains(self, client: str, test_case: str) -> bool:
        """Whether a client is one of them over the link of a test case."""
        return any(
            test_case == link.test_case and (client in link.clients or EVERY_CLIENT in link.clients)
            for link in self.links
        )


NOTHING_KNOWN = VirtualOnly()


@dataclass(frozen=True)
class Implementation:
    """A QUIC stack, packaged as an image; or a variant of one, ``picoquic:bbr``, which has the same image.

    A release of it, ``quinn@0.11.5``, has an image of its own.
    """

    name: str
    image: str
    """Public image reference, as in the QUIC Interop Runner's registry; empty if there is none."""
    url: str
    roles: frozenset[Role]
    build: str | None = None
    """Folder, relative to the repository, from which the image can be built without a registry."""
    replaced: bool = False
    """The image was named on the command line: it is used unchanged and never built."""
    protocols: tuple[Protocol, ...] = (Protocol.HQ,)
    """The preferred one first."""
    licence: str | None = None
    """SPDX expression."""
    language: str | None = None
    congestion_control: CongestionControl | None = None
    variants: tuple[Variant, ...] = ()
    server_parameters: str = ""
    client_parameters: str = ""
    """Parameters that a variant adds to SERVER_PARAMS and CLIENT_PARAMS."""
    contract: Contract = Contract()
    cpu_cost: CpuCost = NOT_MEASURED
    virtual_only: VirtualOnly = NOTHING_KNOWN
    """As a server."""
    package: Package | None = None
    """From which the folder ``build`` builds the image."""
    build_arguments: tuple[BuildArgument, ...] = ()
    """With which the image is built from the folder ``build``."""
    releases: tuple[ReleaseSeries, ...] = ()
    """How other releases of the package are built, the oldest first; empty if only one version can be built."""
    release: str = ""
    """The release of the package that was chosen by name, ``quinn@0.11.5``; empty for the version in the folder."""

    @property
    def is_variant(self) -> bool:
        """Whether it is a variant of an implementation."""
        return bool(self.server_parameters or self.client_parameters)

    @property
    def folder(self) -> str:
        """The name as part of a path: ``picoquic+bbr``."""
        return folder_name(self.name)
