"""Inputs of a run, generated for every run: certificates and random files."""

from __future__ import annotations

import datetime
import hashlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from interop.model.run import File
from interop.model.test_case import TestCase
from interop.model.units import MIB

INPUTS = ".inputs-"
"""Prefix of the directory with the files that the server offers during a run."""
LONG_NAMES = 20
"""Number of 250-character names that enlarge the leaf of a longer chain, as in the QUIC Interop Runner."""
SERVER_NAMES = ("server", "server4", "server6", "server46")
"""Names in the certificate, from the endpoint contract."""
VALIDITY = datetime.timedelta(days=10)


@dataclass(frozen=True)
class Inputs:
    """Files of one run: paths inside the containers -> content."""

    files: tuple[File, ...]
    www: dict[str, Path]
    certs: dict[str, bytes]

    @property
    def requests(self) -> tuple[str, ...]:
        """Names of the files, in the order of the requests; one empty name if there is no file."""
        return tuple(file.name for file in self.files) or ("",)


@contextmanager
def make_inputs(test_case: TestCase, directory: Path) -> Iterator[Inputs]:
    """Fresh files below ``directory`` and a fresh certificate chain for one run; removed when the block is left."""
    with TemporaryDirectory(prefix=INPUTS, dir=directory) as folder:
        files = tuple(_random_file(Path(folder), size, test_case.name_length) for size in test_case.file_sizes)
        www = {f"www/{file.name}": Path(folder, file.name) for file in files}
        chain = certificates(test_case.chain_length)
        yield Inputs(files, www, {f"certs/{name}": content for name, content in chain.items()})


def _random_file(folder: Path, size: int, name_length: int) -> File:
    name = secrets.token_hex(name_length)[:name_length]
    digest = hashlib.sha256()
    with Path(folder, name).open("wb") as out:
        for start in range(0, size, MIB):
            data = secrets.token_bytes(min(MIB, size - start))
            digest.update(data)
            out.write(data)
    return File(name, size, digest.hexdigest())


def certificates(chain_length: int) -> dict[str, bytes]:
    """``ca.pem`` (the root), ``cert.pem`` (the leaf and its ``chain_length - 1`` intermediates) and ``priv.key``.

    Keys are ECDSA P-256, as the QUIC Interop Runner makes them.
    """
    issuer_key = ec.generate_private_key(ec.SECP256R1())
    issuer = _name("quicsat root")
    root = _certificate(issuer, issuer, issuer_key.public_key(), issuer_key)
    chain: list[x509.Certificate] = []
    for level in range(1, chain_length + 1):
        leaf = level == chain_length
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name("server" if leaf else f"quicsat intermediate {level}")
        names = (*SERVER_NAMES, *_long_names(LONG_NAMES if chain_length > 1 else 0)) if leaf else ()
        chain.insert(0, _certificate(subject, issuer, key.public_key(), issuer_key, names))
        issuer, issuer_key = subject, key
    private = issuer_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem = [certificate.public_bytes(serialization.Encoding.PEM) for certificate in (root, *chain)]
    return {"ca.pem": pem[0], "cert.pem": b"".join(pem[1:]), "priv.key": private}


def _long_names(count: int) -> list[str]:
    """Random host names of 250 characters, in labels of at most 63 (RFC 1035, section 2.3.4)."""
    return [".".join(secrets.token_hex(31) for _ in range(4))[:250] for _ in range(count)]


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    signing_key: ec.EllipticCurvePrivateKey,
    names: Sequence[str] = (),
) -> x509.Certificate:
    """A server's certificate if there are ``names`` of servers, else an authority's."""
    authority = not names
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))  # clocks of hosts differ
        .not_valid_after(now + VALIDITY)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
        .add_extension(_key_usage(authority=authority), critical=True)
    )
    if not authority:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(signing_key, hashes.SHA256())


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
