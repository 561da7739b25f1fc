/* The description of a run: entries "key=value", each ended by a zero byte. */
#include "guest.h"

#include <stdlib.h>
#include <string.h>

const char* const part_names[PARTS] = {"client",   "simulator", "server",   "client-gateway", "server-gateway",
                                       "client-2", "server-2",  "client-3", "server-3",       "client-4",
                                       "server-4", "client-5",  "server-5", "client-6",       "server-6",
                                       "receiver", "sender",    "sampler"};

enum { LEAST_OUTPUT = 1 << 20 };

static int64_t number(const char* key, const char* text) {
    char* end;
    const long long value = strtoll(text, &end, 0);
    if (end == text || *end || value < 0) {
        fail("description: %s is \"%s\"", key, text);
    }
    return value;
}

/* "NUMBER NUMBER ...", as many as `count`. */
static void read_numbers(const char* key, const char* text, uint64_t* numbers, size_t count) {
    char* rest = (char*)text;
    for (size_t index = 0; index < count; ++index) {
        const char* begin = rest;
        numbers[index] = strtoull(begin, &rest, 10);
        if (rest == begin) {
            fail("description: %s has too few numbers", key);
        }
    }
    if (*rest) {
        fail("description: %s has too many numbers", key);
    }
}

static void push(char** list, size_t limit, char* word, const char* key) {
    size_t count = 0;
    while (list[count]) {
        ++count;
    }
    if (count == limit) {
        fail("description: too many of %s", key);
    }
    list[count] = word;
}

static bool read_part(const char* key, char* value, struct part* part) {
    if (!strcmp(key, "argument")) {
        push(part->arguments, MAX_WORDS, value, key);
    } else if (!strcmp(key, "environment")) {
        push(part->environment, MAX_WORDS, value, key);
    } else if (!strcmp(key, "collect")) {
        push(part->collected, MAX_COLLECTED, value, key);
    } else if (!strcmp(key, "address")) {
        push(part->addresses, MAX_ADDRESSES, value, key);
    } else if (!strcmp(key, "sysctl")) {
        push(part->sysctls, MAX_SYSCTLS, value, key);
    } else if (!strcmp(key, "directory")) {
        part->directory = value;
    } else if (!strcmp(key, "hostname")) {
        part->hostname = value;
    } else if (!strcmp(key, "user")) {
        part->user = value;
    } else if (!strcmp(key, "capabilities")) {
        part->capabilities = (uint64_t)number(key, value);
    } else if (!strcmp(key, "memlock")) {
        part->memlock = (uint64_t)number(key, value);
    } else if (!strcmp(key, "mtu")) {
        part->mtu = (unsigned)number(key, value);
    } else if (!strcmp(key, "start")) {
        part->start = number(key, value);
    } else if (!strcmp(key, "costs")) {
        read_numbers(key, value, part->costs.costs, COSTS);
    } else if (!strcmp(key, "latencies")) {
        read_numbers(key, value, part->costs.latencies, WAKE_UP_LATENCIES);
    } else if (!strcmp(key, "latency seed")) {
        part->costs.seed = (uint64_t)number(key, value);
    } else if (!strcmp(key, "terminal")) {
        part->terminal = number(key, value);
    } else {
        return false;
    }
    return true;
}

static bool read_entry(const char* key, char* value, struct description* description) {
    const struct {
        const char* name;
        int64_t* target;
    } times[] = {{"ready timeout", &description->ready_timeout},
                 {"transfer timeout", &description->transfer_timeout},
                 {"linger", &description->linger},
                 {"stop grace", &description->stop_grace},
                 {"log grace", &description->log_grace},
                 {"gateway grace", &description->gateway_grace},
                 {"settle", &description->settle}};
    for (size_t index = 0; index < sizeof times / sizeof *times; ++index) {
        if (!strcmp(key, times[index].name)) {
            *times[index].target = number(key, value);
            return true;
        }
    }
    if (!strcmp(key, "mode") && (!strcmp(value, "transfer") || !strcmp(value, "exits"))) {
        description->exits = !strcmp(value, "exits");
        return true;
    }
    if (!strcmp(key, "client side")) {
        description->client_side = number(key, value);
        return true;
    }
    if (!strcmp(key, "ready event")) {
        description->ready_event = value;
        return true;
    }
    if (!strcmp(key, "gateway event")) {
        description->gateway_event = value;
        return true;
    }
    for (int part = 0; part < NETWORKS && !strcmp(key, "sampled"); ++part) {
        if (!strcmp(value, part_names[part])) {
            description->sampled = part;
            return true;
        }
    }
    if (!strcmp(key, "connected event")) {
        description->connected_event = value;
        return true;
    }
    if (!strcmp(key, "output limit")) {
        description->output_limit = (size_t)number(key, value);
        return true;
    }
    for (int part = 0; part < PARTS; ++part) {
        const size_t length = strlen(part_names[part]);
        if (!strncmp(key, part_names[part], length) && key[length] == '.') {
            return read_part(key + length + 1, value, &description->parts[part]);
        }
    }
    return false;
}

void read_description(char* text, size_t size, struct description* description) {
    for (char* entry = text; entry < text + size; entry += strlen(entry) + 1) {
        char* value = strchr(entry, '=');
        if (!value) {
            fail("description: no value in \"%s\"", entry);
        }
        *value++ = 0;
        if (!read_entry(entry, value, description)) {
            fail("description: unknown key or value: \"%s\" is \"%s\"", entry, value);
        }
        entry = value; /* the loop goes on behind the value */
    }
    for (int part = 0; part < PARTS; ++part) {
        const struct part* one = &description->parts[part];
        const bool needed = part == SIMULATOR || ((part == CLIENT || part == SERVER) && !description->exits);
        if ((needed && !one->arguments[0]) || (one->arguments[0] && (!one->directory || !one->user))) {
            fail("description: the %s has no program, no directory or no user", part_names[part]);
        }
    }
    if (!description->parts[RECEIVER].arguments[0] != !description->parts[SENDER].arguments[0] ||
        (description->parts[SENDER].arguments[0] && !description->connected_event)) {
        fail("description: cross traffic needs receiver, sender and connected event");
    }
    const bool near = description->parts[CLIENT_GATEWAY].arguments[0],
               far = description->parts[SERVER_GATEWAY].arguments[0];
    if (near != far || (near && !description->gateway_event)) {
        fail("description: gateways need one another and gateway event");
    }
    if (description->client_side && !near) {
        fail("description: client side needs gateways");
    }
    for (int client = FURTHER; client < NETWORKS; client += 2) {
        if (!description->parts[client].arguments[0] != !description->parts[client + 1].arguments[0]) {
            fail("description: %s and %s need one another", part_names[client], part_names[client + 1]);
        }
    }
    if (!description->ready_event || description->output_limit < LEAST_OUTPUT) {
        fail("description: no ready event, or an output limit below %d bytes", LEAST_OUTPUT);
    }
}
