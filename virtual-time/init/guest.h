/* The init of the virtual machine: containers, the network between them, one run, its files. */
#ifndef GUEST_H
#define GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* The first ones have an image and a network of their own; the gateways, between endpoints and simulator, share an image.
   Gateways, and the clients and servers of further flows, are there only if their image is. The others, cross traffic and
   the sampler of TCP connections, are programs of the simulator's image in the networks of others. */
enum { MOST_FURTHER = 5 }; /* flows beside the first one: there are 16 block devices */
enum {
    CLIENT,
    SIMULATOR,
    SERVER,
    CLIENT_GATEWAY,
    SERVER_GATEWAY,
    FURTHER, /* client and server of the second flow, of the third, and so on */
    NETWORKS = FURTHER + 2 * MOST_FURTHER,
    RECEIVER = NETWORKS,
    SENDER,
    SAMPLER,
    PARTS
};
extern const char* const part_names[PARTS];

/* ---- the machine ---------------------------------------------------------------------------- */

#define SECOND INT64_C(1000000000)

int64_t now(clockid_t clock); /* nanoseconds; of CLOCK_REALTIME since 1970 */
_Noreturn void power_off(void);
/* Says what is called with the first fault, before the power is off. */
void on_fault(void (*act)(const char* fault));
/* Reports the fault and powers off. Does not return. */
_Noreturn void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

/* ---- description: what a run is, read from the file "run" of the input ---------------------- */

enum { MAX_WORDS = 256, MAX_COLLECTED = 8, MAX_ADDRESSES = 8, MAX_SYSCTLS = 32 };
enum { COSTS = 9, WAKE_UP_LATENCIES = 127 }; /* as in patches of the kernel */

/* What a part pays for in simulated time, and how late it is after it has waited, as the kernel reads it. */
struct costs {
    uint64_t seed;                         /* of its latencies; 0 for none */
    uint64_t costs[COSTS];                 /* nanoseconds: of another system call, of a reading of the clock, to send,
                                              receive, wait, of a datagram sent and received, of all handshakes,
                                              of 1 KiB read from a file */
    uint64_t latencies[WAKE_UP_LATENCIES]; /* nanoseconds */
};

struct part {
    char* arguments[MAX_WORDS + 1];
    char* environment[MAX_WORDS + 1];
    char* directory; /* working directory */
    char* hostname;
    char* collected[MAX_COLLECTED + 1]; /* paths in the container that end up in the output */
    char* addresses[MAX_ADDRESSES + 1]; /* "eth0 193.167.0.100/24" */
    char* sysctls[MAX_SYSCTLS + 1];     /* "net.ipv4.ip_forward=1", of its network, before there is an interface */
    char* user;                         /* as in an image: empty, "name", "name:group", or numbers */
    uint64_t capabilities;
    uint64_t memlock; /* RLIMIT_MEMLOCK, bytes */
    unsigned mtu;     /* of its interfaces, bytes; 0 for that of Ethernet */
    int64_t start;    /* of a client: nanoseconds after the first one, of that one after the link is ready */
    struct costs costs;
    bool terminal;
};

struct description {
    struct part parts[PARTS]; /* one without arguments is not started */
    bool client_side;         /* the simulator also stands between the client and its gateway */
    bool exits;               /* start the endpoints at once and wait for their ends, instead of a transfer */
    char* ready_event;        /* what a line of the simulator contains when it carries packets */
    char* gateway_event;      /* what a line of a gateway contains when it is set up */
    int sampled;              /* part in whose network the sampler runs */
    char* connected_event;    /* what a line of the sender of cross traffic contains when it has begun */
    int64_t ready_timeout;    /* nanoseconds of simulated time, as all that follow */
    int64_t transfer_timeout;
    int64_t linger;
    int64_t stop_grace;
    int64_t log_grace;
    int64_t gateway_grace;
    int64_t settle; /* between the set-up of the network and the start of the server */
    size_t output_limit;
};

/* Reads entries "key=value", each ended by a zero byte; keeps pointers into `text`. */
void read_description(char* text, size_t size, struct description* description);

/* ---- archives ------------------------------------------------------------------------------ */

/* Unpacks the archive that begins at the start of `device`: "client/...", "simulator/...", "server/..." below the
   root of that part; returns the content of "run", ended by a zero byte. */
char* unpack_input(const char* device, const char* const roots[NETWORKS], size_t* size);

void open_output(const char* device);
/* Adds a file; only the last one may use the room that is kept for it. */
void add_memory(const char* name, const void* content, size_t size, bool last);
/* Adds what is at `path` in `root`, as `name`; symbolic links are not followed out of the root. */
void add_tree(const char* root, const char* path, const char* name);
/* How many entries found no room in the output, or have too long a name for it. */
unsigned count_lost(void);
void close_output(void);

/* ---- containers ---------------------------------------------------------------------------- */

struct container {
    const struct part* part;
    const char* root;
    int network;         /* descriptor of its network namespace */
    int memory_priority; /* oom_score_adj: tells its programs from others; so low that the largest program ends first */
    pid_t pid;
    int ended;  /* pidfd */
    int output; /* -1 when it is at its end */
    char* text;
    size_t length;
    bool inside_line;    /* the text does not end with a line */
    size_t scanned;      /* beginning of the part of the text in which `awaited` was not sought yet */
    const char* awaited; /* what a line is to contain; null for nothing */
    bool found;          /* a line contains it */
    int64_t begin, end;  /* nanoseconds since 1970; 0 for never */
    int status;          /* as of waitpid(2) */
    bool killed;         /* it did not end by itself */
};

/* Sets when the kernel, out of memory, ends this process: from -1000, never, to 1000, first; false if it cannot. */
bool set_memory_priority(int value);
/* Mounts the image on `device` below /parts/<name>, with a layer in memory on top. */
const char* mount_root(const char* device, const char* name);
/* Starts the part's program in namespaces of its own. */
void start(struct container* container, size_t output_limit);

/* ---- network ------------------------------------------------------------------------------- */

/* Makes a network namespace with its loopback up; its descriptor. */
int make_network(void);
/* Sets a kernel parameter of a namespace: "net.ipv4.ip_forward=1". */
void set_sysctl(int network, const char* entry);
/* Joins two namespaces by a veth pair without checksum offload. The last byte of the MAC addresses is given. */
void join(int left, const char* left_name, uint8_t left_mac, int right, const char* right_name, uint8_t right_mac);
/* Makes a bridge with a MAC address of which the last byte is given. */
void make_bridge(int network, const char* name, uint8_t mac);
/* Makes an interface a port of a bridge in the same namespace, and sets it up. */
void add_port(int network, const char* interface, const char* bridge);
/* Sets the largest packet of an interface, bytes. */
void set_mtu(int network, const char* interface, unsigned mtu);
/* Adds an address with its prefix ("193.167.0.2/24", "fd00::2/64") and sets the interface up. */
void add_address(int network, const char* interface, const char* address);

#endif
