"""What can be measured: what quicsat brings, and before it what the user's folder has."""

import json
from pathlib import Path

import pytest

from quicsat.config.inventory import Inventory
from quicsat.model.errors import InputError
from quicsat.model.product_files import FILES

OF_QUICSAT = Inventory(FILES)


def write_test_case(folder: Path, name: str, abbreviation: str, more: str = "extends: sat") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = f"name: {name}\nabbreviation: {abbreviation}\ndescription: mine\nfile size: 1 MiB\n{more}\n"
    (folder / f"{name}.yaml").write_text(text)


def test_an_empty_folder_has_what_quicsat_brings(tmp_path: Path) -> None:
    found = Inventory(tmp_path)
    assert list(found.implementations) == list(OF_QUICSAT.implementations)
    assert list(found.test_cases) == list(OF_QUICSAT.test_cases)
    assert list(found.on_request) == list(OF_QUICSAT.on_request)
    assert list(found.workloads) == list(OF_QUICSAT.workloads)


def test_all_marks_of_quicsat_name_clients_and_test_cases() -> None:
    marked = [each for each in OF_QUICSAT.implementations.values() if each.virtual_only.links]
    assert marked
    assert OF_QUICSAT.unknown_marks(marked, ()) == []


def test_own_implementations_come_in_addition_and_replace_those_with_their_names(tmp_path: Path) -> None:
    entry = {"image": "me/mine:1", "url": "https://example.org", "role": "both"}
    (tmp_path / "implementations.json").write_text(json.dumps({"mine": entry, "quic-go": entry}))
    found = Inventory(tmp_path).implementations
    assert set(found) == {*OF_QUICSAT.implementations, "mine"}
    assert (found["quic-go"].image, found["quic-go"].build) == ("me/mine:1", None)


def test_own_test_cases_extend_others_and_hide_those_with_their_labels(tmp_path: Path) -> None:
    write_test_case(tmp_path / "testcases", "mine", "MINE")
    write_test_case(tmp_path / "testcases", "satloss", "OWN")
    write_test_case(tmp_path / "testcases", "other", "sat")
    found = Inventory(tmp_path).test_cases
    brought = OF_QUICSAT.test_cases
    assert set(found) == ({*brought, "mine", "other"}) - {"sat"}
    assert (found["satloss"].abbreviation, found["satloss"].link) == ("OWN", brought["sat"].link)
    deadlines = [case.timeout for case in found.values() if not case.functional]
    assert deadlines == sorted(deadlines)


def test_own_test_cases_on_request_come_before_those_of_quicsat(tmp_path: Path) -> None:
    taken = next(name for name, case in OF_QUICSAT.on_request.items() if case.family is None)
    write_test_case(tmp_path / "testcases" / "more", taken, "OWN")
    found = Inventory(tmp_path).on_request
    assert found[taken].description == "mine"
    assert found.keys() == OF_QUICSAT.on_request.keys()


def test_own_workloads_come_in_addition(tmp_path: Path) -> None:
    folder = tmp_path / "testcases" / "workloads"
    folder.mkdir(parents=True)
    text = "name: mine\nabbreviation: MI\ndescription: mine\nfile sizes: [10 kB]\ntimeout: 60 s\n"
    (folder / "mine.yaml").write_text(text)
    assert set(Inventory(tmp_path).workloads) == {"mine", *OF_QUICSAT.workloads}


def test_two_own_test_cases_with_one_label_are_a_fault(tmp_path: Path) -> None:
    write_test_case(tmp_path / "testcases", "mine", "MINE")
    write_test_case(tmp_path / "testcases", "yours", "mine")
    with pytest.raises(InputError, match="is taken already"):
        _ = Inventory(tmp_path).test_cases


@pytest.mark.parametrize(
    "link", ["implementations.json", "testcases", "testcases/a.yaml", "testcases/workloads", "testcases/sub",
             "testcases/workloads/a.yaml", "testcases/sub/a.yaml"]
)  # fmt: skip
def test_links_are_not_followed(tmp_path: Path, link: str) -> None:
    """The author of a pull request would learn from messages what a file of the machine contains."""
    secret, checkout = tmp_path / "secret", tmp_path / "checkout"
    write_test_case(secret, "a", "A", "TOKEN: SECRET")
    (checkout / link).parent.mkdir(parents=True)
    (checkout / link).symlink_to(secret / "a.yaml" if "." in link else secret)
    found = Inventory(checkout)
    with pytest.raises(InputError, match="is a symbolic link, which is not followed") as raised:
        assert found.implementations and found.test_cases and found.on_request and found.workloads
    assert "TOKEN" not in str(raised.value)
    assert "SECRET" not in str(raised.value)


def test_a_folder_may_be_reached_by_a_link(tmp_path: Path) -> None:
    write_test_case(tmp_path / "real/testcases", "mine", "MINE")
    (tmp_path / "link").symlink_to("real")
    assert "mine" in Inventory(tmp_path / "link").test_cases
