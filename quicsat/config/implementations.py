"""Reads an entry of implementations.json; faults are added to the problems of its fields."""

import datetime
from collections import Counter
from collections.abc import Callable, Collection

from quicsat.config.quantities import duration, matching, one_line, one_of, valid, within
from quicsat.config.yaml_fields import Fields
from quicsat.model.cpu_cost import DEFAULT, CostModel, CpuCost
from quicsat.model.implementation import (
    EVERY_CLIENT,
    BuildArgument,
    CongestionControl,
    Contract,
    Implementation,
    Protocol,
    ReleaseSeries,
    Role,
    Variant,
    VirtualOnly,
    VirtualOnlyLink,
)
from quicsat.model.names import (
    IMAGE_RULE,
    NAME_RULE,
    VERSION_RULE,
    is_image,
    is_implementation,
    is_name,
    is_test_case,
    is_version,
)
from quicsat.model.package import WITH_BRANCHES, Package, Registry, release_order
from quicsat.model.text import quoted

ROLES = {
    "client": frozenset({Role.CLIENT}),
    "server": frozenset({Role.SERVER}),
    "both": frozenset({Role.CLIENT, Role.SERVER}),
}
EXAMPLES = {"image": '"owner/name:tag"', "url": '"https://example.org/quic"', "role": '"both"'}
"""Keys that an implementation must have -> an example of the value; image is optional with a folder."""
VIRTUAL_ONLY_KEY = "virtual time only"
BUILD_ARGUMENTS_KEY = "build arguments"
RELEASES_KEY = "releases"
RELEASES_EXAMPLE = '{"from": "1.2.0"}'
RELEASES_KEYS = ("from", "build", BUILD_ARGUMENTS_KEY)
KEYS = (
    *EXAMPLES, "build", "protocols", "licence", "language", "congestion control", "variants", "contract", "cpu cost",
    VIRTUAL_ONLY_KEY, "package", BUILD_ARGUMENTS_KEY, RELEASES_KEY,
)  # fmt: skip
CONGESTION_CONTROL_KEYS = ("default", "known", "hystart", "source", "date")
CONGESTION_CONTROL_EXAMPLES = {"source": '"README of version 1.2"', "date": '"2026-11-21"'}
VARIANT_KEYS = ("server", "client", "congestion control")
CONTRACT_KEYS = ("protocols", "version")
PACKAGE_KEYS = ("registry", "name", "argument", "branch", "unmaintained")
PACKAGE_EXAMPLES = {"registry": '"crates.io"', "name": '"quinn"'}


def _parse_date(text: str) -> str:
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").date().isoformat()
    except ValueError:
        raise ValueError('is no date; write for example "2026-11-21".') from None


_IMAGE = valid(is_image, f"is no image reference, which is {IMAGE_RULE} and in lower case up to the tag")
_URL = matching(r"https?://[!-~]{1,500}", "an address that begins with https:// or http://")
_FOLDER = matching(r"(?!.*\.\.)(?:[A-Za-z0-9._-]+/){0,9}[A-Za-z0-9._-]+", "a folder of this checkout, without ..")
_LICENCE = matching(r"[A-Za-z0-9.+() -]{1,100}", "an SPDX expression such as MIT or Apache-2.0")
_WORD = matching(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,39}", "one word of letters, digits, dots, hyphens and underscores")
_PROTOCOL = matching(r"[!-~]{1,100}", "one word of 1 to 100 ASCII characters")
_VERSION = matching(r"0x[0-9a-f]{1,8}", 'a QUIC version in hexadecimal digits such as "0x1"')
VIRTUAL_ONLY_EXAMPLES = {"date": '"2026-11-28"', "links": '{"sat": ["quic-go"]}'}
MOST_LINKS, MOST_CLIENTS = 50, 100
_CLIENT = valid(
    lambda text: text == EVERY_CLIENT or is_implementation(text),
    f'is neither the name of an implementation nor "{EVERY_CLIENT}" for every client',
)
COST_MODEL_KEYS = ("send", "receive", "wait", "datagram sent", "datagram received", "handshake")
COST_MODEL_EXAMPLES = dict.fromkeys(COST_MODEL_KEYS, '"2.5 us"') | {"handshake": '"1.2 ms"'}
FILE_READ = "file read"
"""A cost that not every program has: many read a file while they send it."""
COST_MODEL = dict.fromkeys((*COST_MODEL_KEYS, FILE_READ), within(duration, "0 us", "10 ms")) | {
    "handshake": within(duration, "0 us", "1 s")
}
CPU_COST_KEYS = ("server", "client", "measured", "processor", "version")
_PACKAGE = matching(
    r"@?[A-Za-z0-9](?:[A-Za-z0-9._+/:-]{0,149}[A-Za-z0-9+])?",
    "the name of a package, for Maven group:artifact, which neither begins nor ends with a punctuation mark",
)
_ARGUMENT = matching(r"[A-Z][A-Z0-9_]{0,39}", "the name of an argument of the Dockerfile, such as VERSION")
_VALUE = matching(r"[ -~]{1,500}", "1 to 500 ASCII characters")
_RELEASE = valid(is_version, f"is no version: {VERSION_RULE}")
_PARAMETERS = matching(
    r"[!-~]{1,100}(?: [!-~]{1,100}){0,9}", "one to ten words of ASCII characters, single blanks between"
)


