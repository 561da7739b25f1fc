/* OpenSSL's own QUIC as an endpoint: HTTP/0.9, client or server, chosen by ROLE and TESTCASE. The stack writes its qlog to
 * QLOGDIR unasked, and its windows grow by themselves, up to 6 MiB for a stream and 15 MiB for a connection. */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

struct job { struct job *next; SSL *stream; FILE *file; size_t length, sent; char buffer[1 << 16]; };
struct peer { struct peer *next; SSL *connection; struct job *jobs; };

static volatile sig_atomic_t ending;
static int broken;
static FILE *keys;
static SSL_SESSION *session;

static void on_signal(int number) { ending = number; }
static void log_key(const SSL *ssl, const char *line) { (void)ssl, fprintf(keys, "%s\n", line), fflush(keys); }
static int keep_session(SSL *ssl, SSL_SESSION *new) { return (void)ssl, SSL_SESSION_free(session), session = new, 1; }
static int testing(const char *name) { return getenv("TESTCASE") && !strcmp(getenv("TESTCASE"), name); }

static void *need(const void *good, const char *what) {
    if (good) return (void *)good;
    fprintf(stderr, "openssl: %s: %s\n", what, errno && errno != EAGAIN ? strerror(errno) : "failed");
    ERR_print_errors_fp(stderr);
    exit(1);
}
static void check(int good, const char *what) { need(good ? what : NULL, what); }

