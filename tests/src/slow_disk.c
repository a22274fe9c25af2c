/* Makes the syncs of a program's files do what a page says, without touching the disk, and the reads of its database fail when the page says
   so. AGENT_HOST_TESTS_SYNCS names the page's file: three numbers of 64 bits, how many syncs there were, what they do, and whether reads
   fail; see slow_disk.rs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HANG UINT64_MAX
#define FAIL (UINT64_MAX - 1)
#define LOOK_US 1000

static uint64_t nowhere[3];
static uint64_t *page = nowhere;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("AGENT_HOST_TESTS_SYNCS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        page = mapped;
}

static int take(void)
{
    uint64_t what;
    __atomic_add_fetch(&page[0], 1, __ATOMIC_SEQ_CST);
    while ((what = __atomic_load_n(&page[1], __ATOMIC_SEQ_CST)) == HANG)
        usleep(LOOK_US);
    if (what == FAIL) {
        errno = EIO;
        return -1;
    }
    /* A sleep of no time would still take some 50 us. */
    if (what)
        usleep((useconds_t)what);
    return 0;
}

int fdatasync(int file)
{
    (void)file;
    return take();
}

int fsync(int file)
{
    (void)file;
    return take();
}

static int fails(int file)
{
    char link[32], path[4096];
    ssize_t length;
    if (!__atomic_load_n(&page[2], __ATOMIC_SEQ_CST))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    if (!strstr(path, "/store.db"))
        return 0;
    errno = EIO;
    return 1;
}

ssize_t read(int file, void *into, size_t size)
{
    static ssize_t (*next)(int, void *, size_t);
    if (!next)
        next = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    return fails(file) ? -1 : next(file, into, size);
}

ssize_t pread(int file, void *into, size_t size, off_t at)
{
    static ssize_t (*next)(int, void *, size_t, off_t);
    if (!next)
        next = (ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
    return fails(file) ? -1 : next(file, into, size, at);
}

ssize_t pread64(int file, void *into, size_t size, off64_t at)
{
    static ssize_t (*next)(int, void *, size_t, off64_t);
    if (!next)
        next = (ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
    return fails(file) ? -1 : next(file, into, size, at);
}
