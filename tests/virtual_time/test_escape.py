"""A hostile client tries to leave its container in the guest, the guest, and the container of the guest's kernel.

Every attempt must be seen to be refused for its own reason: a missing program or a typing error is no refusal.
"""

import re
import secrets
import shlex
from dataclasses import dataclass

import pytest

from tests.virtual_time.machine import DIRECTORY, Ended, Machines, answers

FORBIDDEN = "refused: Operation not permitted"
NO_SUCH_CALL = "refused: Function not implemented"
PREAMBLE = r"""
call() {  # number and arguments of a system call (x86-64)
    perl -e '$n = shift; @a = map { /^-?\d+$/ ? 0 + $_ : "$_\0" } @ARGV; $r = syscall($n + 0, @a);
        print $r < 0 ? "refused: $!" : "DONE: $r"' -- "$@"
}
own() {  # processes in other PID namespaces than this one, of all that can be signalled
    perl -e '$own = readlink "/proc/self/ns/pid";
        print grep { kill(0, $_) && readlink("/proc/$_/ns/pid") ne $own } 1..32768; print "no other"'
}
"""
CHROOT = """perl -e 'mkdir "/tmp/in"; opendir D, "/"; chroot "/tmp/in" or die; chdir *D or die; chdir ".." for 1..64;
    chroot "."; print -e "/images" || -e "/parts" ? "OUTSIDE" : -e "/etc/debian_version" ? "inside" : "lost"'"""
CAPSET = """perl -e '$h = pack "LL", 0x20080522, 0; $d = pack "L6", (0xffffffff) x 6;
    print syscall(126, $h, $d) < 0 ? "refused: $!" : "DONE"'"""
FILE_CAPABILITY = """cp /bin/true /tmp/armed; perl -e '$v = pack "L5", 0x02000001, 0xffffffff, 0, 0xffffffff, 0;
    $f = "/tmp/armed\\0"; $n = "security.capability\\0";
    print syscall(188, $f, $n, $v, 20, 0) < 0 ? "refused: $!" : "DONE"'"""
HANDLE = """perl -e 'opendir D, "/"; $h = pack "LLQ", 8, 1, 2;
    print syscall(304, fileno(D), $h, 0) < 0 ? "refused: $!" : "DONE"'"""
SETNS = (
    """perl -e 'open F, "<", "/proc/1/ns/mnt" or die; print syscall(308, fileno(F), 0) < 0 ? "refused: $!" : "DONE"'"""
)
PTRACE_CHILD_OF_OTHERS = """perl -e 'for (1..32768) { next if -e "/proc/$_"; next if syscall(101, 16, $_, 0, 0) < 0;
    print "ATTACHED $_ " } print "none"'"""
TUNNEL = """perl -e 'socket S, 40, 1, 0 or print "refused: $!"'"""


@dataclass(frozen=True)
class Attempt:
    """Shell words, and all that they may print (a regular expression)."""

    words: str
    answer: str = FORBIDDEN


