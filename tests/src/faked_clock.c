/* Shifts the wall clock of a program by what a page says. AGENT_HOST_TESTS_CLOCK names the page's file: milliseconds, a signed number of
   64 bits; see faked_clock.rs. Other clocks are left as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t nowhere[1];
static int64_t *page = nowhere;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("AGENT_HOST_TESTS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof nowhere, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        page = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, time);
    if (!failed && clock == CLOCK_REALTIME) {
        int64_t ms = __atomic_load_n(page, __ATOMIC_SEQ_CST);
        time->tv_sec += ms / 1000;
        time->tv_nsec += (ms % 1000) * 1000000;
        if (time->tv_nsec < 0) {
            time->tv_sec -= 1;
            time->tv_nsec += 1000000000;
        } else if (time->tv_nsec >= 1000000000) {
            time->tv_sec += 1;
            time->tv_nsec -= 1000000000;
        }
    }
    return failed;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}
