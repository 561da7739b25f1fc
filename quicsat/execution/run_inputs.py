"""Inputs of a run, generated for every run: certificates and random files, on request from a seed."""

from __future__ import annotations

import datetime
import hashlib
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from quicsat.execution.page_files import SUFFIXES, page_object
from quicsat.links.certificates import certificates
from quicsat.links.session import InputOrigin
from quicsat.model.implementation import Role
from quicsat.model.run import File
from quicsat.model.test_case import TestCase
from quicsat.model.units import MIB
from quicsat.model.webtransport import NEGOTIATED, WebTransport

PROTOCOLS, SESSION_NAME = 5, 16
"""Application protocols of each side in a handshake, and characters of their names and of a session's path."""
INPUTS = ".inputs-"
"""Prefix of the directory with the files that the server offers during a run."""


@dataclass(frozen=True)
class Inputs:
    """Files of one run: paths inside the containers -> content."""

    files: tuple[File, ...]
    """Those that must be found at the end, by the names that they have then."""
    www: dict[str, Path]
    """Of the side that has the files."""
    certs: dict[str, bytes]
    session: SessionInputs | None = None
    """Only of tests of WebTransport."""

    @property
    def requests(self) -> tuple[str, ...]:
        """Names of the files, in the order of the requests; one empty name if there is no file."""
        return tuple(file.name for file in self.files) or ("",)


@dataclass(frozen=True)
class SessionInputs:
    """What both sides of a WebTransport session are told."""

    path: str
    """Of the session in the URL, without slashes; both sides have a directory of this name below ``www``."""
    protocols: Mapping[Role, tuple[str, ...]]
    """Application protocols of each side, the preferred one first."""

    @property
    def expected(self) -> str:
        """The first protocol of the client that the server has."""
        return next(each for each in self.protocols[Role.CLIENT] if each in self.protocols[Role.SERVER])


@contextmanager
def make_inputs(test_case: TestCase, directory: Path, origin: InputOrigin | None = None) -> Iterator[Inputs]:
    """Files below ``directory`` and a certificate chain for one run; removed when the block is left.

    The same ``origin`` gives the same files and certificates; without one they are random.
    """
    numbers = random.SystemRandom() if origin is None else random.Random(origin.seed)
    moment = datetime.datetime.now(datetime.UTC) if origin is None else origin.moment
    with TemporaryDirectory(prefix=INPUTS, dir=directory) as folder:
        files = _files(test_case, Path(folder), numbers)
        www = {f"www/{file.name}": Path(folder, file.name) for file in files}
        chain = certificates(test_case.chain_length, numbers, moment)
        inputs = Inputs(files, www, {f"certs/{name}": content for name, content in chain.items()})
        yield inputs if test_case.webtransport is None else _in_session(inputs, test_case.webtransport, numbers)


def _in_session(inputs: Inputs, kind: WebTransport, numbers: random.Random) -> Inputs:
    """``inputs`` for a test of WebTransport: the files are in the directory of the session.

    In a handshake, both sides have two protocols in common, in different orders. Then the files to be found are those
    in which they write the protocol that they agree on, one of each side.
    """
    path = _name_of_file(SESSION_NAME, numbers)
    if kind is not WebTransport.HANDSHAKE:
        protocol = (_name_of_file(SESSION_NAME, numbers),)
        session = SessionInputs(path, dict.fromkeys(Role, protocol))
        files = tuple(replace(file, name=f"{path}/{file.name}") for file in inputs.files)
        www = {f"www/{path}/{name.removeprefix('www/')}": content for name, content in inputs.www.items()}
        return replace(inputs, files=files, www=www, session=session)
    protocols = {role: [_name_of_file(SESSION_NAME, numbers) for _ in range(PROTOCOLS)] for role in Role}
    first, second = sorted(numbers.sample(range(PROTOCOLS), 2))
    client, server = protocols[Role.CLIENT], protocols[Role.SERVER]
    server[first], server[second] = client[second], client[first]
    session = SessionInputs(path, {role: tuple(words) for role, words in protocols.items()})
    return replace(inputs, files=tuple(protocol_file(role, session.expected) for role in Role), session=session)


def protocol_file(role: Role, protocol: str) -> File:
    """The file of a side with the application protocol of a session; blanks around it do not count."""
    content = protocol.strip().encode()
    return File(f"{role}/{NEGOTIATED}", len(content), hashlib.sha256(content).hexdigest())


def _files(test_case: TestCase, folder: Path, numbers: random.Random) -> tuple[File, ...]:
    """The files of a run, in the order of the requests; those of a page name each other."""
    workload = test_case.workload
    if workload is None or not workload.types:
        return tuple(_random_file(folder, size, test_case.name_length, numbers) for size in test_case.file_sizes)
    names = [_name_of_file(test_case.name_length, numbers) + SUFFIXES[kind] for kind in workload.types]
    files = []
    for place, (name, size) in enumerate(zip(names, test_case.file_sizes, strict=True)):
        content = page_object(place, size, workload, names, numbers)
        Path(folder, name).write_bytes(content)
        files.append(File(name, size, hashlib.sha256(content).hexdigest()))
    return tuple(files)


def _name_of_file(length: int, numbers: random.Random) -> str:
    return numbers.randbytes(length).hex()[:length]


def _random_file(folder: Path, size: int, name_length: int, numbers: random.Random) -> File:
    name = _name_of_file(name_length, numbers)
    digest = hashlib.sha256()
    with Path(folder, name).open("wb") as out:
        for start in range(0, size, MIB):
            data = numbers.randbytes(min(MIB, size - start))
            digest.update(data)
            out.write(data)
    return File(name, size, digest.hexdigest())
