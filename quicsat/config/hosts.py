"""The hosts file: the machines of real links and how their Docker daemons are reached; all faults are reported at once.

It is private, like the keys that it names: nothing of it but the names of hosts is stored with results.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path

from quicsat.config.quantities import duration, matching, one_of, within
from quicsat.config.yaml_fields import Fields, Parsers, Problem, display_path, raise_problems, read_yaml
from quicsat.model.errors import InputError
from quicsat.model.names import NAME_RULE, did_you_mean, is_name
from quicsat.model.real_link import DAEMON_EXAMPLE, Host, RealLink, Tls, daemon_address
from quicsat.model.test_case import TestCase
from quicsat.model.text import quoted

KEYS = ("daemon", "tls", "ssh config", "address", "source address", "interface", "clock skew", "network")
TLS_EXAMPLES = {"ca": "ca.pem", "certificate": "cert.pem", "key": "key.pem"}

BRIDGE, HOST = "bridge", "host"
"""Values of the network of endpoints."""


# ---- the file -------------------------------------------------------------------------------


def load_hosts(path: Path) -> dict[str, Host]:
    """Hosts by name; paths in it are relative to its folder. Raises :class:`InputError` with every fault."""
    problems: list[Problem] = []
    documents = read_yaml(path, problems)
    found: dict[str, Host] = {}
    for document in documents:
        for name in document if document.is_mapping else ():
            if host := _read_host(document, name, path.parent):
                found[name] = host
    if not documents and not problems:
        problems.append(Problem(display_path(path), 0, "holds no host."))
    raise_problems(problems)
    return found


def known(path: Path | None) -> dict[str, Host]:
    """Hosts of the file that was named, none if there was none; raises as :func:`load_hosts`."""
    return load_hosts(path) if path else {}


def _read_host(document: Fields, name: str, folder: Path) -> Host | None:
    if not is_name(name):
        document.note(f"{quoted(name)} is no name of a host: {NAME_RULE}.", document.line_of(name))
    faults = len(document.problems)
    fields = document.mapping(name, about=f"{quoted(name)}: ")
    if not fields.is_mapping:
        return None
    fields.allow_only(KEYS)
    fields.require({"daemon": DAEMON_EXAMPLE})
    values = fields.values({**_PARSERS, "ssh config": _file_in(folder)})
    daemon = values.get("daemon", "")
    tls = _read_tls(fields, folder)
    addresses = fields.read_list("address", parse_address) or ()
    for scheme, key in (("tcp", "tls"), ("ssh", "ssh config")):
        if key in fields and daemon and not daemon.startswith(f"{scheme}://"):
            fields.note(f"{key} is for a daemon at {scheme}://.", fields.line_of(key))
    if daemon.startswith("tcp://") and "tls" not in fields:
        fields.note("anyone who can reach a daemon without TLS is root there; add tls or use ssh.")
    by_version = {version: [each for each in addresses if ip_address(each).version == version] for version in (4, 6)}
    if any(len(same) > 1 for same in by_version.values()):
        fields.note("address holds two of the same version of IP; one of each is allowed.", fields.line_of("address"))
    if len(document.problems) > faults:
        return None
    four, six = ("".join(same) for same in by_version.values())
    host_network = values.pop("network", BRIDGE) == HOST
    return Host(name, tls=tls, address4=four, address6=six, host_network=host_network, **values)


def _read_tls(fields: Fields, folder: Path) -> Tls | None:
    if not fields.holds_mapping("tls"):
        if "tls" in fields:
            example = ", ".join(f"{key}: {value}" for key, value in TLS_EXAMPLES.items())
            fields.note(f"tls must be a mapping; write for example tls: {{{example}}}", fields.line_of("tls"))
        return None
    tls = fields.mapping("tls")
    tls.allow_only(TLS_EXAMPLES)
    tls.require(TLS_EXAMPLES)
    ca, certificate, key = (tls.read(name, _file_in(folder)) for name in TLS_EXAMPLES)
    return Tls(ca, certificate, key) if ca and certificate and key else None


def parse_address(text: str) -> str:
    """An IPv4 or IPv6 address."""
    try:
        found = ip_address(text)
    except ValueError:
        raise ValueError("is no IP address.") from None
    if found.is_unspecified or found.is_multicast:
        raise ValueError("is no address of a single host.")
    return str(found)


_PARSERS: Parsers = {
    "daemon": daemon_address,
    "source address": parse_address,
    "interface": matching(r"[A-Za-z0-9._-]{1,15}", "the name of a network interface"),
    "clock skew": within(duration, "-24 h", "24 h"),
    "network": one_of((BRIDGE, HOST)),
}


def _file_in(folder: Path) -> Callable[[str], Path]:
    def parse(text: str) -> Path:
        path = folder / os.path.expanduser(text)  # noqa: PTH111 - without HOME, too
        if not path.is_file():
            raise ValueError("is not a file in the folder of the hosts file.")
        return path.absolute()

    return parse


# ---- requirements of test cases ----------------------------------------------------


def hosts_of(test_cases: Iterable[TestCase], known: Mapping[str, Host], file: Path | None) -> dict[str, Host]:
    """The hosts of the real links among ``test_cases``, by name.

    Raises :class:`InputError` with every host that is missing or lacks what it needs.
    """
    problems: list[str] = []
    for case in test_cases:
        if isinstance(case.link, RealLink):
            problems += _faults(case, case.link, known, file)
    if problems:
        raise InputError(*dict.fromkeys(problems))
    links = [case.link for case in test_cases if isinstance(case.link, RealLink)]
    names = dict.fromkeys(name for link in links for name in (link.client_host, link.server_host))
    return {name: host for name, host in known.items() if name in names}


def measures_here(hosts: Mapping[str, Host]) -> bool:
    """Whether the daemon of this machine makes runs: not if both ends are hosts of a real link (``hosts_of``)."""
    return not hosts


def _faults(case: TestCase, link: RealLink, known: Mapping[str, Host], file: Path | None) -> Iterable[str]:
    if file is None:
        yield f"{case.name} has a real link, {link.client_host} to {link.server_host}: name a hosts file with --hosts."
        return
    shown = display_path(file)
    for name in (link.client_host, link.server_host):
        if name not in known:
            yield f"{case.name} needs the host {name}, which {shown} lacks.{_hint(name, known)}"
    client, server = known.get(link.client_host), known.get(link.server_host)
    if link.client_host == link.server_host or (client and server and client.daemon == server.daemon):
        ends = " and ".join(dict.fromkeys((link.client_host, link.server_host)))
        yield f"{case.name} has one machine for both ends of its link, {ends}."
    wanted = {"server4": ("IPv4",), "server6": ("IPv6",), "server46": ("IPv4", "IPv6")}[case.server_name]
    for version in wanted if server else ():
        if not (server and (server.address4 if version == "IPv4" else server.address6)):
            yield f"{case.name}: the host {link.server_host} of {shown} has no {version} address; set address."
    if server and server.host_network and server.source_address:
        yield (
            f"{case.name}: the host {link.server_host} of {shown} has network: host, so the server chooses its own "
            "addresses; remove source address."
        )


def _hint(name: str, known: Collection[str]) -> str:
    return f"{did_you_mean(name, known)} It knows {', '.join(known) or 'none'}."
