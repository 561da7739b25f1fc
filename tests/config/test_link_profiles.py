"""Rate, delay and loss over time, and capacity on demand, in test case files: values, and one sentence per fault."""

import os
from pathlib import Path

import pytest

from quicsat.config.loader import load_test_cases
from quicsat.config.profile_files import LARGEST_FILE, MOST_STEPS
from quicsat.model.emulated_link import REAL_TIME_RATE, Demand, EmulatedLink, Profile, UniformLoss
from tests.config.my_yaml import extending, faults, read
from tests.ready import cases_on_request, ready_test_cases

KNOWN = {**cases_on_request(), **ready_test_cases()}
SAT = KNOWN["sat"].emulated
TABLE = "time (s), rate (Mbit/s), delay (ms), loss (%)\n0, 10, 20, 0\n2, 0, 20, 0\n3, 5, 40, 1.5\n"
STEPS = {"times": (0.0, 2.0, 3.0), "rates": (10e6, 0.0, 5e6), "delays": (0.02, 0.02, 0.04), "losses": (0, 0, 0.015)}
LEO = Profile("leo.csv", 4.0, **STEPS)  # type: ignore[arg-type]


def emulated(link: str, base: str = "sat") -> EmulatedLink:
    [mine] = read(extending(base, link))
    return mine.emulated


def fault(link: str) -> str:
    [problem] = faults(extending("sat", link))
    return problem


# ---- tables ---------------------------------------------------------------------------------


def test_a_table_of_both_directions() -> None:
    Path("leo.csv").write_text(TABLE)
    link = emulated("profile: leo.csv")
    assert (link.forward.profile, link.back.profile) == (LEO, LEO)
    assert link.forward.rate == link.back.rate == (2 * 10e6 + 1 * 5e6) / 4
    assert link.forward.delay == link.back.delay == pytest.approx(0.025)
    assert link.highest_rate == 10e6
    assert (link.forward.queue, link.forward.loss) == (SAT.forward.queue, None)


def test_a_table_of_one_direction_with_options() -> None:
    Path("up.csv").write_text('\ufeff# made by hand\n"loss [%]","time [ms]"\n\n1,0\n0,500\n')
    link = emulated("return profile: {file: up.csv, loop: false, start: 250 ms}")
    expected = Profile("up.csv", 1.0, (0.0, 0.5), (), (), (0.01, 0.0), loop=False, start=0.25)
    assert link == SAT.with_back(profile=expected)


def test_a_path_is_relative_to_the_test_case_file() -> None:
    Path("links").mkdir()
    Path("links/leo.csv").write_text(TABLE)
    Path("links/my.yaml").write_text(extending("sat", "profile: leo.csv"))
    [mine] = load_test_cases(Path("links/my.yaml"), KNOWN)
    assert mine.emulated.forward.profile == LEO


def test_profiles_are_inherited_replaced_and_left_out() -> None:
    Path("leo.csv").write_text(TABLE)
    Path("up.csv").write_text("time (s), rate (kbit/s)\n0, 500\n")
    first = "name: xa\nabbreviation: XA\nextends: sat\nlink: {profile: leo.csv}\n"
    second = "---\nname: xb\nabbreviation: XB\nextends: xa\nlink: {return profile: up.csv, loss: 1 %}\n"
    third = "---\nname: xc\nabbreviation: XC\nextends: xb\nlink: {profile: none, rate: 7 Mbit/s, delay: 3 ms}\n"
    links = {case.name: case.emulated for case in read(first + second + third)}
    assert links["xb"].forward.profile == LEO
    assert links["xb"].back.profile == Profile("up.csv", 1.0, (0.0,), (500e3,))
    assert links["xb"].back.rate == 500e3
    assert links["xc"] == SAT.with_both(rate=7e6, delay=0.003, loss=UniformLoss(0.01))


