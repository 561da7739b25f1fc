"""The daemon that a command uses: chosen as the docker command chooses it, and reached over TLS and ssh."""

import getpass
import hashlib
import json
import os
import shutil
import socketserver
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from typing import Any

import pytest

from quicsat.docker.address import default_daemon
from quicsat.docker.ssh_tunnel import connected
from quicsat.model.errors import InputError, MachineError
from quicsat.model.real_link import Tls
from tests.certificates import certificates
from tests.fakes import FakeEngine

ROOT = Path(__file__).resolve().parents[2]
IDENTITY = "FAR /data"
ANSWERS: dict[str, Any] = {
    "version": {"ApiVersion": "1.41", "MinAPIVersion": "1.12", "Components": [{"Name": "Engine"}]},
    "info": FakeEngine().info() | {"ID": "FAR", "NCPU": 77, "DockerRootDir": "/data"},
    "containers/json": [],
}


# ---- which one ------------------------------------------------------------------------------


def context(folder: Path, name: str, endpoint: object, *secrets: str) -> None:
    """What ``docker context create`` writes below the folder of the configuration."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    meta, tls = folder / "contexts/meta" / digest, folder / "contexts/tls" / digest / "docker"
    meta.mkdir(parents=True)
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    for each in secrets:
        tls.mkdir(parents=True, exist_ok=True)
        (tls / f"{each}.pem").touch()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    context(tmp_path, "lab", {"Host": "ssh://me@lab.example", "SkipTLSVerify": False})
    context(tmp_path, "rack", {"Host": "tcp://rack.example:2376", "SkipTLSVerify": False}, "ca", "cert", "key")
    context(tmp_path, "loose", {"Host": "tcp://loose.example:2376", "SkipTLSVerify": True})
    context(tmp_path, "own", {"Host": "tcp://own.example:2376", "SkipTLSVerify": False}, "ca")
    context(tmp_path, "empty", {})
    (tmp_path / "config.json").write_text('{"currentContext": "lab"}')
    certs = tmp_path / "certs"
    certs.mkdir()
    for name in ("ca", "cert", "key"):
        (certs / f"{name}.pem").touch()
    return tmp_path


def chosen(folder: Path, **variables: str) -> tuple[str, str]:
    host = default_daemon({"DOCKER_CONFIG": str(folder), "XDG_RUNTIME_DIR": str(folder), **variables})
    return host.name, host.daemon


def test_the_order_is_that_of_the_docker_command(folder: Path) -> None:
    assert chosen(folder, DOCKER_HOST="tcp://1.2.3.4:5", DOCKER_CONTEXT="rack") == ("1.2.3.4", "tcp://1.2.3.4:5")
    assert chosen(folder, DOCKER_CONTEXT="rack") == ("rack.example", "tcp://rack.example:2376")
    assert chosen(folder) == ("lab.example", "ssh://me@lab.example")
    assert chosen(folder, DOCKER_HOST="", DOCKER_CONTEXT="") == ("lab.example", "ssh://me@lab.example")
    assert chosen(folder, DOCKER_CONTEXT="default")[1].startswith("unix://")
    (folder / "config.json").unlink()
    assert chosen(folder)[1].startswith("unix://")
    assert chosen(folder, DOCKER_CONTEXT="rack")[0] == "rack.example"


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("unix:///run/x.sock", ("", "unix:///run/x.sock")),
        ("unix://", ("", "unix:///var/run/docker.sock")),
        ("ssh://me@[::1]:22/run/x.sock", ("::1", "ssh://me@[::1]:22/run/x.sock")),
        ("tcp://127.0.0.1:2375", ("", "tcp://127.0.0.1:2375")),
        ("tcp://far", ("far", "tcp://far:2375")),
        ("tcp://[fd00::1]", ("fd00::1", "tcp://[fd00::1]:2375")),
        ("far:99", ("far", "tcp://far:99")),
        (":99", ("", "tcp://localhost:99")),
    ],
)
def test_addresses_are_completed_as_the_docker_command_does(address: str, found: tuple[str, str], folder: Path) -> None:
    assert chosen(folder, DOCKER_HOST=address) == found


def test_tls_of_the_environment(folder: Path) -> None:
    certs = folder / "certs"
    files = (certs / "ca.pem", certs / "cert.pem", certs / "key.pem")

    def tls(**variables: str) -> tuple[str, Tls | None]:
        host = default_daemon({"DOCKER_CONFIG": str(folder), "DOCKER_CERT_PATH": str(certs), **variables})
        return host.daemon, host.tls

    assert tls(DOCKER_HOST="tcp://far") == ("tcp://far:2375", None)
    assert tls(DOCKER_HOST="tcp://far", DOCKER_TLS_VERIFY="1") == ("tcp://far:2376", Tls(*files))
    assert tls(DOCKER_HOST="tcp://far", DOCKER_TLS="1") == ("tcp://far:2376", Tls(*files, verify=False))
    assert tls(DOCKER_CONTEXT="default", DOCKER_TLS_VERIFY="1") == ("tcp://localhost:2376", Tls(*files))
    assert tls(DOCKER_HOST="unix:///x", DOCKER_TLS_VERIFY="1") == ("unix:///x", None)
    files[1].unlink()
    with pytest.raises(InputError, match=r"cert\.pem is missing"):
        tls(DOCKER_HOST="tcp://far", DOCKER_TLS_VERIFY="1")
    files[2].unlink()
    assert tls(DOCKER_HOST="tcp://far", DOCKER_TLS_VERIFY="1")[1] == Tls(files[0], None, None)


def test_tls_of_contexts(folder: Path) -> None:
    def tls(name: str) -> Tls | None:
        return default_daemon({"DOCKER_CONFIG": str(folder), "DOCKER_CONTEXT": name}).tls

    rack, own = tls("rack"), tls("own")
    assert rack is not None and own is not None
    assert [path and path.name for path in (rack.ca, rack.certificate, rack.key)] == ["ca.pem", "cert.pem", "key.pem"]
    assert own.ca is not None and (own.certificate, own.verify) == (None, True)
    assert tls("loose") == Tls(None, None, None, verify=False)


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"DOCKER_CONTEXT": "gone"}, "DOCKER_CONTEXT: there is no context 'gone'"),
        ({"DOCKER_CONTEXT": "empty"}, "no address"),
        ({"DOCKER_HOST": "http://far"}, "DOCKER_HOST: http://far must begin with"),
        ({"DOCKER_HOST": "tcp://far:99999999"}, "is no address"),
        ({"DOCKER_HOST": "ssh://-oProxyCommand=x"}, "is not whole"),
        ({"DOCKER_HOST": "tcp://far", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/no/such"}, "/no/such/ca.pem"),
    ],
)
def test_what_cannot_be_used_is_refused(variables: dict[str, str], reason: str, folder: Path) -> None:
    with pytest.raises(InputError, match=reason):
        chosen(folder, **variables)


@pytest.mark.parametrize("text", ["", "{", "[]" * 3, "[" * 100_000, "\udcff"])
def test_a_damaged_configuration_is_named_and_no_other_daemon_is_used(text: str, folder: Path) -> None:
    (folder / "config.json").write_bytes(os.fsencode(text))
    with pytest.raises(InputError, match=r"config\.json"):
        chosen(folder)


# ---- how it is reached ----------------------------------------------------------------------


class Api(BaseHTTPRequestHandler):
    """As much of a daemon as a connection needs."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].lstrip("/")
        name = name.partition("/")[2] if name.startswith("v1.") else name
        body = json.dumps(ANSWERS[name]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class Server(ThreadingHTTPServer):
    """Answers at an address of the loopback."""

    def handle_error(self, *_: object) -> None:
        """A client that does not trust it hangs up."""


class LocalServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers at a socket of the file system."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A tunnel that ends."""

    def get_request(self) -> tuple[socket, Any]:
        return super().get_request()[0], ("local", 0)


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a daemon that wants a certificate of its own authority, and the folder of the client's files."""
    folder = certificates(tmp_path_factory.mktemp("tls") / "own", "127.0.0.1")
    shutil.copy(folder / "client.pem", folder / "cert.pem")
    shutil.copy(folder / "client.key", folder / "key.pem")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.pem", folder / "server.key")
    tls.load_verify_locations(folder / "ca.pem")
    tls.verify_mode = ssl.CERT_REQUIRED
    server = Server(("127.0.0.1", 0), Api)
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with serving(server):
        yield f"tcp://127.0.0.1:{server.server_address[1]}", folder


def identity(**variables: str) -> str:
    """Of the daemon that the variables choose."""
    with connected(default_daemon({"DOCKER_CONFIG": "/no/such", **variables}), "test") as daemon:
        return daemon.id


def test_a_daemon_over_tls(secure: tuple[str, Path], tmp_path: Path) -> None:
    address, folder = secure
    assert identity(DOCKER_HOST=address, DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH=str(folder)) == IDENTITY
    context(tmp_path, "rack", {"Host": address, "SkipTLSVerify": False}, "ca", "cert", "key")
    [secrets] = (tmp_path / "contexts/tls").glob("*/docker")
    for name in ("ca", "cert", "key"):
        shutil.copy(folder / f"{name}.pem", secrets)
    assert identity(DOCKER_CONFIG=str(tmp_path), DOCKER_CONTEXT="rack") == IDENTITY


def test_without_verification_any_certificate_will_do(
    secure: tuple[str, Path], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    address, folder = secure
    other = certificates(tmp_path / "other", "127.0.0.1")
    for name in ("cert", "key"):
        shutil.copy(folder / f"{name}.pem", other)
    wrong = {"DOCKER_HOST": address, "DOCKER_CERT_PATH": str(other)}
    assert identity(**wrong, DOCKER_TLS="1") == IDENTITY
    assert not list(recwarn)
    with pytest.raises(MachineError, match=r"TLS: .*certificate"):
        identity(**wrong, DOCKER_TLS_VERIFY="1")


def test_a_client_without_a_certificate_is_refused(secure: tuple[str, Path], tmp_path: Path) -> None:
    address, folder = secure
    shutil.copy(folder / "ca.pem", tmp_path)
    with pytest.raises(MachineError, match=r"No Docker daemon answers at tcp://127\.0\.0\.1.*\nLook at DOCKER_HOST"):
        identity(DOCKER_HOST=address, DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH=str(tmp_path))


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """An sshd of this user, and a daemon's socket behind it; the address of a socket, over ssh."""
    if not (sshd := shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")):
        pytest.skip("openssh-server is not installed")
    for key in ("host", "user", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / key], check=True)
    (tmp_path / "authorized_keys").write_text((tmp_path / "user.pub").read_text())

    class Login(socketserver.BaseRequestHandler):
        """A connection, which a process of its own serves."""

        def handle(self) -> None:
            command = [sshd, "-i", "-e", "-f", str(tmp_path / "sshd_config")]
            subprocess.run(command, stdin=self.request, stdout=self.request, stderr=subprocess.DEVNULL, check=False)

    logins = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Login)
    port = logins.server_address[1]
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{port} {(tmp_path / 'host.pub').read_text()}")
    (tmp_path / "sshd_config").write_text(
        f"HostKey {tmp_path}/host\nPidFile none\nStrictModes no\n"
        f"AuthorizedKeysFile {tmp_path}/authorized_keys\n"
        "UsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
    )
    (tmp_path / "config").write_text(
        f"IdentityFile {tmp_path}/user\nIdentitiesOnly yes\nUserKnownHostsFile {tmp_path}/known_hosts\n"
        "StrictHostKeyChecking yes\n"
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {tmp_path}/config "$@"\n')
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with serving(LocalServer(str(tmp_path / "daemon.sock"), Api)), serving(logins):
        yield lambda name: f"ssh://{getpass.getuser()}@127.0.0.1:{port}{tmp_path}/{name}"


def test_a_daemon_over_ssh(login: Callable[[str], str]) -> None:
    """It is another machine: neither the CPUs nor the load of this one are its own."""
    with connected(default_daemon({"DOCKER_HOST": login("daemon.sock")}), "test") as daemon:
        assert (daemon.id, daemon.host, daemon.info["NCPU"]) == (IDENTITY, "127.0.0.1", 77)
        assert not daemon.rootless


def test_a_whole_command_over_ssh(login: Callable[[str], str]) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "run.py"), "clean"], env={**os.environ, "DOCKER_HOST": login("daemon.sock")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "No containers were left behind.\n")


def test_why_ssh_does_not_reach_a_daemon(
    login: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MachineError, match=r"(?s)No Docker daemon answers at 127\.0\.0\.1.*DOCKER_HOST.*/nowhere"):
        identity(DOCKER_HOST=login("nowhere"))
    (tmp_path / "user").write_text((tmp_path / "other").read_text())
    with pytest.raises(MachineError, match="Permission denied"):
        identity(DOCKER_HOST=login("daemon.sock"))
    (tmp_path / "known_hosts").write_text("")
    with pytest.raises(MachineError, match="Host key verification failed"):
        identity(DOCKER_HOST=login("daemon.sock"))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(MachineError, match="install openssh-client"):
        identity(DOCKER_HOST=login("daemon.sock"))


def test_nothing_listens_there() -> None:
    with pytest.raises(MachineError, match=": Connection refused\nLook at DOCKER_HOST"):
        identity(DOCKER_HOST="tcp://127.0.0.1:1")
