"""Which line of a build's output is shown: the first error, not the last line."""

import pytest

from quicsat.images.build_log import LONGEST, BuildLog

APT = [
    "Step 3/9 : RUN apt-get update && apt-get install -y libgpg-error0 cmake && cmake --build .",
    "Get:1 http://deb.debian.org/debian trixie/main amd64 libgpg-error0 amd64 1.51",
    "Setting up libgpg-error0:amd64 (1.51-4) ...",
]
TAIL = ["make[1]: *** [Makefile:87: all] Error 2", "make: *** [Makefile:12: build] Error 2", ""]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["src/a.c:7:3: warning: unused", "src/a.c:9:12: error: expected ';'", "src/b.c:1:1: error: no", *TAIL],
         "src/a.c:9:12: error: expected ';'"),
        (["error[E0425]: cannot find value `x` in this scope", "  --> src/main.rs:3:5", "error: aborting"],
         "error[E0425]: cannot find value `x` in this scope --> src/main.rs:3:5"),
        (["./main.go:12:2: undefined: quic.Foo", *TAIL], "./main.go:12:2: undefined: quic.Foo"),
        (["W: a warning", "E: Unable to locate package libfoo", *TAIL], "E: Unable to locate package libfoo"),
        (["CMake Error at CMakeLists.txt:5 (find_package):", "  Could not find x"],
         "CMake Error at CMakeLists.txt:5 (find_package): Could not find x"),
        (["a.o: in function `main': undefined reference to `f'", "collect2: error: ld returned 1 exit status"],
         "a.o: in function `main': undefined reference to `f'"),
        (["Traceback (most recent call last):", "  File x", "ModuleNotFoundError: No module named 'y'"],
         "ModuleNotFoundError: No module named 'y'"),
        (["curl: (6) Could not resolve host: example.org"], "curl: (6) Could not resolve host: example.org"),
        (TAIL, "make: *** [Makefile:12: build] Error 2"),
        (["something else", ""], "something else"),
        (["\x1b[31merror:\x1b[0m red", "x" * 1000], "error: red"),
    ],
)  # fmt: skip
def test_the_line_that_says_why(lines: list[str], reason: str) -> None:
    log = BuildLog()
    for line in ["Step 2/9 : COPY x y", "error: of a step that did not fail", *APT, *lines]:
        log.add(line)
    assert log.step == APT[0]
    assert log.reason == reason


def test_a_line_of_any_length_is_cut() -> None:
    log = BuildLog()
    log.add("error: " + "x" * 10_000)
    assert len(log.reason) == LONGEST + 1