def read_implementation(name: str, fields: Fields) -> Implementation | None:
    """The implementation that ``fields`` describe; None if a fault was noted."""
    faults = len(fields.problems)
    fields.allow_only(KEYS)
    fields.require({key: example for key, example in EXAMPLES.items() if key != "image" or "build" not in fields})
    url, role = fields.read("url", _URL), fields.read("role", one_of(ROLES))
    congestion_control = _read_congestion_control(fields)
    implementation = Implementation(
        name=name,
        image=fields.read("image", _IMAGE) or "",
        url=url or "",
        roles=ROLES.get(role or "", frozenset()),
        build=fields.read("build", _FOLDER),
        protocols=_read_protocols(fields),
        licence=_read_known(fields, "licence", _LICENCE),
        language=_read_known(fields, "language", one_line),
        congestion_control=congestion_control,
        variants=_read_variants(fields, congestion_control.known if congestion_control else ()),
        contract=_read_contract(fields),
        cpu_cost=_read_cpu_cost(fields),
        virtual_only=_read_virtual_only(fields),
        package=_read_package(fields),
        build_arguments=_read_build_arguments(fields),
        releases=_read_releases(fields),
    )
    return implementation if len(fields.problems) == faults else None


def _read_known(fields: Fields, key: str, parse: Callable[[str], str]) -> str | None:
    """A value that may be null: unknown."""
    return None if fields.holds_null(key) else fields.read(key, parse)


def _read_protocols(fields: Fields) -> tuple[Protocol, ...]:
    """In the order of preference, independent of the order in the file."""
    words = fields.read_list("protocols", one_of(protocol.value for protocol in Protocol))
    return (Protocol.HQ,) if words is None else tuple(protocol for protocol in Protocol if protocol in words)


def _read_contract(fields: Fields) -> Contract:
    """The values of PROTOCOLS and VERSION; missing ones keep their defaults."""
    section = _section(fields, "contract", CONTRACT_KEYS)
    if section is None:
        return Contract()
    return Contract(section.read_list("protocols", _PROTOCOL) or (), section.read("version", _VERSION) or "")


def _read_cpu_cost(fields: Fields) -> CpuCost:
    section = _section(fields, "cpu cost", CPU_COST_KEYS)
    if section is None:
        return CpuCost(DEFAULT, DEFAULT)
    return CpuCost(
        **{role: _read_cost_model(section, role) or DEFAULT for role in ("server", "client")},
        measured=section.read("measured", _parse_date) or "",
        processor=section.read("processor", one_line) or "",
        version=section.read("version", one_line) or "",
    )


def _read_cost_model(section: Fields, role: str) -> CostModel | None:
    if role not in section:
        return None
    model = section.part(role)
    model.allow_only(COST_MODEL)
    model.require(COST_MODEL_EXAMPLES)
    values = model.values(COST_MODEL)
    return CostModel(**values) if len(values.keys() - {"file_read"}) == len(COST_MODEL_KEYS) else None


def _read_virtual_only(fields: Fields) -> VirtualOnly:
    section = _section(fields, VIRTUAL_ONLY_KEY, VIRTUAL_ONLY_EXAMPLES)
    if section is None:
        return VirtualOnly()
    section.require(VIRTUAL_ONLY_EXAMPLES)
    links = []
    if section.holds_mapping("links"):
        listed = section.part("links")
        for name in listed:
            if not is_test_case(name):
                listed.note(f"{quoted(name)} is no name of a test case.", listed.line_of(name))
            clients = listed.read_list(name, _CLIENT) or ()
            if twice := [each for each, count in Counter(clients).items() if count > 1]:
                listed.note(f"{name} names {', '.join(twice)} more than once.", listed.line_of(name))
            elif EVERY_CLIENT in clients and len(clients) > 1:
                listed.note(f'{name}: "{EVERY_CLIENT}" already stands for every client.', listed.line_of(name))
            links.append(VirtualOnlyLink(name, clients))
        if len(links) > MOST_LINKS or any(len(each.clients) > MOST_CLIENTS for each in links):
            listed.note(f"more than {MOST_LINKS} test cases, or {MOST_CLIENTS} clients of one.")
    elif "links" in section:
        section.note("links must be a mapping of test cases to clients.", section.line_of("links"))
    return VirtualOnly(section.read("date", _parse_date) or "", tuple(links))


