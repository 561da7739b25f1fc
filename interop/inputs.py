"""What a run's endpoints are given, fresh for every run: certificates and random files."""

from __future__ import annotations

import datetime
import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from interop.model import File, TestCase
from interop.units import MIB

SERVER_NAMES = ("server", "server4", "server6", "server46")
"""Names in the certificate, as the endpoint contract has them."""
VALIDITY = datetime.timedelta(days=10)


@dataclass(frozen=True)
class Inputs:
    """Files of one run: paths inside the containers -> content."""

    files: tuple[File, ...]
    www: dict[str, Path]
    certs: dict[str, bytes]

    @property
    def requests(self) -> tuple[str, ...]:
        """Names of the files, in the order in which they are asked for."""
        return tuple(file.name for file in self.files)


@contextmanager
def make_inputs(test_case: TestCase) -> Iterator[Inputs]:
    """Fresh files and a fresh certificate chain for one run; gone when the block is left."""
    with TemporaryDirectory(prefix="quicsat-") as folder:
        files = tuple(_random_file(Path(folder), size) for size in test_case.file_sizes)
        www = {f"www/{file.name}": Path(folder, file.name) for file in files}
        yield Inputs(files, www, {f"certs/{name}": content for name, content in certificates(1).items()})


def _random_file(folder: Path, size: int) -> File:
    name = secrets.token_hex(8)
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
    root = _certificate(issuer, issuer, issuer_key.public_key(), issuer_key, authority=True)
    chain: list[x509.Certificate] = []
    for level in range(1, chain_length + 1):
        leaf = level == chain_length
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name("server" if leaf else f"quicsat intermediate {level}")
        chain.insert(0, _certificate(subject, issuer, key.public_key(), issuer_key, authority=not leaf))
        issuer, issuer_key = subject, key
    private = issuer_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem = [certificate.public_bytes(serialization.Encoding.PEM) for certificate in (root, *chain)]
    return {"ca.pem": pem[0], "cert.pem": b"".join(pem[1:]), "priv.key": private}


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    signing_key: ec.EllipticCurvePrivateKey,
    *,
    authority: bool,
) -> x509.Certificate:
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
        names = x509.SubjectAlternativeName([x509.DNSName(name) for name in SERVER_NAMES])
        builder = builder.add_extension(names, critical=False)
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
