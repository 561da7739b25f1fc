/* Process 1 of the virtual machine: makes the testbed and one run, hands its files back, powers off.
 *
 * Block devices: ubda input (tar), ubdb output (tar), ubdc, ubdd, ubde, ubdf images (EROFS) of client, simulator, server,
 * gateways; ubdg, ubdh and so on of client and server of the second flow, and of further ones.
 * All times are simulated. The order of events and the deadlines are those of quicsat/links/container_session.py. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PIECE = 4096, /* bytes of output that are read at once */
    STAMP = 32,   /* and what the time of a line needs, with its byte */
};

static const char* const images[NETWORKS] = {"/dev/ubdc", "/dev/ubdd", "/dev/ubde", "/dev/ubdf", "/dev/ubdf",
                                             "/dev/ubdg", "/dev/ubdh", "/dev/ubdi", "/dev/ubdj", "/dev/ubdk",
                                             "/dev/ubdl", "/dev/ubdm", "/dev/ubdn", "/dev/ubdo", "/dev/ubdp"};

static struct description description;
static struct container containers[PARTS];
static const char* timed_out = "";

/* ---- the result ---------------------------------------------------------------------------- */

/* The file "result": lines "key=value". What never started has no lines. */
static void add_result(const char* fault) {
    char* text;
    size_t size;
    FILE* stream = open_memstream(&text, &size);
    if (!stream) {
        power_off();
    }
    if (fault[0]) {
        fprintf(stream, "fault=%s\n", fault);
    }
    if (timed_out[0]) {
        fprintf(stream, "timed_out=%s\n", timed_out);
    }
    if (containers[SIMULATOR].found) {
        fprintf(stream, "carried=1\n");
    }
    if (count_lost()) {
        fprintf(stream, "lost=%u\n", count_lost());
    }
    for (int part = 0; part < PARTS; ++part) {
        const struct container* one = &containers[part];
        if (!one->begin) {
            continue;
        }
        if (one->killed) {
            fprintf(stream, "%s.killed=1\n", part_names[part]);
        }
        fprintf(stream, "%s.oom_score_adj=%d\n", part_names[part], one->memory_priority);
        fprintf(stream, "%s.begin=%" PRId64 "\n", part_names[part], one->begin);
        if (one->end) {
            const bool exited = WIFEXITED(one->status);
            fprintf(stream, "%s.end=%" PRId64 "\n%s.status=%d\n", part_names[part], one->end, part_names[part],
                    exited ? WEXITSTATUS(one->status) : 128 + WTERMSIG(one->status));
        }
    }
    fclose(stream);
    add_memory("result", text, size, true);
    free(text);
}

static void report_fault(const char* fault) {
    add_result(fault);
    close_output();
}

/* ---- events -------------------------------------------------------------------------------- */

static bool has_program(int part) {
    return description.parts[part].arguments[0];
}

static bool running(int part) {
    return containers[part].pid && !containers[part].end;
}

static void reap(struct container* one) {
    siginfo_t unused;
    if (!waitid(P_PIDFD, (id_t)one->ended, &unused, WEXITED | WNOWAIT | WNOHANG) && unused.si_pid == one->pid) {
        waitpid(one->pid, &one->status, 0);
        one->end = now(CLOCK_REALTIME);
        close(one->ended);
        one->ended = -1;
    }
}

/* Appends what a container has printed, each line after its time, as `docker logs --timestamps` shows it. */
static void append(struct container* one, const char* data, size_t count) {
    const int64_t time = now(CLOCK_REALTIME);
    const time_t seconds = time / SECOND;
    struct tm parts;
    char stamp[STAMP];
    size_t size = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &parts));
    size += (size_t)snprintf(stamp + size, sizeof stamp - size, ".%09" PRId64 "Z ", time % SECOND);
    for (size_t index = 0; index < count; ++index) {
        if (!one->inside_line) {
            memcpy(one->text + one->length, stamp, size);
            one->length += size;
        }
        one->text[one->length++] = data[index];
        one->inside_line = data[index] != '\n';
    }
}

static void look_for_awaited(struct container* one) {
    if (one->awaited && !one->found) {
        one->found = memmem(one->text + one->scanned, one->length - one->scanned, one->awaited, strlen(one->awaited));
        const char* line = memrchr(one->text, '\n', one->length);
        one->scanned = line ? (size_t)(line - one->text) : 0;
    }
}

/* Takes what a container has printed; of too much, the beginning goes. */
static void take_output(struct container* one) {
    char data[PIECE];
    if (one->length > description.output_limit - PIECE * STAMP) {
        const size_t half = description.output_limit / 2;
        memmove(one->text, one->text + one->length - half, half);
        one->length = half;
        one->scanned = 0;
    }
    const ssize_t count = read(one->output, data, sizeof data);
    if (count <= 0) { /* a terminal without programs: EIO */
        close(one->output);
        one->output = -1;
        return;
    }
    append(one, data, (size_t)count);
    look_for_awaited(one);
}