def test_a_link_needs_no_rate_and_delay_beside_a_profile() -> None:
    Path("leo.csv").write_text(TABLE)
    text = "name: xa\nabbreviation: XA\ndescription: x\nlink: {scenario: simple-p2p, queue: 9, profile: leo.csv}\n"
    [case] = read(text + "file size: 1 MiB\nrepetitions: 1\ntimeout: 9 s\n")
    assert case.emulated.forward.rate == 6.25e6


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "leo.csv: holds no step."),
        ("time (s), rate (Mbit/s)\n", "leo.csv:1: has a header and no step."),
        ("time (s)\n0\n", "leo.csv:1: needs a time and a rate, a delay or a loss; write for example: time (s), rate"),
        ("time, rate (Mbit/s)\n0,1\n", 'leo.csv:1: column "time" is none of time, rate, delay, loss with a unit;'),
        ("time (s), speed (Mbit/s)\n0,1\n", 'column "speed (Mbit/s)" is none of'),
        ("time (s), rate (Mbps)\n0,1\n", 'column "rate" has the unit "Mbps"; allowed: bit/s, kbit/s, Mbit/s, Gbit/s.'),
        ("time (s), rate (bit/s), rate (bit/s)\n0,1,1\n", 'has two columns "rate".'),
        ("time (s), rate (bit/s)\n0\n", "leo.csv:2: has 1 value; the header has 2 columns."),
        ("time (s), rate (bit/s)\n1,5\n", "leo.csv:2: the first time must be 0."),
        ("time (s), rate (bit/s)\n0,5\n2,5\n2,6\n", "leo.csv:4: time 2 s does not come after 2 s."),
        ("time (s), rate (bit/s)\n0,5\n-1,5\n", 'leo.csv:3: time "-1" is out of range: 0 s to 1 h.'),
        ("time (s), rate (bit/s)\n0,nan\n", 'leo.csv:2: rate "nan" is no rate; allowed: 0 bit/s to 100 Gbit/s.'),
        ("time (s), rate (bit/s)\n0,1e9\n", 'rate "1e9" is no rate'),
        ("time (s), rate (bit/s)\n0,\n", 'rate "" is no rate'),
        ("time (s), rate (bit/s)\n0,-5\n", 'rate "-5" is out of range: 0 bit/s to 100 Gbit/s.'),
        ("time (s), rate (bit/s)\n0,0\n5,0\n", "profile: the rate is always 0."),
        ("time (s), delay (s)\n0,61\n", 'delay "61" is out of range: 0 s to 60 s.'),
        ("time (s), loss (%)\n0,101\n", 'loss "101" is out of range: 0 % to 100 %.'),
        ("time (s), loss (%)\n0,1\n3601,1\n", 'time "3601" is out of range: 0 s to 1 h.'),
        ("time (s), loss (%)\n" + "".join(f"{n},1\n" for n in range(MOST_STEPS + 1)), "has more than 10000 steps."),
        ("time (s), loss (%)\n0," + "9" * 100_000 + "\n", "behind it; allowed: 0 % to 100 %."),
        ("5 ms\n", 'column "5 ms" is none of time'),
        ("1\n2\nx\n", 'leo.csv:3: "x" is no time in whole milliseconds.'),
        ("5\n4\n", "leo.csv:2: time 4 ms comes before 5 ms."),
        ("0\n", "leo.csv:1: ends after 0 ms; allowed: 1 ms to 1 h."),
        ("1\n3600001\n", "ends after 3600001 ms; allowed: 1 ms to 1 h."),
    ],
)
def test_faults_of_files(content: str, expected: str) -> None:
    Path("leo.csv").write_text(content)
    found = fault("profile: {file: leo.csv}")
    assert expected in found
    assert len(found) < 400


