/* Client: fetches all files over one connection, a stream each, or over as many as the test wants. */
#include "quic.h"

static int broken;
static SSL_SESSION* session;

static int keep_session(SSL* ssl, SSL_SESSION* new) {
    return (void)ssl, SSL_SESSION_free(session), session = new, 1;
}

static int store(struct job* job) {
    size_t count, round = 0;
    while (SSL_read_ex(job->stream, job->buffer, sizeof job->buffer, &count)) {
        check(fwrite(job->buffer, 1, count, job->file) == count, "write");
        if (++round == 64) return 0; /* The other streams, and a signal, get their turn too. */
    }
    int error = SSL_get_error(job->stream, 0);
    broken |= error != SSL_ERROR_WANT_READ && error != SSL_ERROR_ZERO_RETURN;
    return error != SSL_ERROR_WANT_READ;
}

static void fetch(SSL_CTX* ctx, char** urls, int count) {
    char host[256], port[8] = "443", path[PATH_MAX];
    BIO_ADDRINFO* found = NULL;
    struct job* jobs = NULL;
    check(sscanf(*urls, "https://%255[^:/]:%7[0-9]", host, port) > 0, *urls);
    check(BIO_lookup_ex(host, port, BIO_LOOKUP_CLIENT, AF_UNSPEC, SOCK_DGRAM, 0, &found), host);
    SSL* ssl = need(SSL_new(ctx), "SSL_new");
    SSL_set_fd(ssl, udp_socket(BIO_ADDRINFO_family(found))), SSL_set_blocking_mode(ssl, 0);
    SSL_set1_initial_peer_addr(ssl, BIO_ADDRINFO_address(found));
    SSL_set_default_stream_mode(ssl, SSL_DEFAULT_STREAM_MODE_NONE);
    SSL_set1_host(ssl, host), SSL_set_tlsext_host_name(ssl, host);
    if (session) SSL_set_session(ssl, session), SSL_SESSION_free(session), session = NULL;
    for (int result; (result = SSL_connect(ssl)) != 1; turn(ssl))
        check(SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ || SSL_get_error(ssl, result) == SSL_ERROR_WANT_WRITE,
              host);
    for (int i = 0; i < count; i++) {
        char request[PATH_MAX + 8], file[PATH_MAX + 16];
        check(sscanf(urls[i], "https://%*[^/]%4095s", path) == 1, urls[i]);
        snprintf(file, sizeof file, "/downloads/%s", strrchr(path, '/') + 1);
        jobs =
            new_job(jobs, need(SSL_new_stream(ssl, SSL_STREAM_FLAG_ADVANCE), "stream"), need(fopen(file, "wb"), file));
        size_t length = sprintf(request, "GET %s\r\n", path);
        check(SSL_write_ex2(jobs->stream, request, length, SSL_WRITE_FLAG_CONCLUDE, &length), "request");
    }
    for (int update = testing("keyupdate"); jobs && !ending; turn(ssl)) {
        if (update && SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED)) update = 0; /* Refused until it is allowed. */
        run(&jobs, store);
    }
    while (testing("resumption") && !session && !ending && !is_closed(ssl))
        turn(ssl);
    leave(ssl, &jobs);
    check(!ending && !broken, ending ? "told to end" : "a stream or the connection");
}

int main(int count, char** arguments) {
    SSL_CTX* ctx = new_context(OSSL_QUIC_client_method());
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