ATTEMPTS = {
    # file systems of the host
    "mount hostfs": Attempt("call 165 none /mnt hostfs 0 /"),
    "mount 9p": Attempt("call 165 none /mnt 9p 0 trans=fd"),
    "open hostfs for a mount": Attempt("call 430 hostfs 0"),
    "list file systems of hosts": Attempt(
        "grep -E 'hostfs|hppfs|9p|virtiofs|fuse|nfs|cifs|ceph' /proc/filesystems; echo end", "end"
    ),
    # memory
    "make /dev/mem": Attempt("mknod /tmp/mem c 1 1", "mknod: .*: Operation not permitted"),
    "make /dev/kmem": Attempt("mknod /tmp/kmem c 1 2", "mknod: .*: Operation not permitted"),
    "read /proc/kcore": Attempt("head -c 1 /proc/kcore", "head: .*: No such file or directory"),
    "use ports": Attempt("call 172 3", NO_SUCH_CALL),
    # disks
    "make the input disk": Attempt("mknod /tmp/ubda b 98 0", "mknod: .*: Operation not permitted"),
    "make the output disk": Attempt("mknod /tmp/ubdb b 98 16", "mknod: .*: Operation not permitted"),
    "make another's root": Attempt("mknod /dev/ubde b 98 64", "mknod: .*: Operation not permitted"),
    "find a disk": Attempt("find / -xdev -type b; find /dev /proc /sys -type b 2>/dev/null; echo end", "end"),
    "change a disk by /sys": Attempt("echo 1 >/sys/block/ubdb/ro; echo 1 >/sys/block/ubdb/queue/nomerges",
                                     "(?s).*(Read-only|denied).*Read-only file system"),
    "open a file by its handle": Attempt(HANDLE),
    # processes and namespaces
    "see others' processes": Attempt("own", "no other"),
    "trace others' processes": Attempt(PTRACE_CHILD_OF_OTHERS, "none"),
    "see others' roots": Attempt(f"cd /proc/1/root; ls parts images .{DIRECTORY} 2>&1 | grep -vc 'No such'",
                                 "0"),
    "enter another namespace": Attempt(SETNS),
    "make a mount namespace": Attempt("call 272 131072"),
    "make a user namespace": Attempt("call 272 268435456", "refused: (Operation not permitted|Invalid argument)"),
    "pivot_root": Attempt("mkdir -p /tmp/new; call 155 /tmp/new /tmp/new"),
    "bind-mount": Attempt("call 165 / /mnt none 4096 0"),
    "unmount": Attempt("call 166 /proc/exitcode 2"),
    "leave a chroot": Attempt(CHROOT, "inside"),
    # the kernel
    "load a module": Attempt("call 313 0 x 0", NO_SUCH_CALL),
    "reboot": Attempt("call 169 4276215469 672274793 1126301404 0"),
    "kexec": Attempt("call 246 0 0 0 0", NO_SUCH_CALL),
    "SysRq": Attempt("echo c >/proc/sysrq-trigger", ".*: (No such file.*|Permission denied|Read-only file system)"),
    "mconsole": Attempt("echo x >/proc/mconsole", ".*: (No such file.*|Permission denied|Read-only file system)"),
    "change the kernel's settings": Attempt("echo 1 >/proc/sys/kernel/panic", ".*Read-only file system"),
    "the exit status of the guest": Attempt("echo 7 >/proc/exitcode; cat /proc/exitcode; echo end", "end"),
    "BPF": Attempt("call 321 0 x 0", "refused: (Operation not permitted|Function not implemented|Invalid argument)"),
    "set the clock": Attempt("date -s 2030-01-01 2>&1 | head -1", "date: cannot set date: Operation not permitted"),
    "clear the kernel's log": Attempt("call 103 5 0 0"),
    # rights
    "raise capabilities": Attempt(CAPSET),
    "a file with capabilities": Attempt(FILE_CAPABILITY),
    "CAP_SYS_ADMIN": Attempt("awk '/CapBnd/ {print $2}' /proc/self/status", "0000000000[0-9a-f]{6}"),
    # networks
    "find other networks": Attempt("awk 'NR > 2 {print $1}' /proc/net/dev | sort | paste -sd' '", "eth0: lo:"),
    "a socket to the host": Attempt(TUNNEL, "refused: Address family not supported by protocol"),
}  # fmt: skip


def script(secret: str) -> str:
    """All attempts, one after another; the last one seeks the halves of ``secret``, joined, in all files."""
    parts = [PREAMBLE]
    for name, attempt in {**ATTEMPTS, "find a secret of the host": seek(secret)}.items():
        parts.append(one(name, attempt))
    return "\n".join(parts)


def one(name: str, attempt: Attempt) -> str:
    """Shell: an attempt, after a line with its name."""
    return f"echo {shlex.quote(f'== {name}')}; ( {attempt.words}\n) 2>&1; echo"


