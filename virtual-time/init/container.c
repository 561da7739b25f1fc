/* What Docker would do for a container: a root of its own, namespaces, devices, limits, rights, the program. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { CANNOT_EXECUTE = 126, OPEN_FILES = 1 << 20 };
enum { SET_COSTS = 0x7001 }; /* of arch_prctl(2), by a patch of this kernel */

static const char* path_of(const char* folder, const char* name, const char* last) {
    char* path;
    if (asprintf(&path, "%s/%s%s", folder, name, last) < 0) {
        fail("no memory");
    }
    return path;
}

static const char* make_directory(const char* folder, const char* name, const char* last) {
    const char* path = path_of(folder, name, last);
    if (mkdir(path, 0755) && errno != EEXIST) {
        fail("%s: %s", path, strerror(errno));
    }
    return path;
}

const char* mount_root(const char* device, const char* name) {
    const char* image = make_directory("/images", name, "");
    const char* layer = make_directory("/layers", name, "");
    const char* root = make_directory("/parts", name, "");
    char options[256];
    if (mount(device, image, "erofs", MS_RDONLY, NULL)) {
        fail("mounting the image of the %s: %s", name, strerror(errno));
    }
    if (mount("tmpfs", layer, "tmpfs", 0, "mode=755,size=40%")) {
        fail("mounting the layer of the %s: %s", name, strerror(errno));
    }
    make_directory(layer, "upper", "");
    make_directory(layer, "work", "");
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s/upper,workdir=%s/work", image, layer, layer);
    if (mount("overlay", root, "overlay", 0, options)) {
        fail("mounting the root of the %s: %s", name, strerror(errno));
    }
    return root;
}

bool set_memory_priority(int value) {
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    const bool done = file >= 0 && dprintf(file, "%d", value) > 0;
    if (file >= 0) {
        close(file);
    }
    return done;
}

/* ---- in the container: faults end it ------------------------------------------------------- */

static _Noreturn void give_up(const char* what) {
    dprintf(STDERR_FILENO, "guest: %s: %s\n", what, strerror(errno));
    _exit(CANNOT_EXECUTE);
}

static void place(const char* type, const char* target, unsigned long flags, const char* options) {
    mkdir(target, 0755);
    if (mount(type, target, type, flags, options)) {
        give_up(target);
    }
}

static void make_devices(void) {
    static const struct {
        const char* path;
        unsigned major, minor;
    } nodes[] = {{"/dev/null", 1, 3},    {"/dev/zero", 1, 5}, {"/dev/full", 1, 7},      {"/dev/random", 1, 8},
                 {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},  {"/dev/net/tun", 10, 200}};
    static const char* const links[][2] = {{"pts/ptmx", "/dev/ptmx"},
                                           {"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"}};
    place("tmpfs", "/dev", MS_NOSUID, "mode=755,size=64k");
    mkdir("/dev/net", 0755);
    umask(0);
    for (size_t index = 0; index < sizeof nodes / sizeof *nodes; ++index) {
        if (mknod(nodes[index].path, S_IFCHR | 0666, makedev(nodes[index].major, nodes[index].minor))) {
            give_up(nodes[index].path);
        }
    }
    umask(022);
    for (size_t index = 0; index < sizeof links / sizeof *links; ++index) {
        if (symlink(links[index][0], links[index][1])) {
            give_up(links[index][1]);
        }
    }
    place("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,gid=5");
    place("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777,size=64m");
}

static void enter_root(const char* root) {
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || chdir(root) || syscall(SYS_pivot_root, ".", ".") ||
        umount2(".", MNT_DETACH) || chdir("/")) {
        give_up("entering the root");
    }
    const unsigned long safe = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    /* Read-only, so that no program can raise its oom_score_adj to that of another container. */
    place("proc", "/proc", safe | MS_RDONLY, NULL);
    place("sysfs", "/sys", safe | MS_RDONLY, NULL);
    if (mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) ||
        mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | safe, NULL)) {
        give_up("/proc/sys");
    }
    make_devices();
    /* What this kernel adds to /proc: the exit status of the whole guest. */
    if (mount("/dev/null", "/proc/exitcode", NULL, MS_BIND, NULL)) {
        give_up("/proc/exitcode");
    }
}

static void limit(int resource, rlim_t value) {
    const struct rlimit bound = {value, value};
    if (setrlimit(resource, &bound)) {
        give_up("setrlimit");
    }
}

struct identity {
    uid_t user;
    gid_t group;
    char home[256];
};

/* The number that `text` is; false if it is none. */
static bool is_number(const char* text, unsigned* value) {
    char* end;
    const unsigned long found = strtoul(text, &end, 10);
    *value = (unsigned)found;
    return end != text && !*end && found <= UINT32_MAX;
}

