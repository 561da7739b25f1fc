/* Preloaded into an endpoint: one change of its behaviour, which CHANGE selects when this file is compiled.
 *
 * LOG_LINES: so many lines on standard error, one for each of the first datagrams that it receives. STAT: one stat() at
 * start. THREAD: a second thread, which sleeps. PAUSE: milliseconds that it sleeps once, after PAUSE_AFTER datagrams.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef LOG_LINES
#define LOG_LINES 0
#endif
#ifndef PAUSE
#define PAUSE 0
#endif
#ifndef PAUSE_AFTER
#define PAUSE_AFTER 300
#endif

static int endpoint; /* whether this is the endpoint itself, not its start script */
static int received;

#ifdef THREAD
static void *sleeper(void *nothing) {
    for (;;)
        pause();
    return nothing;
}
#endif

__attribute__((constructor)) static void start(void) {
    endpoint = strncmp(program_invocation_name, "/endpoint/", 10) == 0;
    if (!endpoint)
        return;
#ifdef STAT
    struct stat found;
    stat("/endpoint/configuration", &found);
#endif
#ifdef THREAD
    pthread_t thread;
    pthread_create(&thread, NULL, sleeper, NULL);
#endif
}

static void change(ssize_t result) {
    if (!endpoint || result < 0)
        return;
    received++;
    if (received <= LOG_LINES)
        fprintf(stderr, "received datagram %d\n", received);
    if (PAUSE && received == PAUSE_AFTER) {
        struct timespec left = {PAUSE / 1000, PAUSE % 1000 * 1000000L};
        while (nanosleep(&left, &left) && errno == EINTR)
            ;
    }
}

ssize_t recvfrom(int socket, void *buffer, size_t size, int flags, struct sockaddr *from, socklen_t *length) {
    static ssize_t (*next)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
    if (!next)
        next = dlsym(RTLD_NEXT, "recvfrom");
    ssize_t result = next(socket, buffer, size, flags, from, length);
    change(result);
    return result;
}

ssize_t recvmsg(int socket, struct msghdr *message, int flags) {
    static ssize_t (*next)(int, struct msghdr *, int);
    if (!next)
        next = dlsym(RTLD_NEXT, "recvmsg");
    ssize_t result = next(socket, message, flags);
    change(result);
    return result;
}

int recvmmsg(int socket, struct mmsghdr *messages, unsigned number, int flags, struct timespec *limit) {
    static int (*next)(int, struct mmsghdr *, unsigned, int, struct timespec *);
    if (!next)
        next = dlsym(RTLD_NEXT, "recvmmsg");
    int result = next(socket, messages, number, flags, limit);
    change(result);
    return result;
}
