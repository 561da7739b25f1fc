/* What client and server have in common: OpenSSL's own QUIC, driven from one loop, and streams that are served in turns. The
 * stack writes its qlog to QLOGDIR unasked, and its windows grow by themselves, to 6 MiB a stream and 15 MiB a connection. */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

struct job {
    struct job* next;
    SSL* stream;
    FILE* file;
    size_t length, sent;
    char buffer[1 << 16];
};

static unsigned char alpn[] = "\012hq-interop";
static volatile sig_atomic_t ending;
static FILE* keys;

static void on_signal(int number) {
    ending = number;
}
static void log_key(const SSL* ssl, const char* line) {
    (void)ssl, fprintf(keys, "%s\n", line), fflush(keys);
}
static int testing(const char* name) {
    return getenv("TESTCASE") && !strcmp(getenv("TESTCASE"), name);
}

static void* need(const void* good, const char* what) {
    if (good) return (void*)good;
    fprintf(stderr, "openssl: %s: %s\n", what, errno && errno != EAGAIN ? strerror(errno) : "failed");
    ERR_print_errors_fp(stderr);
    exit(1);
}
static void check(int good, const char* what) {
    need(good ? what : NULL, what);
}

static int udp_socket(int family) {
    int fd = BIO_socket(family, SOCK_DGRAM, 0, 0), size = 4 << 20, off = 0;
    check(fd >= 0 && BIO_socket_nbio(fd, 1), "socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size),
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    return fd;
}

/* Waits until the stack has work and lets it do that; 0.1 s at most, for a signal may have come just before. */
static void turn(SSL* ssl) {
    struct timeval left = {0};
    int infinite = 1, wait = 100;
    if (SSL_get_event_timeout(ssl, &left, &infinite) && !infinite && !left.tv_sec && left.tv_usec < 100000)
        wait = (left.tv_usec + 999) / 1000;
    struct pollfd event = {SSL_get_fd(ssl), POLLIN | (SSL_net_write_desired(ssl) ? POLLOUT : 0), 0};
    poll(&event, 1, wait), SSL_handle_events(ssl);
}

static struct job* new_job(struct job* next, SSL* stream, FILE* file) {
    struct job* job = need(calloc(1, sizeof *job), "memory");
    return job->next = next, job->stream = stream, job->file = file, job;
}

/* Runs what every stream can do now; a stream that is done leaves the list. */
static void run(struct job** link, int (*step)(struct job*)) {
    for (struct job* job; (job = *link);) {
        if (!step(job)) {
            link = &job->next;
            continue;
        }
        *link = job->next, SSL_free(job->stream); /* Without its end sent or received, this resets the stream. */
        if (job->file) fclose(job->file);
        free(job);
    }
}
static int drop(struct job* job) {
    return job != NULL;
}

static int is_closed(SSL* ssl) {
    SSL_CONN_CLOSE_INFO info;
    return SSL_get_conn_close_info(ssl, &info, sizeof info) == 1;
}
static void leave(SSL* ssl, struct job** jobs) {
    SSL_shutdown_ex(ssl, SSL_SHUTDOWN_FLAG_RAPID | SSL_SHUTDOWN_FLAG_NO_BLOCK | SSL_SHUTDOWN_FLAG_NO_STREAM_FLUSH, NULL,
                    0);
    run(jobs, drop), SSL_free(ssl);
}

static SSL_CTX* new_context(const SSL_METHOD* method) {
    const char* keylog = getenv("SSLKEYLOGFILE");
    SSL_CTX* ctx = need(SSL_CTX_new(method), "SSL_CTX_new");
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    fprintf(stderr, "%s\n", OpenSSL_version(OPENSSL_VERSION));
    signal(SIGTERM, on_signal), signal(SIGINT, on_signal), signal(SIGPIPE, SIG_IGN);
    if (keylog && *keylog) keys = need(fopen(keylog, "a"), keylog), SSL_CTX_set_keylog_callback(ctx, log_key);
    if (testing("chacha20")) SSL_CTX_set_ciphersuites(ctx, "TLS_CHACHA20_POLY1305_SHA256");
    return ctx;
}