/* Waits for something to happen, until `deadline` on the monotonic clock; false when that has come. */
static bool step(int64_t deadline) {
    struct pollfd wanted[2 * PARTS];
    for (int part = 0; part < PARTS; ++part) {
        const struct container* one = &containers[part];
        wanted[part] = (struct pollfd){.fd = one->pid ? one->output : -1, .events = POLLIN};
        wanted[PARTS + part] = (struct pollfd){.fd = running(part) ? one->ended : -1, .events = POLLIN};
    }
    const int64_t rest = deadline - now(CLOCK_MONOTONIC);
    if (rest <= 0) {
        return false;
    }
    const struct timespec patience = {rest / SECOND, rest % SECOND};
    const int count = ppoll(wanted, 2 * PARTS, &patience, NULL);
    for (int part = 0; count > 0 && part < PARTS; ++part) {
        if (wanted[part].revents) {
            take_output(&containers[part]);
        }
        if (wanted[PARTS + part].revents) {
            reap(&containers[part]);
        }
    }
    return true;
}

static void wait_for_end(int part, int64_t patience) {
    const int64_t deadline = now(CLOCK_MONOTONIC) + patience;
    while (running(part) && step(deadline)) {
    }
}

static void terminate(int part) {
    if (running(part)) {
        containers[part].killed = true;
        kill(containers[part].pid, SIGTERM);
    }
}

static void finish(int part, int64_t grace) {
    wait_for_end(part, grace);
    if (running(part)) {
        kill(containers[part].pid, SIGKILL);
        wait_for_end(part, 10 * SECOND);
    }
    while (containers[part].pid && containers[part].output >= 0 && step(now(CLOCK_MONOTONIC) + 1000)) {
    }
}

static void stop(int part, int64_t grace) {
    terminate(part);
    finish(part, grace);
}

/* ---- one run ------------------------------------------------------------------------------- */

static bool cross_traffic_runs(void) {
    return (!containers[RECEIVER].pid || running(RECEIVER)) && (!containers[SENDER].pid || running(SENDER));
}

static void begin(int part) {
    start(&containers[part], description.output_limit);
}

static bool is_gateway(int part) {
    return part == CLIENT_GATEWAY || part == SERVER_GATEWAY;
}

static void begin_gateways(void) {
    for (int part = 0; part < NETWORKS; ++part) {
        if (is_gateway(part) && has_program(part)) {
            begin(part);
        }
    }
}

static bool gateways_run(void) {
    return (!containers[CLIENT_GATEWAY].pid || running(CLIENT_GATEWAY)) &&
           (!containers[SERVER_GATEWAY].pid || running(SERVER_GATEWAY));
}

static bool gateways_ready(void) {
    return (!containers[CLIENT_GATEWAY].pid || containers[CLIENT_GATEWAY].found) &&
           (!containers[SERVER_GATEWAY].pid || containers[SERVER_GATEWAY].found);
}

/* The client of the flow behind that of `client`, or NETWORKS; its server is the next part. */
static int next_flow(int client) {
    int next = client == CLIENT ? FURTHER : client + 2;
    while (next < NETWORKS && !has_program(next)) {
        next += 2;
    }
    return next;
}

static int server_of(int client) {
    return client == CLIENT ? SERVER : client + 1;
}

/* Until the first client is to start. Without such a time it does not read the clock: that would take simulated time. */
static void wait_until_start(void) {
    if (description.parts[CLIENT].start) {
        const int64_t start = now(CLOCK_MONOTONIC) + description.parts[CLIENT].start;
        while (step(start)) {
        }
    }
}

/* Gateways, servers and simulator first, cross traffic once packets are carried, then the first client; false if the run is
   over before it has started. */
static bool start_all(void) {
    const bool competes = has_program(SENDER);
    begin_gateways();
    if (competes) {
        begin(RECEIVER);
    }
    if (has_program(SAMPLER)) {
        begin(SAMPLER);
    }
    begin(SIMULATOR);
    for (int client = CLIENT; client < NETWORKS; client = next_flow(client)) {
        begin(server_of(client));
    }
    const int64_t deadline = now(CLOCK_MONOTONIC) + description.ready_timeout;
    while (running(SERVER) && running(SIMULATOR) && gateways_run() && cross_traffic_runs()) {
        const bool carries = containers[SIMULATOR].found && gateways_ready();
        if (carries && competes && !containers[SENDER].pid) {
            begin(SENDER);
        }
        if (carries && (!competes || containers[SENDER].found)) {
            wait_until_start();
            begin(CLIENT);
            return true;
        }
        if (!step(deadline)) {
            break;
        }
    }
    timed_out = "ready";
    return false;
}

