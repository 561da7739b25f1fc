"""What an image is made from, as its labels tell it: source, commit, patches, build type, segmentation offload.

A Dockerfile states the labels; the program reads them from the image, or from the Dockerfile where no image is here.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from quicsat.model.results import Provenance

VERSION = "org.opencontainers.image.version"
PATCHES = "org.quicsat.patches"
CHECKSUM = "org.quicsat.checksum"
"""Only of images that can be built of several releases."""
SOURCE = "org.quicsat.source"
REVISION = "org.opencontainers.image.revision"
FIELDS = {
    "source": SOURCE,
    "repository": "org.opencontainers.image.source",
    "revision": REVISION,
    "changes": "org.quicsat.changes",
    "build_type": "org.quicsat.build-type",
    "gso": "org.quicsat.gso",
}
"""Label of each field of ``Provenance`` that holds its text."""
LABELS = (VERSION, PATCHES, *FIELDS.values())
"""What every Dockerfile of an endpoint states; an empty value stands for what the source does not tell."""
NO_PATCHES = "none"
NOTHING_GIVEN: Mapping[str, str] = MappingProxyType({})

_CONTINUED = re.compile(r"\\\n")
_ARG = re.compile(r"(\w+)(?:=(.*))?")
_LABEL = re.compile(r'([\w.-]+)=(?:"((?:[^"\\]|\\.)*)"|(\S*))')
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def of_labels(labels: Mapping[str, str]) -> Provenance:
    """What the labels of an image tell; images without these labels give empty fields and ``patches`` None."""
    patches = labels.get(PATCHES, "")
    told = {field: labels.get(label, "") for field, label in FIELDS.items()}
    known = () if patches == NO_PATCHES else tuple(patches.split()) or None
    return Provenance(**told, patches=known, checksum=labels.get(CHECKSUM, ""))


def labels_of(dockerfile: Path, given: Mapping[str, str] = NOTHING_GIVEN) -> dict[str, str]:
    """The labels that the last stage of a Dockerfile states; build arguments have the values ``given``, or defaults."""
    return _read(dockerfile, given)[0]


def arguments_of(dockerfile: Path, given: Mapping[str, str] = NOTHING_GIVEN) -> dict[str, str]:
    """The values of a Dockerfile's build arguments: those ``given``, else the defaults of the last stage with one."""
    return _read(dockerfile, given)[1]


def _read(dockerfile: Path, given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The labels of the last stage, and the arguments of all stages."""
    before: dict[str, str] = {}
    everywhere: dict[str, str] = {}
    here = before
    labels: dict[str, str] = {}
    lines = (line for line in dockerfile.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#"))
    for line in _CONTINUED.sub("", "\n".join(lines)).splitlines():
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            here, labels = {}, {}
        elif instruction == "ARG" and (found := _ARG.fullmatch(rest.strip())):
            name, value = found.groups()
            default = before.get(name, "") if value is None else _resolved(value.strip('"'), here)
            here[name] = given.get(name, default)
            everywhere[name] = here[name]
        elif instruction == "LABEL":
            for name, quoted, plain in _LABEL.findall(rest):
                labels[name] = _resolved(quoted or plain, here)
    return labels, everywhere


def _resolved(text: str, arguments: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: arguments.get(found[1], ""), text)