def _read_package(fields: Fields) -> Package | None:
    section = _section(fields, "package", PACKAGE_KEYS)
    if section is None:
        return None
    section.require(PACKAGE_EXAMPLES)
    if "build" not in fields:
        section.note("package belongs to an image that is built: name its folder with build.")
    registry, name = section.read("registry", one_of(each.value for each in Registry)), section.read("name", _PACKAGE)
    argument = section.read("argument", _ARGUMENT) or Package.argument
    branch = section.read("branch", _WORD) or ""
    if branch and registry and registry not in WITH_BRANCHES:
        section.note(f"{registry} names only its newest version: omit branch.", section.line_of("branch"))
    unmaintained = section.read("unmaintained", one_line) or ""
    return Package(Registry(registry), name, argument, unmaintained, branch) if registry and name else None


def _read_build_arguments(fields: Fields) -> tuple[BuildArgument, ...]:
    """In the order of their names, independent of the order in the file."""
    if not fields.holds_mapping(BUILD_ARGUMENTS_KEY):
        if BUILD_ARGUMENTS_KEY in fields:
            fields.must_be_mapping(BUILD_ARGUMENTS_KEY, '{"VERSION": "3.6.5"}')
        return ()
    section = fields.part(BUILD_ARGUMENTS_KEY)
    found = []
    for name in sorted(section):
        try:
            _ARGUMENT(name)
        except ValueError as fault:
            section.note(f"{quoted(name)} {fault}", section.line_of(name))
        if (value := section.read(name, _VALUE)) is not None:
            found.append(BuildArgument(name, value))
    return tuple(found)


def _read_releases(fields: Fields) -> tuple[ReleaseSeries, ...]:
    """The oldest series first, independent of the order in the file."""
    found = []
    for each in fields.mappings(RELEASES_KEY, RELEASES_EXAMPLE):
        each.allow_only(RELEASES_KEYS)
        each.require({"from": '"1.2.0"'})
        if (first := each.read("from", _RELEASE)) is not None:
            found.append(ReleaseSeries(first, each.read("build", _FOLDER), _read_build_arguments(each)))
    if RELEASES_KEY in fields and "package" not in fields:
        fields.note(f"{RELEASES_KEY} need a package: name it with the key package.")
    return tuple(sorted(found, key=lambda each: release_order(each.first)))


def _section(fields: Fields, key: str, keys: Collection[str]) -> Fields | None:
    """The mapping that is the value of ``key``; None if it is missing, or not a mapping (reported)."""
    if fields.holds_mapping(key):
        section = fields.mapping(key)
        section.allow_only(keys)
        return section
    if key in fields:
        fields.note(f"{key} must be a mapping of {', '.join(keys)}.", fields.line_of(key))
    return None


def _read_congestion_control(fields: Fields) -> CongestionControl | None:
    key = "congestion control"
    section = None if fields.holds_null(key) else _section(fields, key, CONGESTION_CONTROL_KEYS)
    if section is None:
        return None
    section.require(CONGESTION_CONTROL_EXAMPLES)
    known = section.read_list("known", _WORD) or ()
    default = _read_known(section, "default", _WORD)
    if default and known and default not in known:
        section.note(f'default {quoted(default)} is not among "known": {", ".join(known)}.', section.line_of("default"))
    return CongestionControl(
        default=default,
        known=known,
        hystart=section.read_flag("hystart"),
        source=section.read("source", one_line) or "",
        date=section.read("date", _parse_date) or "",
    )


def _read_variants(fields: Fields, known: Collection[str]) -> tuple[Variant, ...]:
    """A variant without a congestion control gets the one with its own name, if that is known."""
    if not fields.holds_mapping("variants"):
        if "variants" in fields:
            fields.note("variants must be a mapping of names to mappings.", fields.line_of("variants"))
        return ()
    names = fields.mapping("variants")
    found = []
    for name in names:
        if not is_name(name):
            names.note(f"{quoted(name)} is no name of a variant: {NAME_RULE}.", names.line_of(name))
        section = names.mapping(name, about=f"{fields.about}variant {quoted(name)}: ")
        section.allow_only(VARIANT_KEYS)
        server, client = (section.read(role, _PARAMETERS) or "" for role in ("server", "client"))
        if section.is_mapping and "server" not in section and "client" not in section:
            section.note(
                'changes nothing: it has neither "server" nor "client" words; write for example server: "--cc bbr"'
            )
        control = section.read("congestion control", _WORD) or (name if name in known else None)
        found.append(Variant(name, server, client, control))
    return tuple(found)