def test_files_that_are_none() -> None:
    words = "names no file in the directory of the test case; allowed: a CSV table, a Mahimahi trace, "
    words += "{leo: {}}, {meo: {}}, {fade: {}}, none."
    assert fault("profile: leo.csv") == f'my.yaml:4: "mine": profile "leo.csv" {words}'
    assert words in fault("profile: ")
    assert fault("return profile: {file: a.csv}") == f'my.yaml:4: "mine": return profile: file "a.csv" {words}'
    Path("leo").write_text(TABLE)
    assert fault("profile: leo") == f'my.yaml:4: "mine": profile "leo" {words}'
    Path("large.csv").write_bytes(b"0,1\n" * (LARGEST_FILE // 4 + 1))
    assert fault("profile: large.csv") == "large.csv: is larger than 8 MiB."
    Path("binary.csv").write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8 text" in fault("profile: binary.csv")
    os.mkfifo("pipe.csv")
    assert fault("profile: pipe.csv") == "pipe.csv: is no regular file."
    assert "is a folder" in fault("profile: .")


@pytest.mark.parametrize("link", ["profile: {}", "return profile: {{file: {}}}"])
@pytest.mark.parametrize(
    "name",
    ["/proc/self/environ", "../secret.csv", "{here}/../secret.csv", "link.csv", "links/secret.csv", "../none.csv"],
)
def test_a_file_outside_of_the_directory_of_the_test_case_is_not_read(link: str, name: str) -> None:
    """The author of a pull request would learn its first line, or whether it exists, from the log of a CI job."""
    Path("../secret.csv").write_text("TOKEN=secret\n")
    Path("link.csv").symlink_to("../secret.csv")
    Path("up").symlink_to("..")
    found = fault(link.format(name.format(here=Path.cwd())))
    assert "names no file in the directory" in found
    assert "TOKEN" not in found


def test_a_link_and_a_long_way_to_a_file_below_the_test_case_are_followed() -> None:
    Path("below").mkdir()
    Path("below/real.csv").write_text(TABLE)
    Path("leo.csv").symlink_to("below/real.csv")
    assert emulated("profile: leo.csv").forward.profile == LEO
    assert emulated("profile: below/../leo.csv").forward.profile is not None


# ---- traces of delivery opportunities -------------------------------------------------------


def test_a_trace_has_the_rate_of_its_opportunities() -> None:
    stamps = [*range(1, 101), *range(150, 251, 50)]
    Path("up.trace").write_text("\n".join(map(str, stamps)))
    profile = emulated("return profile: {file: up.trace, start: random}").back.profile
    assert (profile.length, profile.times, profile.start) == (0.25, (0.0, 0.1, 0.2), None)
    # of 100 ms each, except for the last 50 ms: 99 packets, then those at 100 and 150, then those at 200 and 250
    assert profile.rates == pytest.approx([99 * 1502 * 8 / 0.1, 2 * 1502 * 8 / 0.1, 2 * 1502 * 8 / 0.05])
    assert profile.mean(profile.rates) == pytest.approx(103 * 1502 * 8 / 0.25)


def test_the_step_of_a_trace() -> None:
    Path("up.trace").write_text("500\n1000\n")
    profile = emulated("return profile: {file: up.trace, step: 500 ms}").back.profile
    assert profile.times == (0.0, 0.5)
    Path("leo.csv").write_text(TABLE)
    assert "is a table; only traces of delivery opp" in fault("profile: {file: leo.csv, step: 500 ms}")
    Path("long.trace").write_text("0\n3600000\n")
    assert "has more than 10000 steps of 100 ms; choose a longer step." in fault("profile: long.trace")


# ---- options of a profile -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("profile: {}", 'profile "{}" needs one of file, leo, meo, fade; write for example profile: {leo: {}}'),
        ("profile: {file: leo.csv, leo: {}}", 'profile "{file: leo.csv, leo: {}}" needs one of file, leo, meo, fade'),
        ("profile: {geo: {}}", 'profile: unknown key "geo". Did you mean meo? Allowed: file, step, loop, start, leo,'),
        ("profile: {leo: {rate: [2 Mbit/s, 1 Mbit/s]}}", 'rate "[2 Mbit/s, 1 Mbit/s]" must be one value, or'),
        ("profile: {leo: {outage: 10 s, burst: 5 s}}", "outage and burst together must be shorter than the time"),
        ("profile: {leo: {step: 1 ms}}", "leo: more than 10000 steps; choose a longer step or a shorter length."),
        ("profile: {leo: {handover: 1 h, length: 61 min}}", 'length "61 min" is out of range: 1 ms to 1 h.'),
        ("profile: {meo: {outage: 1 h}}", "meo: the outage must be shorter than the pass."),
        ("profile: {fade: {slope: 0.1 dB/s}}", "fade: the fade takes 260 s, longer than the length."),
        ("profile: {meo: {}, step: 5 s}", "step belongs to a file; write it among the parameters of the generator."),
        ("profile: {file: leo.csv, start: 4 s}", "start 4 s is not before the end of the profile, 4 s."),
        ("profile: leo.csv, rate: 5 Mbit/s", "rate is given by the profile; leave one of them out."),
        ("return profile: leo.csv, return delay: 5 ms", "return delay is given by the profile; leave one of them out."),
        ("return access: {dama: 5}", 'return access "{dama: 5}" needs dama; write for example return access: {dama'),
        ("return access: {dama: {slot: 10 kB}}", "is more than a frame of the return link carries, 6625 B."),
        ("return access: {rcs: {}}", 'unknown key "rcs". Allowed: dama.'),
    ],
)
def test_faults_of_options(link: str, expected: str) -> None:
    Path("leo.csv").write_text(TABLE)
    first = faults(extending("sat", link))[0]
    assert expected in first
    assert first.startswith("my.yaml:4: ")


# ---- capacity on demand ---------------------------------------------------------------------


def test_capacity_on_demand() -> None:
    assert emulated("return access: {dama: {}}").demand == Demand(0.0265, 0.6, 100)
    chosen = emulated(
        "return access: {dama: {frame: 40 ms, request delay: 560 ms, slot: 53 B, constant rate: 64 kbit/s}}"
    )
    assert chosen.demand == Demand(0.04, 0.56, 53, 64e3)
    assert emulated("loss: 1 %", "dama").demand == KNOWN["dama"].emulated.demand
    assert emulated("return access: dedicated", "dama") == SAT


# ---- the built-in links ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["leo", "meo", "fade", "dama"])
def test_built_in_links_run_in_real_time(name: str) -> None:
    link = KNOWN[name].emulated
    assert link.highest_rate <= REAL_TIME_RATE
    assert link.back.profile is not None or link.back.rate == SAT.back.rate


def test_both_directions_of_leo_have_the_same_delays_and_handovers() -> None:
    link = KNOWN["leo"].emulated
    assert link.forward.profile
    assert link.back.profile
    assert link.forward.profile.times == link.back.profile.times
    assert link.forward.profile.delays == link.back.profile.delays
    assert link.forward.profile.begin(9) == link.back.profile.begin(9)
