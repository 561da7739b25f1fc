"""The hosts file: what it may say, every fault of it at once, and whether it has what test cases need."""

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quicsat.config.hosts import hosts_of, load_hosts
from quicsat.model.errors import InputError
from quicsat.model.real_link import Host, RealDirection, RealLink, Tls
from quicsat.model.test_case import TestCase
from quicsat.model.units import MBPS
from tests.results_builder import SAT

LINK = RealLink("modem", "far", RealDirection(20 * MBPS), RealDirection(2 * MBPS), 0.6)
REAL = replace(SAT, name="real", abbreviation="RE", link=LINK)
WHOLE = """\
modem:
  daemon: ssh://me@modem.example:2222/run/docker.sock
  ssh config: config
  interface: wwan0
  source address: 10.0.0.2
far:
  daemon: tcp://far.example:2376
  tls: {ca: ca.pem, certificate: cert.pem, key: key.pem}
  address: [198.51.100.7, 2001:db8::7]
  clock skew: -2 s
here:
  daemon: unix:///run/docker.sock
  network: host
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    for name in ("config", "ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).touch()
    path = tmp_path / "hosts.yml"
    path.write_text(WHOLE)
    return path


def test_a_whole_file(file: Path) -> None:
    folder = file.parent
    tls = Tls(folder / "ca.pem", folder / "cert.pem", folder / "key.pem")
    assert load_hosts(file) == {
        "modem": Host(
            "modem", "ssh://me@modem.example:2222/run/docker.sock", ssh_config=folder / "config", interface="wwan0",
            source_address="10.0.0.2",
        ),
        "far": Host("far", "tcp://far.example:2376", tls, None, "198.51.100.7", "2001:db8::7", clock_skew=-2.0),
        "here": Host("here", "unix:///run/docker.sock", host_network=True),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", ["holds no host"]),
        ("a: 3\n", ['"a": must be a mapping']),
        ("A b: {daemon: unix:///x}\n", ['"A b" is no name of a host']),
        ("a: {}\n", ['missing key "daemon"']),
        ("a: {deamon: unix:///x}\n", ['unknown key "deamon". Did you mean daemon?', 'missing key "daemon"']),
        ("a: {daemon: http://x}\n", ["must begin with unix://, ssh:// or tcp://"]),
        ("a: {daemon: unix://x}\n", ["is not whole"]),
        ("a: {daemon: ssh://}\n", ["is not whole"]),
        ("a: {daemon: 'ssh://-oProxyCommand=x'}\n", ["is not whole"]),
        ("a: {daemon: 'ssh://-x@h'}\n", ["is not whole"]),
        ("a: {daemon: 'ssh://u:secret@h'}\n", ["must hold neither a password"]),
        ("a: {daemon: tcp://h}\n", ["is not whole"]),
        ("a: {daemon: tcp://h:2375}\n", ["without TLS is root there"]),
        ("a: {daemon: tcp://h:99999}\n", ["is no address"]),
        ("a: {daemon: tcp://h:2375}\nb: {daemon: ftp://x}\n", ["hosts.yml:1: ", "hosts.yml:2: "]),
        ("a: {daemon: tcp://h:2376, tls: x}\n", ["tls must be a mapping"]),
        ("a: {daemon: tcp://h:2376, tls: {ca: ca.pem, key: none}}\n", ["is not a file", 'missing key "certificate"']),
        ("a: {daemon: unix:///x, ssh config: config}\n", ["ssh config is for a daemon at ssh://"]),
        ("a: {daemon: unix:///x, address: far.example}\n", ["is no IP address"]),
        ("a: {daemon: unix:///x, address: 0.0.0.0}\n", ["is no address of a single host"]),
        ("a: {daemon: unix:///x, address: [10.0.0.1, 10.0.0.2]}\n", ["two of the same version"]),
        ("a: {daemon: unix:///x, interface: 'a b'}\n", ["must be the name of a network interface"]),
        ("a: {daemon: unix:///x, clock skew: 3}\n", ["has no unit"]),
        ("a: {daemon: unix:///x, network: none}\n", ["is none of bridge, host"]),
        ("a: {daemon: unix:///x, testbeds: 2}\n", ["testbeds"]),
    ],
)
def test_faults(file: Path, text: str, faults: list[str]) -> None:
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load_hosts(file)
    assert len(caught.value.problems) == len(faults), caught.value
    for fault in faults:
        assert any(fault in problem for problem in caught.value.problems), caught.value
    assert "secret" not in str(caught.value).replace('"ssh://u:secret@h"', "")


def test_hosts_of_the_links_alone(file: Path) -> None:
    known = load_hosts(file)
    assert list(hosts_of([REAL, SAT], known, file)) == ["modem", "far"]
    assert hosts_of([SAT], known, file) == {}


def test_a_home_that_nobody_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)  # no name, thus no home
    hosts = tmp_path / "hosts.yml"
    hosts.write_text("far:\n  daemon: ssh://me@far\n  ssh config: ~/.ssh/far\n")
    with pytest.raises(InputError, match="is not a file in the folder of the hosts file"):
        load_hosts(hosts)


@pytest.mark.parametrize(
    ("case", "changes", "fault"),
    [
        (replace(REAL, link=replace(LINK, client_host="moden")), {}, "lacks. Did you mean modem?"),
        (replace(REAL, link=replace(LINK, server_host="here")), {}, "here of .* has no IPv4 address"),
        (replace(REAL, link=replace(LINK, client_host="far")), {}, "one machine for both ends"),
        (REAL, {"modem": {"daemon": "tcp://far.example:2376"}}, "one machine for both ends of its link, modem and far"),
        (REAL, {"far": {"host_network": True}}, ""),  # there, a server listens where it likes
        (REAL, {"far": {"host_network": True, "source_address": "10.1.0.9"}}, "remove source address"),
        (replace(REAL, server_name="server6"), {"far": {"address4": ""}}, ""),
        (replace(REAL, server_name="server4"), {"far": {"address4": ""}}, "IPv4"),
        (replace(REAL, server_name="server46"), {"far": {"address4": ""}}, "IPv4"),
    ],
)
def test_hosts_have_what_is_needed(file: Path, case: TestCase, changes: dict[str, dict[str, Any]], fault: str) -> None:
    known = load_hosts(file)
    for name, values in changes.items():
        known[name] = replace(known[name], **values)
    with pytest.raises(InputError, match=fault) if fault else nullcontext():
        assert hosts_of([case], known, file)


def test_without_a_file() -> None:
    with pytest.raises(InputError, match="--hosts"):
        hosts_of([REAL], {}, None)
