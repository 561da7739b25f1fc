"""The Docker daemon that a command uses, chosen as the ``docker`` command chooses it.

The first of these counts: ``DOCKER_HOST``, the context in ``DOCKER_CONTEXT``, the current context in the configuration
of the ``docker`` command, a local socket (https://docs.docker.com/engine/manage-resources/contexts/). The library's own
reader of contexts is not used: it ignores a context that does not exist, or whose configuration has no config.json, and
a context with a CA alone; a campaign would silently use another daemon. Only the standard library is needed, so that
the daemon is found at once.
"""

import hashlib
import ipaddress
import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from quicsat.model.errors import InputError
from quicsat.model.real_link import Host, Tls, daemon_address

SYSTEM = "/var/run/docker.sock"
"""Socket of Docker's daemon with root."""
DEFAULT_CONTEXT = "default"
"""The context without a file: a local socket."""
PORTS = {False: 2375, True: 2376}
"""Port of a daemon without and with TLS, if its address has none."""
LOCALHOST = "localhost"


def default_daemon(environment: Mapping[str, str]) -> Host:
    """The daemon that the user has chosen, else a local one.

    Its name is empty if it runs on this machine. Raises :class:`InputError` if the choice is no address, or needs a
    context or a file that is not there.
    """
    if environment.get("DOCKER_HOST"):
        return _host(environment["DOCKER_HOST"], _tls_of(environment), "DOCKER_HOST")
    current, named_by = _context(environment)
    if current != DEFAULT_CONTEXT:
        return _of_context(_folder(environment), current, named_by)
    if tls := _tls_of(environment):
        return _host(f"tcp://{LOCALHOST}", tls, "DOCKER_TLS_VERIFY")
    runtime = environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return Host("", f"unix://{_first((SYSTEM, *_sockets(runtime, os.getuid())))}", named_by="")


def _host(address: str, tls: Tls | None, named_by: str) -> Host:
    """The host of an ``address``, which may lack what the ``docker`` command adds."""
    try:
        whole = daemon_address(_completed(address.strip(), tls is not None))
    except ValueError as error:
        raise InputError(f"{named_by}: {address} {error}") from None
    parts = urlsplit(whole)
    name = parts.hostname or ""
    here = parts.scheme == "unix" or (parts.scheme == "tcp" and _is_loopback(name))
    return Host("" if here else name, whole, tls if parts.scheme == "tcp" else None, named_by=named_by)


def _completed(address: str, with_tls: bool) -> str:
    if address == "unix://":
        return f"unix://{SYSTEM}"
    scheme, sign, rest = address.partition("://")
    if not sign:
        scheme, rest = "tcp", address
    if scheme != "tcp":
        return address
    rest = rest.rstrip("/")
    rest = f"{LOCALHOST}{rest}" if rest.startswith(":") or not rest else rest
    has_port = ":" in rest.rpartition("]")[2]
    return f"tcp://{rest}" if has_port else f"tcp://{rest}:{PORTS[with_tls]}"


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == LOCALHOST


# ---- TLS and contexts -----------------------------------------------------------------------


def _folder(environment: Mapping[str, str]) -> Path:
    """Where the ``docker`` command keeps its configuration."""
    chosen = environment.get("DOCKER_CONFIG")
    return Path(chosen) if chosen else Path(os.path.expanduser("~"), ".docker")  # noqa: PTH111 - without HOME, too


def _tls_of(environment: Mapping[str, str]) -> Tls | None:
    """TLS as the variables ask for it: with ``DOCKER_TLS_VERIFY``, or ``DOCKER_TLS`` for a daemon of any name."""
    verify = bool(environment.get("DOCKER_TLS_VERIFY"))
    if not verify and not environment.get("DOCKER_TLS"):
        return None
    chosen = environment.get("DOCKER_CERT_PATH")
    folder = Path(chosen) if chosen else _folder(environment)
    if verify and not (folder / "ca.pem").is_file():
        raise InputError(f"DOCKER_TLS_VERIFY needs {folder / 'ca.pem'}, which is missing: set DOCKER_CERT_PATH.")
    return _tls(folder, verify=verify)


def _tls(folder: Path, *, verify: bool) -> Tls:
    """TLS with those of the three files that are in ``folder``."""
    ca, certificate, key = (folder / f"{name}.pem" for name in ("ca", "cert", "key"))
    if certificate.is_file() != key.is_file():
        missing = key if certificate.is_file() else certificate
        raise InputError(f"{missing} is missing; a certificate and its key are used together.")
    own = certificate.is_file()
    return Tls(ca if ca.is_file() else None, certificate if own else None, key if own else None, verify)


def _context(environment: Mapping[str, str]) -> tuple[str, str]:
    """The name of the context, and what names it."""
    if name := environment.get("DOCKER_CONTEXT"):
        return name, "DOCKER_CONTEXT"
    file = _folder(environment) / "config.json"
    if not file.is_file():
        return DEFAULT_CONTEXT, ""
    current = _read(file).get("currentContext") or DEFAULT_CONTEXT
    return str(current), f"currentContext in {file}"


def _of_context(folder: Path, name: str, named_by: str) -> Host:
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()
    file = folder / "contexts" / "meta" / digest / "meta.json"
    if not file.is_file():
        raise InputError(f"{named_by}: there is no context {name!r}; `docker context ls` shows those that there are.")
    endpoint = _mapping(_mapping(_read(file).get("Endpoints")).get("docker"))
    if not endpoint.get("Host"):
        raise InputError(f"{named_by}: the context {name!r} has no address of a Docker daemon ({file}).")
    secrets = folder / "contexts" / "tls" / digest / "docker"
    verify = not endpoint.get("SkipTLSVerify")
    tls = _tls(secrets, verify=verify) if secrets.is_dir() or not verify else None
    return _host(str(endpoint["Host"]), tls, f"the context {name!r}")


def _read(file: Path) -> dict[str, Any]:
    try:
        return _mapping(json.loads(file.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no JSON"
        raise InputError(f"{file}: cannot be read: {reason}. It tells which Docker daemon to use.") from None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# ---- local sockets --------------------------------------------------------------------------


def _sockets(runtime: str, user: int) -> tuple[str, ...]:
    """Of rootless Docker, then of podman: without a login session, its files are in /tmp."""
    own = (f"{runtime}/docker.sock", f"{runtime}/podman/podman.sock", f"/tmp/podman-run-{user}/podman/podman.sock")
    return ("/run/podman/podman.sock",) if user == 0 else own


def _first(paths: Sequence[str]) -> str:
    return next((path for path in paths if _is_trusted(path) and _listens(path)), SYSTEM)


def _is_trusted(path: str) -> bool:
    """Whether it belongs to root or to this user: anybody may make files in /tmp."""
    try:
        return Path(path).stat().st_uid in (0, os.getuid())
    except OSError:
        return False


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        try:
            connection.connect(path)
        except BlockingIOError:  # a daemon is there, but busy: its queue is full
            return True
        except OSError:
            return False
    return True