static int choose_alpn(SSL *ssl, const unsigned char **chosen, unsigned char *length, const unsigned char *offered,
                       unsigned offered_length, void *alpn) {
    return (void)ssl, SSL_select_next_proto((unsigned char **)chosen, length, alpn, 11, offered, offered_length)
                   == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int udp_socket(int family) {
    int fd = BIO_socket(family, SOCK_DGRAM, 0, 0), size = 4 << 20, off = 0;
    check(fd >= 0 && BIO_socket_nbio(fd, 1), "socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size), setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    return fd;
}

/* Waits until the stack has work and lets it do that; 0.1 s at most, for a signal may have come just before. */
static void turn(SSL *ssl) {
    struct timeval left = {0};
    int infinite = 1, wait = 100;
    if (SSL_get_event_timeout(ssl, &left, &infinite) && !infinite && !left.tv_sec && left.tv_usec < 100000)
        wait = (left.tv_usec + 999) / 1000;
    struct pollfd event = {SSL_get_fd(ssl), POLLIN | (SSL_net_write_desired(ssl) ? POLLOUT : 0), 0};
    poll(&event, 1, wait), SSL_handle_events(ssl);
}

static struct job *new_job(struct job *next, SSL *stream, FILE *file) {
    struct job *job = need(calloc(1, sizeof *job), "memory");
    return job->next = next, job->stream = stream, job->file = file, job;
}

/* Runs what every stream can do now; a stream that is done leaves the list. */
static void run(struct job **link, int (*step)(struct job *)) {
    for (struct job *job; (job = *link);) {
        if (!step(job)) { link = &job->next; continue; }
        *link = job->next, SSL_free(job->stream); /* Without its end sent or received, this resets the stream. */
        if (job->file) fclose(job->file);
        free(job);
    }
}
static int drop(struct job *job) { return job != NULL; }

static int is_closed(SSL *ssl) {
    SSL_CONN_CLOSE_INFO info;
    return SSL_get_conn_close_info(ssl, &info, sizeof info) == 1;
}
static void leave(SSL *ssl, struct job **jobs) {
    SSL_shutdown_ex(ssl, SSL_SHUTDOWN_FLAG_RAPID | SSL_SHUTDOWN_FLAG_NO_BLOCK | SSL_SHUTDOWN_FLAG_NO_STREAM_FLUSH, NULL, 0);
    run(jobs, drop), SSL_free(ssl);
}

static int answer(struct job *job) {
    for (size_t count; !job->file;) {
        if (!SSL_read_ex(job->stream, job->buffer + job->length, PATH_MAX - job->length, &count))
            return SSL_get_error(job->stream, 0) != SSL_ERROR_WANT_READ;
        job->buffer[job->length += count] = 0;
        if (!strchr(job->buffer, '\n') && job->length < PATH_MAX) continue;
        char path[PATH_MAX + 8] = "/www/";
        if (sscanf(job->buffer, "GET /%4095[^\r\n]", path + 5) != 1 || strstr(path, "..")) return 1;
        if (!(job->file = fopen(path, "rb"))) return 1;
        job->length = 0;
    }
    for (size_t count, round = 0; round < 16; round++, job->sent += count) { /* The other streams get their turn too. */
        if (job->sent == job->length) {
            if (job->length && feof(job->file)) return 1;
            job->sent = 0, job->length = fread(job->buffer, 1, sizeof job->buffer, job->file);
        }
        if (!SSL_write_ex2(job->stream, job->buffer + job->sent, job->length - job->sent,
                           feof(job->file) ? SSL_WRITE_FLAG_CONCLUDE : 0, &count))
            return SSL_get_error(job->stream, 0) != SSL_ERROR_WANT_WRITE;
        if (!job->length) return 1;
    }
    return 0;
}

static int store(struct job *job) {
    size_t count, round = 0;
    while (SSL_read_ex(job->stream, job->buffer, sizeof job->buffer, &count)) {
        check(fwrite(job->buffer, 1, count, job->file) == count, "write");
        if (++round == 64) return 0; /* The other streams, and a signal, get their turn too. */
    }
    int error = SSL_get_error(job->stream, 0);
    broken |= error != SSL_ERROR_WANT_READ && error != SSL_ERROR_ZERO_RETURN;
    return error != SSL_ERROR_WANT_READ;
}

static void fetch(SSL_CTX *ctx, char **urls, int count) {
    char host[256], port[8] = "443", path[PATH_MAX];
    BIO_ADDRINFO *found = NULL;
    struct job *jobs = NULL;
    check(sscanf(*urls, "https://%255[^:/]:%7[0-9]", host, port) > 0, *urls);
    check(BIO_lookup_ex(host, port, BIO_LOOKUP_CLIENT, AF_UNSPEC, SOCK_DGRAM, 0, &found), host);
    SSL *ssl = need(SSL_new(ctx), "SSL_new");
    SSL_set_fd(ssl, udp_socket(BIO_ADDRINFO_family(found))), SSL_set_blocking_mode(ssl, 0);
    SSL_set1_initial_peer_addr(ssl, BIO_ADDRINFO_address(found));
    SSL_set_default_stream_mode(ssl, SSL_DEFAULT_STREAM_MODE_NONE);
    SSL_set1_host(ssl, host), SSL_set_tlsext_host_name(ssl, host);
    if (session) SSL_set_session(ssl, session), SSL_SESSION_free(session), session = NULL;
    for (int result; (result = SSL_connect(ssl)) != 1; turn(ssl))
        check(SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ || SSL_get_error(ssl, result) == SSL_ERROR_WANT_WRITE, host);
    for (int i = 0; i < count; i++) {
        char request[PATH_MAX + 8], file[PATH_MAX + 16];
        check(sscanf(urls[i], "https://%*[^/]%4095s", path) == 1, urls[i]);
        snprintf(file, sizeof file, "/downloads/%s", strrchr(path, '/') + 1);
        jobs = new_job(jobs, need(SSL_new_stream(ssl, SSL_STREAM_FLAG_ADVANCE), "stream"), need(fopen(file, "wb"), file));
        size_t length = sprintf(request, "GET %s\r\n", path);
        check(SSL_write_ex2(jobs->stream, request, length, SSL_WRITE_FLAG_CONCLUDE, &length), "request");
    }
    for (int update = testing("keyupdate"); jobs && !ending; turn(ssl)) {
        if (update && SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED)) update = 0; /* Refused until it is allowed. */
        run(&jobs, store);
    }
    while (testing("resumption") && !session && !ending && !is_closed(ssl)) turn(ssl);
    leave(ssl, &jobs);
    check(!ending && !broken, ending ? "told to end" : "a stream or the connection");
}

static void serve(SSL_CTX *ctx) {
    struct peer *peers = NULL;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
    SSL *listener = need(SSL_new_listener(ctx, testing("retry") ? 0 : SSL_LISTENER_FLAG_NO_VALIDATE), "listener");
    SSL_set_fd(listener, udp_socket(AF_INET6)), SSL_set_blocking_mode(listener, 0);
    check(!bind(SSL_get_fd(listener), (struct sockaddr *)&any, sizeof any) && SSL_listen(listener), "port 443");
    for (;; turn(listener)) {
        for (SSL *new; (new = SSL_accept_connection(listener, SSL_ACCEPT_CONNECTION_NO_BLOCK));) {
            SSL_set_blocking_mode(new, 0), SSL_set_default_stream_mode(new, SSL_DEFAULT_STREAM_MODE_NONE);
            SSL_set_incoming_stream_policy(new, SSL_INCOMING_STREAM_POLICY_ACCEPT, 0);
            struct peer *peer = need(calloc(1, sizeof *peer), "memory");
            peer->connection = new, peer->next = peers, peers = peer;
        }
        for (struct peer **link = &peers, *peer; (peer = *link);) {
            for (SSL *new; (new = SSL_accept_stream(peer->connection, SSL_ACCEPT_STREAM_NO_BLOCK));)
                peer->jobs = new_job(peer->jobs, new, NULL);
            run(&peer->jobs, answer);
            if (!is_closed(peer->connection) && !ending) { link = &peer->next; continue; }
            *link = peer->next, leave(peer->connection, &peer->jobs), free(peer);
        }
        if (ending) return;
    }
}

int main(int count, char **arguments) {
    unsigned char *alpn = (unsigned char *)"\012hq-interop";
    const char *role = getenv("ROLE"), *keylog = getenv("SSLKEYLOGFILE");
    int server = role && !strcmp(role, "server");
    SSL_CTX *ctx = need(SSL_CTX_new(server ? OSSL_QUIC_server_method() : OSSL_QUIC_client_method()), "SSL_CTX_new");
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    fprintf(stderr, "%s\n", OpenSSL_version(OPENSSL_VERSION));
    signal(SIGTERM, on_signal), signal(SIGINT, on_signal), signal(SIGPIPE, SIG_IGN);
    if (keylog && *keylog) keys = need(fopen(keylog, "a"), keylog), SSL_CTX_set_keylog_callback(ctx, log_key);
    if (testing("chacha20")) SSL_CTX_set_ciphersuites(ctx, "TLS_CHACHA20_POLY1305_SHA256");
    if (server) {
        check(count == 1, "there are no SERVER_PARAMS");
        check(SSL_CTX_use_certificate_chain_file(ctx, "/certs/cert.pem") == 1, "/certs/cert.pem");
        check(SSL_CTX_use_PrivateKey_file(ctx, "/certs/priv.key", SSL_FILETYPE_PEM) == 1, "/certs/priv.key");
        SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, alpn), serve(ctx);
        return 0;
    }
    check(SSL_CTX_load_verify_file(ctx, "/certs/ca.pem"), "/certs/ca.pem");
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL), SSL_CTX_set_alpn_protos(ctx, alpn, 11);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(ctx, keep_session);
    for (int i = 1, batch; i < count; i += batch) {
        batch = testing("multiconnect") || (testing("resumption") && i == 1) ? 1 : count - i;
        fetch(ctx, arguments + i, batch);
    }
    return count == 1;
}