/* Reads /etc/passwd and /etc/group of the image, as Docker does. */
static struct identity identify(const char* text) {
    struct identity found = {0, 0, "/"};
    char name[256];
    snprintf(name, sizeof name, "%s", text[0] ? text : "0");
    char* group = strchr(name, ':');
    if (group) {
        *group++ = 0;
    }
    const bool by_number = is_number(name, &found.user);
    bool known = by_number;
    FILE* file = fopen("/etc/passwd", "re");
    for (struct passwd* entry; file && (entry = fgetpwent(file));) {
        if (by_number ? entry->pw_uid == found.user : !strcmp(entry->pw_name, name)) {
            found.user = entry->pw_uid;
            found.group = entry->pw_gid;
            snprintf(found.home, sizeof found.home, "%s", entry->pw_dir);
            known = true;
            break;
        }
    }
    if (file) {
        fclose(file);
    }
    if (known && group && !is_number(group, &found.group)) {
        known = false;
        file = fopen("/etc/group", "re");
        for (struct group* entry; file && (entry = fgetgrent(file));) {
            if (!strcmp(entry->gr_name, group)) {
                found.group = entry->gr_gid;
                known = true;
            }
        }
        if (file) {
            fclose(file);
        }
    }
    if (!known) {
        errno = ENOENT;
        give_up(text);
    }
    return found;
}

static void become(const struct part* part, const struct identity* identity) {
    limit(RLIMIT_NOFILE, OPEN_FILES);
    limit(RLIMIT_MEMLOCK, part->memlock);
    limit(RLIMIT_CORE, 0);
    for (int capability = 0; capability <= CAP_LAST_CAP; ++capability) {
        if (!(part->capabilities >> capability & 1) && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)) {
            give_up("dropping capabilities");
        }
    }
    if (setgroups(1, &identity->group) || setgid(identity->group) || setuid(identity->user)) {
        give_up("changing the user");
    }
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    for (int word = 0; word < 2 && !identity->user; ++word) {
        data[word].permitted = data[word].effective = (uint32_t)(part->capabilities >> (32 * word));
    }
    if (syscall(SYS_capset, &header, data)) {
        give_up("setting capabilities");
    }
}

static _Noreturn void run(const struct container* container, int output) {
    const struct part* part = container->part;
    setsid();
    if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) {
        give_up("output");
    }
    if (setns(container->network, CLONE_NEWNET)) {
        give_up("entering the network");
    }
    if (!set_memory_priority(container->memory_priority)) {
        give_up("oom_score_adj");
    }
    enter_root(container->root);
    int input = part->terminal ? STDOUT_FILENO : open("/dev/null", O_RDONLY);
    if (dup2(input, STDIN_FILENO) < 0 || (part->terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0))) {
        give_up("input");
    }
    if (close_range(STDERR_FILENO + 1, ~0U, 0)) {
        give_up("closing files");
    }
    if (part->hostname && sethostname(part->hostname, strlen(part->hostname))) {
        give_up("hostname");
    }
    const struct identity identity = identify(part->user);
    become(part, &identity);
    if (chdir(part->directory)) {
        give_up(part->directory);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    environ = (char**)part->environment;
    setenv("HOME", identity.home, 0);
    /* Without costs, too, so that the program cannot set them. */
    if (syscall(SYS_arch_prctl, SET_COSTS, &part->costs)) {
        give_up("setting costs");
    }
    execvp(part->arguments[0], part->arguments);
    give_up(part->arguments[0]);
}

/* ---- outside ------------------------------------------------------------------------------- */

/* Both ends of what the program prints to; as with Docker, a terminal writes "\r\n". */
static void open_output_pair(bool terminal, int ends[2]) {
    if (!terminal) {
        if (pipe2(ends, O_CLOEXEC)) {
            fail("pipe: %s", strerror(errno));
        }
        return;
    }
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[0] < 0 || unlockpt(ends[0]) || (ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
        fail("terminal: %s", strerror(errno));
    }
}

void start(struct container* container, size_t output_limit) {
    int ends[2];
    open_output_pair(container->part->terminal, ends);
    container->text = malloc(output_limit);
    if (!container->text) {
        fail("no memory");
    }
    container->begin = now(CLOCK_REALTIME);
    struct clone_args arguments = {
        .flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_PIDFD,
        .pidfd = (uintptr_t)&container->ended,
        .exit_signal = SIGCHLD,
    };
    container->pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (container->pid < 0) {
        fail("clone: %s", strerror(errno));
    }
    if (!container->pid) {
        run(container, ends[1]);
    }
    close(ends[1]);
    container->output = ends[0];
}