/* Starts the further clients whose time has come; `first`: when the first one began. When the next one is due, INT64_MAX
   for never. */
static int64_t begin_clients(int64_t first) {
    int64_t due = INT64_MAX;
    for (int client = next_flow(CLIENT); client < NETWORKS; client = next_flow(client)) {
        const int64_t start = first + description.parts[client].start;
        if (containers[client].pid) {
            continue;
        }
        if (start <= now(CLOCK_MONOTONIC)) {
            begin(client);
        } else if (start < due) {
            due = start;
        }
    }
    return due;
}

static bool transferring(void) {
    for (int client = CLIENT; client < NETWORKS; client = next_flow(client)) {
        if (running(client) && running(server_of(client))) {
            return true;
        }
    }
    return false;
}

static void await_end(void) {
    const int64_t first = now(CLOCK_MONOTONIC), deadline = first + description.transfer_timeout;
    while (running(SIMULATOR) && gateways_run() && cross_traffic_runs()) {
        const int64_t due = begin_clients(first);
        if (!transferring() && due == INT64_MAX) {
            return;
        }
        if (!step(due < deadline ? due : deadline) && due >= deadline) {
            timed_out = "transfer";
            return;
        }
    }
}

static void stop_flow(int client) {
    const int server = server_of(client);
    if (!timed_out[0] && !running(server)) {
        wait_for_end(client, description.linger); /* a server may end as soon as it has served */
    }
    if (running(client)) {
        stop(client, 0);
    } else if (running(server)) {
        wait_for_end(server, description.linger);
    }
    stop(client, 0);
    terminate(server);
    wait_for_end(server, description.stop_grace);
}

static void stop_all(void) {
    for (int client = CLIENT; client < NETWORKS; client = next_flow(client)) {
        stop_flow(client);
    }
    stop(SIMULATOR, containers[SIMULATOR].found ? 5 * SECOND : 0);
    stop(SENDER, 0);
    stop(RECEIVER, 0);
    stop(SAMPLER, SECOND);
    stop(CLIENT_GATEWAY, description.gateway_grace);
    stop(SERVER_GATEWAY, description.gateway_grace);
    for (int client = CLIENT; client < NETWORKS; client = next_flow(client)) {
        finish(server_of(client), description.log_grace); /* it may still write its logs */
    }
}

/* How the endpoints end by themselves. */
static void await_exits(void) {
    begin_gateways();
    begin(SIMULATOR);
    for (int part = 0; part < NETWORKS; ++part) {
        if (part != SIMULATOR && !is_gateway(part) && has_program(part)) {
            begin(part);
        }
    }
    const int64_t deadline = now(CLOCK_MONOTONIC) + description.transfer_timeout;
    while ((running(CLIENT) || running(SERVER)) && running(SIMULATOR) && step(deadline)) {
    }
    for (int part = 0; part < NETWORKS; ++part) {
        stop(part, 0);
    }
}

static void collect_from(int part) {
    const struct container* one = &containers[part];
    char name[256];
    if (!one->pid) {
        return;
    }
    add_memory(strcat(strcpy(name, part_names[part]), ".output"), one->text, one->length, false);
    for (char* const* path = one->part->collected; *path; ++path) {
        if (snprintf(name, sizeof name, "%s%s", part_names[part], *path) < (int)sizeof name) {
            add_tree(one->root, *path, name);
        }
    }
}

/* The traces first, so that endpoints cannot leave them without room. */
static void collect(void) {
    collect_from(SIMULATOR);
    for (int part = 0; part < PARTS; ++part) {
        if (part != SIMULATOR) {
            collect_from(part);
        }
    }
}

/* ---- the testbed --------------------------------------------------------------------------- */

static void must(int result, const char* what) {
    if (result) {
        fail("%s: %s", what, strerror(errno));
    }
}

