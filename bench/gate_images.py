"""Images of changed builds for ``bench.gate_changes``: each is made from the image of an implementation, or its folder.

quic-go is a static program: its changes are commands on its sources, all built in one stage that begins as its own
Dockerfile does. quiche's wrapper is changed in a copy of its folder. picoquic and ngtcp2 preload a library.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import IO

from bench.script import DAEMON, ROOT
from quicsat.config.loader import load_implementations
from quicsat.images.build_recipes import build_context, recipe_of
from quicsat.model.errors import MachineError
from quicsat.model.whole_file import scratch_directory

PRELOADED = Path(__file__).with_name("gate_preload.c")
LAYERS = {
    "a file": "RUN echo nothing >/endpoint/notes",
    "an environment variable": "ENV NOTES=nothing",
    "a longer program name": """\
RUN cd /endpoint && for program in client server; do \\
    long=a-much-longer-name-of-the-$program; [ -L $program ] || { mv $program $long && ln -s $long $program; }; \\
    done""",
    "a rebuilt image": "RUN find /endpoint -type f -exec cp {} {}.new \\; -exec mv {}.new {} \\;",
    "another start script": """\
RUN mv /run_endpoint.sh /start_endpoint.sh \\
 && printf '#!/bin/bash\\nset -u\\nexec /start_endpoint.sh "$@"\\n' >/run_endpoint.sh && chmod +x /run_endpoint.sh""",
}
"""Irrelevant changes that are layers on any image."""
IN_CODE = (
    "a log line in the server", "ten log lines in the server", "a log line in the client", "another thread",
    "one stat()",
)  # fmt: skip
"""Irrelevant changes of the program itself."""
PLANTED = {
    "quic-go": (
        "initial window halved", "pacing burst doubled", "loss timer doubled", "ACK of every packet",
        "a copy of every packet", "a write() of every packet",
    ),
    "quiche": ("10 % slower",),
}  # fmt: skip
"""Changes that a gate should find; a copy in memory takes no time in virtual time."""
IRRELEVANT = (*LAYERS, *IN_CODE)

GO = {
    "a log line in the server": (
        "sed -i '/log.SetOutput(logFile)/a fmt.Fprintln(os.Stderr, \"server started\")' interop/server/main.go"
    ),
    "ten log lines in the server": (
        'sed -i \'/log.Printf("Received request/a for line := range 10 { log.Printf("line %d", line) }\' '
        "interop/http09/server.go"
    ),
    "a log line in the client": (
        "sed -i '/testcase := os.Getenv/a fmt.Fprintln(os.Stderr, \"client started\")' interop/client/main.go"
    ),
    "another thread": (
        'printf \'package main\nimport ("runtime"; "time")\n'
        "func init() { go func() { runtime.LockOSThread(); time.Sleep(time.Hour) }() }\n' >interop/server/thread.go"
    ),
    "one stat()": (
        'printf \'package main\nimport "os"\nfunc init() { os.Stat("/endpoint/configuration") }\n\' '
        ">interop/server/stat.go"
    ),
    "initial window halved": (
        "sed -i 's/initialCongestionWindow  *= 32/initialCongestionWindow = 16/' internal/congestion/cubic_sender.go"
    ),
    "pacing burst doubled": (
        "sed -i 's/^const maxBurstSizePackets = 10/const maxBurstSizePackets = 20/' internal/congestion/pacer.go"
    ),
    "loss timer doubled": (
        "sed -i -e 's/return 2 \\* DefaultInitialRTT/return 4 * DefaultInitialRTT/' "
        "-e 's/^\\treturn pto$/\\treturn 2 * pto/' internal/utils/rtt_stats.go; "
        "sed -i 's/defaultTimeThresholdEighths = 1$/defaultTimeThresholdEighths = 10/' "
        "internal/ackhandler/sent_packet_handler.go"
    ),
    "ACK of every packet": (
        "sed -i 's/^const packetsBeforeAck = 2/const packetsBeforeAck = 1/' "
        "internal/ackhandler/received_packet_tracker.go"
    ),
    "a copy of every packet": (
        "sed -i 's/if err := h.conn.Write(e.buf.Data/copied = append(copied[:0], e.buf.Data...); &/' send_queue.go; "
        "printf 'package quic\nvar copied []byte\n' >copied.go"
    ),
    "a write() of every packet": (
        "sed -i 's/if err := h.conn.Write(e.buf.Data/nowhere.Write(e.buf.Data); &/' send_queue.go; "
        'printf \'package quic\nimport "os"\nvar nowhere, _ = os.OpenFile("/dev/null", os.O_WRONLY, 0)\n\' '
        ">nowhere.go"
    ),
}
"""Shell commands in quic-go's sources."""
GO_BUILD = """\
COPY changes /changes
RUN for change in /changes/*.sh; do \\
    name=$(basename "$change" .sh); cp -r /build "/tmp/$name" && cd "/tmp/$name" \\
 && sh -e "$change" && ! diff -rq /build . >/dev/null \\
 && go build -trimpath -ldflags="-s -w" -o "/out/$name/" ./interop/client ./interop/server || exit 1; done
"""
FUNCTION = "fn work(&mut self, socket: &Socket) -> Outcome<Option<Instant>> {"
"""Of quiche's wrapper: called for each batch of datagrams."""
RUST = {
    "a log line in the server": 'if self.quic.is_server() && calls < 1 { eprintln!("call {calls}") }',
    "ten log lines in the server": 'if self.quic.is_server() && calls < 10 { eprintln!("call {calls}") }',
    "a log line in the client": 'if !self.quic.is_server() && calls < 1 { eprintln!("call {calls}") }',
    "another thread": "if calls == 0 { std::thread::spawn(|| loop { std::thread::park() }); }",
    "one stat()": 'if calls == 0 { let _ = std::fs::metadata("/endpoint/configuration"); }',
    "10 % slower": (
        "if self.quic.is_server() && calls == 300 { std::thread::sleep(std::time::Duration::from_millis(600)) }"
    ),
}
COUNTED = """
        static CALLS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let calls = CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        """