def seek(secret: str) -> Attempt:
    """Look for ``secret`` in all files, of which the script itself contains only the halves."""
    half = len(secret) // 2
    return Attempt(
        f'grep -rsl --devices=skip "{secret[:half]}""{secret[half:]}" /[!ps]* /srv /sbin /root; echo end', "end"
    )


@pytest.fixture(scope="module")
def attempts(machines: Machines) -> tuple[Ended, dict[str, str], str]:
    """How the guest ended, the answers, and the secret that lay beside the guest's disks."""
    secret = secrets.token_hex(16)
    ended = machines.boot(script(secret), files={"secret": secret.encode()})
    return ended, answers(ended.said), secret


@pytest.mark.parametrize("name", ATTEMPTS)
def test_it_is_refused(attempts: tuple[Ended, dict[str, str], str], name: str) -> None:
    answer = attempts[1][name]
    assert re.fullmatch(ATTEMPTS[name].answer, answer), answer


def test_no_file_beside_the_disks_is_found(attempts: tuple[Ended, dict[str, str], str]) -> None:
    ended, answered, secret = attempts
    assert answered["find a secret of the host"] == "end"
    assert secret.encode() not in ended.output


def test_the_guest_survives_all_attempts(attempts: tuple[Ended, dict[str, str], str]) -> None:
    ended, answered, _ = attempts
    assert (ended.status, ended.result["client.status"], len(answered)) == (0, "0", len(ATTEMPTS) + 1)
    assert "fault" not in ended.result


# ---- beside the guest's kernel --------------------------------------------------------------
# A program of the guest may come to control its kernel (virtual-time/README.md), which is a process in a container.

BESIDE = {
    "user": Attempt("id -u; id -G", "65534\n65534"),
    "rights": Attempt("awk '/CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp:/ {print $2}' /proc/self/status | paste -sd' '",
                      "0{16} 0{16} 0{16} 1 2"),
    "networks": Attempt("ls /sys/class/net", "lo"),
    "connect": Attempt("echo x >/dev/udp/198.51.100.2/9", "(?s).*Network is unreachable"),
    "processes": Attempt("ls -d /proc/[0-9]* | wc -l", "[1-6]"),
    "write a root": Attempt("echo x >>/roots/base.erofs", ".*: Permission denied"),
    "add a root": Attempt("echo x >/roots/other.erofs", ".*: Read-only file system"),
    "change the kernel": Attempt("echo x >>/linux", ".*: Permission denied"),
    "change the commands": Attempt("echo x >>/usr/local/bin/virtual-time", ".*: Permission denied"),
    "passwords": Attempt("cat /etc/shadow", ".*: Permission denied"),
    "mount": Attempt("call 165 none /mnt tmpfs 0 0"),
    "namespace": Attempt("call 272 268566528", "refused: (Operation not permitted|Invalid argument)"),
    "module": Attempt("call 313 0 x 0"),
    "kexec": Attempt("call 246 0 0 0 0"),
    "device": Attempt("mknod /tmp/mem c 1 1", "mknod: .*: Operation not permitted"),
    "disks": Attempt("find /dev -type b; echo end", "end"),
    "sockets of the daemon": Attempt("find / -xdev -type s 2>/dev/null; ls /var/run/docker.sock 2>&1; echo end",
                                     "ls: .*: No such file or directory\nend"),
}  # fmt: skip


@pytest.fixture(scope="module")
def beside(machines: Machines) -> dict[str, str]:
    parts = [PREAMBLE, *(one(name, each) for name, each in BESIDE.items())]
    status, said = machines.run_beside("\n".join(parts))
    assert status == 0, said
    return answers(said)


@pytest.mark.parametrize("name", BESIDE)
def test_it_is_refused_to_the_kernel_itself(beside: dict[str, str], name: str) -> None:
    assert re.fullmatch(BESIDE[name].answer, beside[name]), beside[name]
