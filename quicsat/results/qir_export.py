"""Results -> the JSON of the QUIC Interop Runner (QIR) and of QIR-SE, for the tools that read those.

Both formats hold less than result.json. They are filled as follows:

* Functional tests are in ``results``, measurements in ``measurements``.
* The worst outcome of a pair decides: failed (a timeout is a failure), then unsupported, then succeeded, which takes
  that all repetitions have succeeded. If only runs are missing, or ended with a harness error, the result is null.
* While a campaign is not finished, a pair with repetitions still to run has the result null and the values so far.
* Runs that failed, ended with a harness error or were skipped have the value null.
* A variant has the name of its folder. Names and abbreviations have letters instead of signs that mean something in
  CSS (``qir_names``): with signs, the web pages of both runners do not show a cell, or show nothing. On these pages,
  links to the logs of variants lead nowhere.
* The protocol of a pair is not exported.
* Excluded attempts are not exported, since neither format has a field for them; result.json has all.
* Pairs that never ran are left out; so are those whose image failed the compliance check.
* The clock, with CPU costs, amplitudes and whether the campaign is a placebo, is in the key ``quicsat``, which only
  ``quicsat.results.qir_import`` reads: others have real time only.
* ``details`` are filled for succeeded measurements only; the deviation of a single value is written as 0.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.results import ImageFacts, Manifest, Measurement, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.whole_file import write_atomically
from quicsat.results.qir_names import without_signs
from quicsat.results.summary import figures

KBPS = 1e3
"""One kbit/s in bit/s: the unit of both formats."""
QUIC_VERSION = "0x1"
QUIC_DRAFT = 34
"""QIR-SE requires this number; 34 was the last draft before version 1."""

ERROR_CODES: Mapping[ErrorCode, str] = {
    ErrorCode.UNSUPPORTED: "UNSUPPORTED_TEST_CASE",
    ErrorCode.TIMEOUT: "TIMEOUT",
    ErrorCode.FILE_MISSING: "MISSING_DOWNLOADED_FILES",
    ErrorCode.FILE_EXTRA: "EXTRA_DOWNLOADED_FILES",
    ErrorCode.FILE_SIZE: "DOWNLOADED_FILE_SIZE_MISSMATCH",
    ErrorCode.FILE_CONTENT: "DOWNLOADED_FILE_CONTENT_MISSMATCH",
    ErrorCode.HANDSHAKE_COUNT: "HANDSHAKE_AMOUNT_MISSMATCH",
    ErrorCode.WRONG_VERSION: "WRONG_VERSION",
    ErrorCode.SEVERAL_VERSIONS: "TOO_MANY_VERSIONS",
    ErrorCode.KEY_LOG_MISSING: "UNSUPPORTED_TEST_CASE",
    ErrorCode.VERSION_NEGOTIATION: "NO_DCID",
    ErrorCode.CONNECTION_IDS: "NO_MATCHING_SCID",
    ErrorCode.UNEXPECTED_RETRY: "UNEXPECTED_RETRY",
    ErrorCode.HELLO_NOT_REPEATED: "TOO_LESS_CLIENT_HELLOS",
    ErrorCode.WRONG_CIPHER: "CRYPTO_ERROR",
    ErrorCode.STREAM_LIMIT: "STREAM_LIMIT_TOO_HIGH",
    ErrorCode.RETRY_MISSING: "NO_RETRY_PACKET",
    ErrorCode.RETRY_TOKEN: "NO_RETRY_PACKET_WITH_RETRY_TOKEN",
    ErrorCode.RETRY_WITHOUT_TOKEN: "RETRY_PACKET_WITHOUT_RETRY_TOKEN",
    ErrorCode.RETRY_CONNECTION_ID: "NO_RETRY_PACKET_WITH_RETRY_TOKEN",
    ErrorCode.PACKET_NUMBER_RESET: "PACKET_NUMBER_RESETTED",
    ErrorCode.CERTIFICATE_MISSING: "NO_CERT_MESSAGE_IN_FIRST_HANDSHAKE",
    ErrorCode.CERTIFICATE_RESENT: "CERT_MESSAGE_IN_SECOND_HANDSHAKE",
    ErrorCode.SESSION_NOT_RESUMED: "CERT_MESSAGE_IN_SECOND_HANDSHAKE",
    ErrorCode.EARLY_DATA_MISSING: "NO_0RTT_DATA",
    ErrorCode.EARLY_DATA_LATE: "TOO_MUCH_1RTT_DATA",
    ErrorCode.KEY_UPDATE_MISSING: "CRYPTO_ERROR",
    ErrorCode.KEY_UPDATE_ORDER: "CRYPTO_ERROR",
    ErrorCode.ECN: "ECN_ERROR",
    ErrorCode.CHAIN_TOO_SHORT: "TOO_LITTLE_HANDSHAKE_CRYPTO_DATA",
    ErrorCode.AMPLIFICATION: "AMPLIFICATION_ERROR",
    ErrorCode.PATH_UNCHANGED: "TOO_FEW_PATH_CHALLENGE_FRAMES",
    ErrorCode.PATH_CHALLENGE_MISSING: "MISSING_PATH_CHALLENGE_FRAME",
    ErrorCode.PATH_RESPONSE_MISSING: "MISSING_PATH_RESPONSE",
    ErrorCode.CONNECTION_ID_REUSED: "REUSING_OLD_DCID",
    ErrorCode.IPV4_USED: "IPV4_PACKETS_IN_TRACE",
    ErrorCode.TRACE_EMPTY: "BROKEN_PCAP",
    ErrorCode.TRACE_TRUNCATED: "BROKEN_PCAP",
    ErrorCode.TRACE_CORRUPT: "BROKEN_PCAP",
    ErrorCode.TRACE_MISMATCH: "BROKEN_PCAP",
}
"""Error codes of QIR-SE (in its spelling) by error code."""

NO_IMAGE = ImageFacts("", "")
"""QIR-SE's web page reads the image of every implementation."""
_SEVERITY = {
    Outcome.FAILED: "failed",
    Outcome.TIMEOUT: "failed",
    Outcome.UNSUPPORTED: "unsupported",
    Outcome.SUCCEEDED: "succeeded",
}
"""Worst first."""