PRELOAD = {
    "a log line in the server": ("server", "-DLOG_LINES=1"),
    "ten log lines in the server": ("server", "-DLOG_LINES=10"),
    "a log line in the client": ("client", "-DLOG_LINES=1"),
    "another thread": ("server", "-DTHREAD"),
    "one stat()": ("server", "-DSTAT"),
}
"""Role and flags of the compiler, for what is preloaded."""
PRELOADING = """\
FROM quicsat/rust-base:latest AS build
COPY preload.c /
RUN cc -O2 -shared -fPIC {flags} -o /change.so /preload.c -ldl -lpthread
FROM {image}
COPY --from=build /change.so /endpoint/
RUN sed -i '2i [[ $ROLE != {role} ]] || export LD_PRELOAD=/endpoint/change.so' /endpoint/{role}
"""


def slug(change: str) -> str:
    """The change as part of an image's name."""
    return re.sub("[^a-z0-9]+", "-", change.lower()).strip("-")


def changes_of(name: str) -> tuple[str, ...]:
    """All changes of an implementation, those that a gate should not find first."""
    return (*IRRELEVANT, *PLANTED.get(name, ()))


def build(name: str, change: str) -> str:
    """Build the image of a change unless the daemon has it; its reference. Raises MachineError."""
    recipe = recipe_of(ROOT, load_implementations(ROOT / "implementations.json")[name])
    base = recipe.tag
    tag = f"quicsat-bench/{name}:{base.partition(':')[2]}-{slug(change)}"
    if not _docker("images", "--quiet", tag):
        with scratch_directory() as folder:
            _write(folder, name, change, recipe.folder, base)
            arguments = [word for key, value in recipe.arguments.items() for word in ("--build-arg", f"{key}={value}")]
            with build_context(folder) as context:
                _docker("build", "--quiet", "--tag", tag, *arguments, "-", stdin=context)
    return tag


def _write(folder: Path, name: str, change: str, own: Path, base: str) -> None:
    """The build context of a change."""
    if change in LAYERS:
        (folder / "Dockerfile").write_text(f"FROM {base}\n{LAYERS[change]}\n")
    elif name == "quic-go":
        shutil.copytree(own, folder, dirs_exist_ok=True)
        (folder / "changes").mkdir()
        for each, commands in GO.items():
            (folder / f"changes/{slug(each)}.sh").write_text(f"{commands}\n")
        text = (folder / "Dockerfile").read_text()
        built, _, _ = text.partition("FROM ${ENDPOINT_BASE}")
        last = f"FROM {base}\nCOPY --from=build /out/{slug(change)}/client /out/{slug(change)}/server /endpoint/\n"
        (folder / "Dockerfile").write_text(f"{built}{GO_BUILD}{last}")
    elif name == "quiche":
        shutil.copytree(own, folder, dirs_exist_ok=True)
        program = folder / "src/main.rs"
        text = program.read_text()
        assert text.count(FUNCTION) == 1
        program.write_text(text.replace(FUNCTION, f"{FUNCTION}{COUNTED}{RUST[change]}"))
    else:
        shutil.copyfile(PRELOADED, folder / "preload.c")
        role, flags = PRELOAD[change]
        (folder / "Dockerfile").write_text(PRELOADING.format(flags=flags, image=base, role=role))


def _docker(*words: str, stdin: IO[bytes] | None = None) -> str:
    done = subprocess.run(["docker", "-H", DAEMON, *words], stdin=stdin, capture_output=True, check=False)
    if done.returncode:
        raise MachineError(f"docker {words[0]}: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout.decode().strip()
