"""The options of the commands that measure: run, plan and resume."""

from __future__ import annotations

import argparse
from pathlib import Path

from interop.model import Outcome

MOST_TESTBEDS = 32
"""Beyond this the real-time budget of a simulator is too short to be of use."""


def add_selection(parser: argparse.ArgumentParser) -> None:
    """What is to be run with what."""
    several = {"nargs": "+", "action": "extend", "default": [], "metavar": "NAME"}
    parser.add_argument("-s", "--server", help="implementations that serve", **several)  # type: ignore[arg-type]
    parser.add_argument("-c", "--client", help="implementations that fetch", **several)  # type: ignore[arg-type]
    parser.add_argument("-t", "--test", help="test cases, abbreviations or YAML files", **several)  # type: ignore[arg-type]
    parser.add_argument(
        "-r", "--replace", nargs="+", action="extend", default=[], metavar="NAME=IMAGE", help="use another image"
    )
    parser.add_argument("--repetitions", type=int, metavar="N", help="instead of the test cases' own")
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="of a transfer, instead of the test cases' own"
    )
    parser.add_argument(
        "--strict-upstream", action="store_true", help="judge functional tests by the QUIC Interop Runner's own rules"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the links' losses; drawn and recorded if not given")


def add_execution(parser: argparse.ArgumentParser) -> None:
    """How a new campaign is to be carried out."""
    parser.add_argument("-l", "--log-dir", type=Path, metavar="DIR", help="campaign directory; default: results/<date>")
    parser.add_argument("-f", "--save-files", action="store_true", help="keep the files of runs that do not succeed")
    parser.add_argument(
        "--images", choices=("auto", "local", "pull", "build"), default="auto", help="where images come from"
    )
    parser.add_argument("--no-qlog", action="store_true", help="ask the endpoints for no qlog, which slows some down")
    parser.add_argument("--skip-compliance-check", action="store_true", help="trust the images")
    _add_common(parser)


def add_resume(parser: argparse.ArgumentParser) -> None:
    """How a campaign is to be continued."""
    parser.add_argument("directory", type=Path, nargs="?", default=Path("results", "latest"), metavar="DIR")
    parser.add_argument(
        "--retry",
        nargs="+",
        action="extend",
        default=[],
        choices=[Outcome.FAILED.value, Outcome.TIMEOUT.value, Outcome.UNSUPPORTED.value, Outcome.ERROR.value],
        help="make runs that ended so again, too; those that ended by a fault of ours always are",
    )
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-j", "--json", type=Path, metavar="FILE", help="write the results for tools made for QIR-SE")
    parser.add_argument("-m", "--markdown", action="store_true", help="show the matrices as Markdown")
    parser.add_argument(
        "--parallel",
        type=_testbeds,
        default=1,
        metavar="N|auto",
        help="runs at the same time, each in a testbed of its own; auto: as many as the CPUs have time for",
    )


def _testbeds(word: str) -> int | None:
    """A number of testbeds; None for ``auto``."""
    if word.casefold() == "auto":
        return None
    if word.isdecimal() and 1 <= int(word) <= MOST_TESTBEDS:
        return int(word)
    message = f"{word} is neither auto nor a number from 1 to {MOST_TESTBEDS}"
    raise argparse.ArgumentTypeError(message)
