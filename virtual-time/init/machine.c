/* The machine itself: its clocks, and how it ends. */
#include "guest.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/reboot.h>
#include <unistd.h>

static void (*report)(const char* fault);

int64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * SECOND + time.tv_nsec;
}

void power_off(void) {
    sync();
    reboot(RB_POWER_OFF);
    for (;;) {
        pause();
    }
}

void on_fault(void (*act)(const char* fault)) {
    report = act;
}

void fail(const char* format, ...) {
    void (*const first)(const char*) = report;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "guest: %s\n", text);
    if (first) {
        report = NULL; /* a fault while this one is reported is one of the report */
        first(text);
    }
    power_off();
}
