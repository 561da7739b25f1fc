"""What can be measured from a folder: what quicsat brings, and the user's own files, which take precedence."""

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from quicsat.config import loader
from quicsat.config.implementations import VIRTUAL_ONLY_KEY
from quicsat.config.yaml_fields import Problem, check_link, raise_problems
from quicsat.model import product_files
from quicsat.model.implementation import EVERY_CLIENT, Implementation
from quicsat.model.names import FOLDER_SIGN, VARIANT_SIGN, base_name, did_you_mean, split_flows
from quicsat.model.stored_files import resolved
from quicsat.model.test_case import TestCase, without_labels
from quicsat.model.text import quoted
from quicsat.model.workload import WorkloadFiles

IMPLEMENTATIONS, TEST_CASES = "implementations.json", "testcases"


class Inventory:
    """Reads a file when what it holds is asked for; each raises :class:`InputError` with every fault."""

    def __init__(self, folder: Path) -> None:
        """``folder`` may have an ``implementations.json`` and a folder ``testcases`` of the user's own."""
        brought = product_files.FILES
        self._brought, self._own = brought, resolved(folder) if resolved(folder) != resolved(brought) else None

    @cached_property
    def implementations(self) -> dict[str, Implementation]:
        """By name; one of the user replaces that of the same name."""
        found = loader.load_implementations(self._brought / IMPLEMENTATIONS)
        if self._own and os.path.lexists(own := self._own / IMPLEMENTATIONS):
            found |= loader.load_implementations(own)
        return found

    @cached_property
    def test_cases(self) -> dict[str, TestCase]:
        """By name, functional tests first; those of the user hide others with their names and abbreviations."""
        if not self._own_test_cases:
            return self._brought_test_cases
        own = loader.load_known_test_cases(self._own_test_cases, extended=self._brought_test_cases)
        return loader.in_order({**without_labels(self._brought_test_cases, own), **own})

    @cached_property
    def on_request(self) -> dict[str, TestCase]:
        """Those in subfolders of ``testcases``, by name: they run only if named."""
        brought = loader.load_cases_on_request(self._brought / TEST_CASES, self._brought_test_cases)
        if not self._own_test_cases:
            return brought
        own = loader.load_cases_on_request(self._own_test_cases, self.test_cases)
        return own | without_labels(brought, own | self.test_cases)

    @cached_property
    def workloads(self) -> dict[str, WorkloadFiles]:
        """By name, in alphabetical order."""
        return loader.known_workloads(self._own_test_cases or self._brought / TEST_CASES)

    def unknown_marks(self, servers: Iterable[Implementation], selected: Iterable[TestCase]) -> list[str]:
        """A sentence for each name in ``virtual time only`` of the servers that nothing has: its pairs get no mark.

        It is no fault: what it names may be in a file that is not at hand. ``selected``: known from other files.
        """
        links = [link for each in servers for link in each.virtual_only.links]
        clients = {EVERY_CLIENT, *self.implementations}
        clients |= {
            f"{name}{VARIANT_SIGN}{each.name}" for name, one in self.implementations.items() for each in one.variants
        }
        cases = {*self.test_cases, *self.on_request, *(each.name for each in selected)}
        unknown = {name: clients for link in links for name in link.clients if _without_release(name) not in clients}
        unknown |= {each.test_case: cases for each in links if _plain(each.test_case) not in cases}
        return [
            f'{IMPLEMENTATIONS}: "{VIRTUAL_ONLY_KEY}" names {quoted(name)}, which is unknown: nothing gets its mark.'
            f"{did_you_mean(name, known)}"
            for name, known in unknown.items()
        ]

    @cached_property
    def _brought_test_cases(self) -> dict[str, TestCase]:
        return loader.load_known_test_cases(self._brought / TEST_CASES)

    @property
    def _own_test_cases(self) -> Path | None:
        if not self._own:
            return None
        problems: list[Problem] = []
        check_link(folder := self._own / TEST_CASES, problems)
        raise_problems(problems)
        return folder if folder.is_dir() else None


def _without_release(name: str) -> str:
    """``quinn@0.11.5:bbr`` -> ``quinn:bbr``."""
    own, sign, variant = name.partition(VARIANT_SIGN)
    return f"{base_name(own)}{sign}{variant}"


def _plain(test_case: str) -> str:
    """The test case without workload and flows."""
    return split_flows(test_case)[0].partition(FOLDER_SIGN)[0]