/* Leaves the root that the kernel unpacked, which cannot be pivoted away from, for one in memory. */
static void make_own_root(void) {
    mkdir("/new", 0755);
    must(mount("tmpfs", "/new", "tmpfs", 0, "mode=755"), "root");
    must(chdir("/new"), "root");
    must(mount(".", "/", NULL, MS_MOVE, NULL), "root");
    must(chroot("."), "root");
    static const char* const folders[] = {"/dev", "/proc", "/images", "/layers", "/parts"};
    for (size_t index = 0; index < sizeof folders / sizeof *folders; ++index) {
        must(mkdir(folders[index], 0755), folders[index]);
    }
    must(mount("devtmpfs", "/dev", "devtmpfs", 0, NULL), "/dev");
    must(mkdir("/dev/pts", 0755), "/dev/pts");
    must(mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666"), "/dev/pts");
    must(mount("proc", "/proc", "proc", 0, NULL), "/proc");
    if (!access("/dev/ptmx", F_OK)) {
        unlink("/dev/ptmx");
    }
    must(symlink("pts/ptmx", "/dev/ptmx"), "/dev/ptmx");
}

/* Roots and namespaces; an endpoint without an image stays out of the run, and so do gateways and further flows. */
static void make_parts(void) {
    for (int part = 0; part < PARTS; ++part) {
        containers[part] = (struct container){.part = &description.parts[part], .ended = -1, .output = -1};
        containers[part].memory_priority = part + 1;
    }
    for (int part = 0; part < NETWORKS; ++part) {
        struct container* one = &containers[part];
        one->root = access(images[part], F_OK) ? NULL : mount_root(images[part], part_names[part]);
        if (one->root || part < FURTHER) {
            one->network = make_network();
        }
    }
}

/* All clients are ports of the simulator's eth0, which is a bridge, and all servers of its eth1. */
static void join_flows(void) {
    const int middle = containers[SIMULATOR].network;
    make_bridge(middle, "eth0", 2);
    make_bridge(middle, "eth1", 3);
    uint8_t mac = 16;
    for (int client = CLIENT; client < NETWORKS; client = next_flow(client)) {
        for (int side = 0; side < 2; ++side) {
            const int part = side ? server_of(client) : client;
            char port[16];
            snprintf(port, sizeof port, "port%d", part);
            join(containers[part].network, "eth0", mac, middle, port, mac + 1);
            add_port(middle, port, side ? "eth1" : "eth0");
            mac += 2;
        }
    }
}

static void join_networks(void) {
    for (int part = 0; part < NETWORKS; ++part) {
        for (char* const* entry = description.parts[part].sysctls; *entry; ++entry) {
            set_sysctl(containers[part].network, *entry);
        }
    }
    if (next_flow(CLIENT) < NETWORKS) {
        join_flows();
        return;
    }
    const int client = containers[CLIENT].network, middle = containers[SIMULATOR].network,
              server = containers[SERVER].network;
    if (!has_program(CLIENT_GATEWAY)) {
        join(client, "eth0", 1, middle, "eth0", 2);
        join(server, "eth0", 4, middle, "eth1", 3);
        return;
    }
    const int near = containers[CLIENT_GATEWAY].network, far = containers[SERVER_GATEWAY].network;
    if (description.client_side) {
        join(client, "eth0", 1, middle, "eth2", 9);
        join(near, "eth0", 5, middle, "eth3", 10);
    } else {
        join(client, "eth0", 1, near, "eth0", 5);
    }
    join(near, "eth1", 6, middle, "eth0", 2);
    join(far, "eth1", 7, middle, "eth1", 3);
    join(server, "eth0", 4, far, "eth0", 8);
}

static void add_addresses(void) {
    for (int part = 0; part < NETWORKS; ++part) {
        for (char* const* entry = description.parts[part].addresses; *entry; ++entry) {
            char* address = strchr(*entry, ' ');
            if (!address) {
                fail("description: no address in \"%s\"", *entry);
            }
            *address = 0;
            if (description.parts[part].mtu) {
                set_mtu(containers[part].network, *entry, description.parts[part].mtu);
            }
            add_address(containers[part].network, *entry, address + 1);
        }
    }
}

static void make_guests_of_networks(void) {
    const int networks[] = {[RECEIVER] = CLIENT, [SENDER] = SERVER, [SAMPLER] = description.sampled};
    for (int part = NETWORKS; part < PARTS; ++part) {
        if (has_program(part)) {
            containers[part].root = mount_root(images[SIMULATOR], part_names[part]);
            containers[part].network = containers[networks[part]].network;
        }
    }
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    on_fault(report_fault);
    make_own_root();
    must(!set_memory_priority(-1000), "oom_score_adj"); /* programs end first */
    open_output("/dev/ubdb");
    make_parts();
    size_t size = 0;
    const char* roots[NETWORKS];
    for (int part = 0; part < NETWORKS; ++part) {
        roots[part] = containers[part].root;
    }
    char* text = unpack_input("/dev/ubda", roots, &size);
    read_description(text, size, &description);
    for (int part = 0; part < PARTS; ++part) {
        if (part < NETWORKS && has_program(part) && !containers[part].root) {
            fail("description: the %s has no image", part_names[part]);
        }
    }
    join_networks();
    add_addresses();
    make_guests_of_networks();
    containers[SIMULATOR].awaited = description.ready_event;
    containers[SENDER].awaited = description.connected_event;
    containers[CLIENT_GATEWAY].awaited = containers[SERVER_GATEWAY].awaited = description.gateway_event;
    const int64_t settled = now(CLOCK_MONOTONIC) + description.settle;
    while (step(settled)) {
    }
    if (description.exits) {
        await_exits();
    } else {
        if (start_all()) {
            await_end();
        }
        stop_all();
    }
    collect();
    add_result("");
    close_output();
    power_off();
}
