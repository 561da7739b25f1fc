/* Process 1 of an emulated machine that runs the virtual machine of virtual time; see other_processor.py. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64 };

/* The lines of a file, in `text`; NULL after the last. */
static void read_lines(const char* path, char* text, size_t size, char* lines[MOST]) {
    int file = open(path, O_RDONLY | O_CLOEXEC), count = 0;
    ssize_t length = read(file, text, size - 1);
    text[length > 0 ? length : 0] = 0;
    close(file);
    for (char* line = strtok(text, "\n"); line && count < MOST - 1; line = strtok(NULL, "\n"))
        lines[count++] = line;
    lines[count] = NULL;
}

/* User-mode Linux turns off the randomization of addresses if it may, and its processes then crash at their start. In a
 * container with Docker's seccomp profile, it may not. */
static void refuse_personality(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_personality, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) perror("seccomp");
}

int main(void) {
    static char text[16384];
    char *lines[MOST], *none[] = {NULL};
    const char* disks[] = {"input", "output", "ubd2", "ubd3", "ubd4"};
    mkdir("/proc", 0755), mkdir("/dev", 0755), mkdir("/tmp", 01777);
    mount("proc", "/proc", "proc", 0, NULL), mount("dev", "/dev", "devtmpfs", 0, NULL);
    mkdir("/dev/shm", 01777), mkdir("/dev/pts", 0755);
    mount("shm", "/dev/shm", "tmpfs", 0, NULL), mount("devpts", "/dev/pts", "devpts", 0, NULL);
    read_lines("/modules", text, sizeof(text), lines);
    for (int n = 0; lines[n]; n++) {
        int file = open(lines[n], O_RDONLY | O_CLOEXEC);
        if (syscall(SYS_finit_module, file, "", 0)) perror(lines[n]);
        close(file);
    }
    for (int n = 0; n < 100 && access("/dev/vde", F_OK); n++)
        usleep(100000);
    for (int n = 0; n < 5; n++) {
        char device[] = "/dev/vda";
        device[7] += n;
        symlink(device, disks[n]);
    }
    read_lines("/command", text, sizeof(text), lines);
    pid_t child = fork();
    if (!child) {
        setsid();
        refuse_personality();
        execve(lines[0], lines, none);
        perror(lines[0]);
        _exit(127);
    }
    waitpid(child, NULL, 0);
    sync();
    reboot(RB_POWER_OFF);
}