def to_qir(result_set: ResultSet, log_dir: str = ".") -> dict[str, Any]:
    """Results as ``quic-interop-runner``'s own ``-j`` writes them; ``log_dir`` is relative to the JSON file."""
    test_cases = result_set.manifest.test_cases
    cells = _cells(result_set)
    return {
        **_head(result_set, log_dir),
        "tests": {
            without_signs(case.abbreviation): {"name": case.name, "desc": case.description} for case in test_cases
        },
        "quic_version": QUIC_VERSION,
        "results": _parts(cells, functional=True, keys=("abbr", "name", "result")),
        "measurements": _parts(cells, functional=False, keys=("name", "abbr", "result", "details")),
    }


def to_qir_se(result_set: ResultSet, log_dir: str = ".") -> dict[str, Any]:
    """Results as QIR-SE writes them; ``log_dir`` is relative to the JSON file."""
    cells = _cells(result_set)
    return {
        "id": _uuid(result_set.manifest.id),
        **_head(result_set, log_dir),
        "images": _images(result_set),
        "tests": {
            without_signs(case.abbreviation): {
                "name": case.name,
                "desc": case.description,
                "timeout": int(case.timeout) if case.timeout == int(case.timeout) else case.timeout,
                **({} if case.functional else _of_measurement(case)),
            }
            for case in result_set.manifest.test_cases
        },
        "quic_draft": QUIC_DRAFT,
        "quic_version": QUIC_VERSION,
        "results": _parts(cells, functional=True, keys=("abbr", "result", "error_code")),
        "measurements": _parts(cells, functional=False, keys=("abbr", "result", "details", "values", "error_code")),
    }


