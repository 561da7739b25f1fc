/* Server: answers HTTP/0.9 on port 443 with the files of /www, until SIGTERM. */
#include "quic.h"

struct peer {
    struct peer* next;
    SSL* connection;
    struct job* jobs;
};

static int choose_alpn(SSL* ssl, const unsigned char** chosen, unsigned char* length, const unsigned char* offered,
                       unsigned offered_length, void* unused) {
    return (void)ssl, (void)unused,
           SSL_select_next_proto((unsigned char**)chosen, length, alpn, 11, offered, offered_length) ==
                   OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int answer(struct job* job) {
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

static void serve(SSL_CTX* ctx) {
    struct peer* peers = NULL;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
    SSL* listener = need(SSL_new_listener(ctx, testing("retry") ? 0 : SSL_LISTENER_FLAG_NO_VALIDATE), "listener");
    SSL_set_fd(listener, udp_socket(AF_INET6)), SSL_set_blocking_mode(listener, 0);
    check(!bind(SSL_get_fd(listener), (struct sockaddr*)&any, sizeof any) && SSL_listen(listener), "port 443");
    for (;; turn(listener)) {
        for (SSL* new; (new = SSL_accept_connection(listener, SSL_ACCEPT_CONNECTION_NO_BLOCK));) {
            SSL_set_blocking_mode(new, 0), SSL_set_default_stream_mode(new, SSL_DEFAULT_STREAM_MODE_NONE);
            SSL_set_incoming_stream_policy(new, SSL_INCOMING_STREAM_POLICY_ACCEPT, 0);
            struct peer* peer = need(calloc(1, sizeof *peer), "memory");
            peer->connection = new, peer->next = peers, peers = peer;
        }
        for (struct peer **link = &peers, *peer; (peer = *link);) {
            for (SSL* new; (new = SSL_accept_stream(peer->connection, SSL_ACCEPT_STREAM_NO_BLOCK));)
                peer->jobs = new_job(peer->jobs, new, NULL);
            run(&peer->jobs, answer);
            if (!is_closed(peer->connection) && !ending) {
                link = &peer->next;
                continue;
            }
            *link = peer->next, leave(peer->connection, &peer->jobs), free(peer);
        }
        if (ending) return;
    }
}

int main(int count, char** arguments) {
    SSL_CTX* ctx = new_context(OSSL_QUIC_server_method());
    check(count == 1, arguments[count - 1]); /* There are no SERVER_PARAMS. */
    check(SSL_CTX_use_certificate_chain_file(ctx, "/certs/cert.pem") == 1, "/certs/cert.pem");
    check(SSL_CTX_use_PrivateKey_file(ctx, "/certs/priv.key", SSL_FILETYPE_PEM) == 1, "/certs/priv.key");
    SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL), serve(ctx);
    return 0;
}
