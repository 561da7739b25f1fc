/* Client of HTTP/2 over TCP with libcurl's multi interface: requests share a connection and depend on each other as the
   test wants. Options before the first URL have the names of curl's own. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct object {
    const char* url;
    int after; /* Position, from 1, of the object that must have arrived before it is requested; 0 for none. */
    FILE* file;
    CURL* transfer;
};

/* What browsers fetch first: urgency of RFC 9218, 0 is the most urgent, and weight of RFC 7540. */
static const struct kind {
    const char* suffix;
    const char* priority;
    long weight;
} kinds[] = {
    {".html", "priority: u=0, i", 256}, {".css", "priority: u=0", 256}, {".js", "priority: u=1", 220},
    {".gif", "priority: u=4, i", 110},  {"", "priority: u=3", 16},
};

static void check(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "http2: %s\n", what);
    exit(1);
}

static void* need(void* thing, const char* what) {
    check(thing != NULL, what);
    return thing;
}

static const struct kind* kind_of(const char* url) {
    for (const struct kind* kind = kinds;; kind++) {
        size_t length = strlen(kind->suffix), all = strlen(url);
        if (all >= length && !strcmp(url + all - length, kind->suffix)) return kind;
    }
}

struct settings {
    long tls;
    long tls_options;
    int separate; /* A connection of its own for each object. */
    int visits;   /* A connection for the first object, and one that resumes its session for all others. */
    int fast_open;
    const char* groups; /* Of the key exchange; NULL for those of the library. */
};

static void request(CURLM* multi, struct object* object, const struct settings* settings) {
    char path[4096];
    const char* name = need(strrchr(object->url, '/'), object->url);
    const struct kind* kind = kind_of(object->url);
    const int own = settings->separate || (settings->visits && !object->after);
    check(snprintf(path, sizeof path, "/downloads%s", name) < (int)sizeof path, "the name is too long");
    object->file = need(fopen(path, "wb"), path);
    CURL* easy = object->transfer = need(curl_easy_init(), "memory");
    curl_easy_setopt(easy, CURLOPT_URL, object->url);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, object);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, object->file);
    curl_easy_setopt(easy, CURLOPT_CAINFO, "/certs/ca.pem");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, settings->tls);
    curl_easy_setopt(easy, CURLOPT_SSL_OPTIONS, settings->tls_options);
    curl_easy_setopt(easy, CURLOPT_SSL_EC_CURVES, settings->groups);
    curl_easy_setopt(easy, CURLOPT_TCP_FASTOPEN, settings->fast_open ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, own ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, own ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, own ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_STREAM_WEIGHT, kind->weight);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, need(curl_slist_append(NULL, kind->priority), "memory"));
    check(curl_multi_add_handle(multi, easy) == CURLM_OK, object->url);
}

/* Stores the object of a transfer that has ended; its position, from 1. */
static int finish(CURLM* multi, const CURLMsg* message, const struct object* objects) {
    struct object* object = NULL;
    long version = 0;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char**)&object);
    curl_easy_getinfo(message->easy_handle, CURLINFO_HTTP_VERSION, &version);
    if (message->data.result != CURLE_OK) {
        fprintf(stderr, "http2: %s: %s\n", object->url, curl_easy_strerror(message->data.result));
        exit(1);
    }
    check(version == CURL_HTTP_VERSION_2_0, "the server does not speak HTTP/2");
    check(fclose(object->file) == 0, "a file cannot be written");
    curl_multi_remove_handle(multi, object->transfer);
    curl_easy_cleanup(object->transfer);
    return (int)(object - objects) + 1;
}

static void fetch(struct object* objects, int count, const struct settings* settings) {
    CURLM* multi = need(curl_multi_init(), "memory");
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
    curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000L);
    int left = count, running, queued;
    for (int i = 0; i < count; i++)
        if (!objects[i].after) request(multi, &objects[i], settings);
    while (left) {
        check(curl_multi_perform(multi, &running) == CURLM_OK, "libcurl");
        int arrived = 0;
        for (CURLMsg* message; (message = curl_multi_info_read(multi, &queued));) {
            if (message->msg != CURLMSG_DONE) continue;
            int place = finish(multi, message, objects);
            left--, arrived++;
            for (int i = 0; i < count; i++)
                if (objects[i].after == place) request(multi, &objects[i], settings);
        }
        if (left && !arrived) check(curl_multi_poll(multi, NULL, 0, 1000, NULL) == CURLM_OK, "libcurl");
    }
    curl_multi_cleanup(multi);
}

/* Position after the last option. */
static int read_options(char** arguments, struct settings* settings) {
    int place = 1;
    for (; arguments[place] && arguments[place][0] == '-'; place++) {
        const char* option = arguments[place];
        if (!strcmp(option, "--tlsv1.2"))
            settings->tls = CURL_SSLVERSION_TLSv1_2;
        else if (!strcmp(option, "--tls-max") && arguments[place + 1] && !strcmp(arguments[place + 1], "1.2"))
            settings->tls |= CURL_SSLVERSION_MAX_TLSv1_2, place++;
        else if (!strcmp(option, "--curves") && arguments[place + 1])
            settings->groups = arguments[++place];
        else if (!strcmp(option, "--tls-earlydata"))
            settings->tls_options |= CURLSSLOPT_EARLYDATA;
        else if (!strcmp(option, "--tcp-fastopen"))
            settings->fast_open = 1;
        else
            check(0, "CLIENT_PARAMS may be --tlsv1.2, --tls-max 1.2, --curves, --tls-earlydata and --tcp-fastopen");
    }
    return place;
}

int main(int argc, char** argv) {
    struct settings settings = {.tls = CURL_SSLVERSION_TLSv1_3};
    int first = read_options(argv, &settings), count = argc - first;
    const char* test = need(getenv("TESTCASE"), "TESTCASE is missing");
    settings.separate = !strncmp(test, "multiconnect", 12);
    settings.visits = !strncmp(test, "resumption", 10);
    char* order = getenv("REQUESTS_AFTER");
    check(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl");
    struct object* objects = need(calloc(count + 1, sizeof *objects), "memory");
    for (int i = 0; i < count; i++) {
        objects[i].url = argv[first + i];
        objects[i].after = settings.separate ? i : settings.visits ? i > 0 : order ? (int)strtol(order, &order, 10) : 0;
        check(0 <= objects[i].after && objects[i].after <= i, "REQUESTS_AFTER names no earlier file");
    }
    fetch(objects, count, &settings);
    curl_global_cleanup();
    free(objects);
    return 0;
}