def _of_measurement(case: TestCase) -> dict[str, Any]:
    """The field by which QIR-SE distinguishes a measurement from a test."""
    return {"theoretical_max_value": case.link.forward.rate / KBPS, "repetitions": case.repetitions}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a document as a whole or not at all; MachineError if that fails."""
    text = json.dumps(content, indent=4, ensure_ascii=False, allow_nan=False)
    write_atomically(path, text.encode("utf-8", "replace") + b"\n")


def _head(result_set: ResultSet, log_dir: str) -> dict[str, Any]:
    manifest = result_set.manifest
    folders = _folders(manifest)
    servers, clients = (sorted(map(folders.__getitem__, names)) for names in (manifest.servers, manifest.clients))
    urls = {without_signs(implementation.folder): implementation.url for implementation in manifest.implementations}
    return {
        "quicsat": {
            "clock": manifest.clock.value,
            "cpu_cost": manifest.cpu_cost,
            "own_cpu_costs": manifest.own_cpu_costs,
            "cpu_cost_factor": manifest.cpu_cost_factor,
            "amplitudes": asdict(manifest.amplitudes),
            "placebo": manifest.placebo,
        },
        "start_time": _timestamp(manifest.started),
        "end_time": _end(result_set),
        "log_dir": log_dir,
        "servers": servers,
        "clients": clients,
        "urls": {name: urls[name] for name in sorted({*servers, *clients}) if name in urls},
    }


# ---- cells ----------------------------------------------------------------------------------


_Cells = list[list[tuple[TestCase, dict[str, Any]]]]


def _parts(cells: _Cells, *, functional: bool, keys: tuple[str, ...]) -> list[list[dict[str, Any]]]:
    """The cells of functional tests, or of measurements, with their details."""
    return [
        [{key: found[key] for key in keys} for case, found in cell if case.functional is functional] for cell in cells
    ]


def _cells(result_set: ResultSet) -> _Cells:
    """Index = client index * number of servers + server index, of the sorted names; one element per test case."""
    manifest = result_set.manifest
    groups: dict[tuple[str, str, str], dict[int, RunResult]] = {}
    for result in result_set.results:
        if result.verdict.code is not ErrorCode.NOT_COMPLIANT and result.verdict.outcome is not Outcome.SKIPPED:
            groups.setdefault((result.client, result.server, result.test_case), {})[result.repetition] = result
    return [
        [
            (case, _measurement(case, groups[client, server, case.name], in_progress=result_set.finished is None))
            for case in manifest.test_cases
            if (client, server, case.name) in groups
        ]
        for client in sorted(manifest.clients, key=_folders(manifest).__getitem__)
        for server in sorted(manifest.servers, key=_folders(manifest).__getitem__)
    ]


def _folders(manifest: Manifest) -> dict[str, str]:
    """Names of implementations as in paths, which readers of these formats build from them, without signs of CSS."""
    return {implementation.name: without_signs(implementation.folder) for implementation in manifest.implementations}


def _measurement(case: TestCase, results: Mapping[int, RunResult], *, in_progress: bool) -> dict[str, Any]:
    pending = in_progress and len(results) < case.repetitions
    result, code = (None, None) if pending else _overall(case, results)
    last = min(max(results), case.repetitions) if pending else case.repetitions
    values = [_value(results.get(repetition)) for repetition in range(1, last + 1)]
    return {
        "name": case.name,
        "abbr": without_signs(case.abbreviation),
        "result": result,
        "details": _details([value for value in values if value is not None]) if result == "succeeded" else "",
        "values": values,
        "error_code": code,
    }


def _overall(case: TestCase, results: Mapping[int, RunResult]) -> tuple[str | None, str | None]:
    """Result of the worst outcome, and the error code of its first repetition."""
    verdicts = [results[repetition].verdict for repetition in sorted(results)]
    for severity in ("failed", "unsupported"):
        for verdict in verdicts:
            if _SEVERITY.get(verdict.outcome) == severity:
                return severity, ERROR_CODES.get(verdict.code, "UNKNOWN_ERROR")
    succeeded = sum(verdict.outcome is Outcome.SUCCEEDED for verdict in verdicts)
    return ("succeeded" if succeeded >= case.repetitions else None), None


def _value(result: RunResult | None) -> float | None:
    """kbit/s."""
    match result:
        case RunResult(measurement=Measurement(values={"goodput": goodput})) if (
            result.verdict.outcome is Outcome.SUCCEEDED
        ):
            return float(goodput) / KBPS
    return None


def _details(values: list[float]) -> str:
    spread = figures(values)
    if spread is None:
        return ""
    return f"{spread.mean:.0f} (± {spread.standard_deviation or 0:.0f}) kbps"


# ---- facts ----------------------------------------------------------------------------------


def _images(result_set: ResultSet) -> dict[str, dict[str, Any]]:
    answers: dict[str, bool] = {}
    for answer in result_set.compliance:
        answers[answer.implementation] = answers.get(answer.implementation, True) and answer.compliant
    manifest = result_set.manifest
    folders = _folders(manifest)
    return {
        folders[name]: _image(manifest.images.get(name, NO_IMAGE), answers.get(name))
        for name in sorted({*manifest.servers, *manifest.clients})
    }


def _image(facts: ImageFacts, compliant: bool | None) -> dict[str, Any]:
    tag = facts.reference.rpartition("/")[2].partition("@")[0].partition(":")[2]
    created = _moment(facts.created)
    return {
        "image": facts.reference,
        "id": facts.id,
        "repo_digests": list(facts.digests),
        "versions": [version for version in (tag, facts.version) if version],
        "created": f"{created:%Y-%m-%d %H:%M}" if created else None,
        "compliant": compliant,
    }


def _moment(text: str) -> datetime | None:
    """RFC 3339 with or without fractions of a second, which Docker gives with nine digits."""
    whole, _, fraction = text.partition(".")
    zone = "Z" if fraction.endswith("Z") else fraction.lstrip("0123456789")
    try:
        moment = datetime.fromisoformat(whole + zone)
        return moment if moment.tzinfo else None
    except ValueError:
        return None


def _timestamp(text: str) -> float | None:
    """Seconds since 1970; None if ``text`` is no time."""
    moment = _moment(text)
    return moment.timestamp() if moment else None


def _end(result_set: ResultSet) -> float | None:
    """When the campaign was finished or, if it was not, when the last run ended that has a result."""
    if result_set.finished is not None:
        return _timestamp(result_set.finished)
    runs = (result.evidence for result in result_set.results)
    ends = [started + sum(run.phases.values()) for run in runs if (started := _timestamp(run.started)) is not None]
    return max(filter(math.isfinite, ends), default=_timestamp(result_set.manifest.started))


def _uuid(identity: str) -> str:
    """QIR-SE requires a UUID: the campaign's id if it is one, else a UUID derived from it."""
    try:
        return str(UUID(identity))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"quicsat:{identity}"))
