/* Makes the syncs of a program's files do what a page says, without touching the disk. AGENT_HOST_TESTS_SYNCS names the page's file:
   two numbers of 64 bits, how many syncs there were and what they do; see slow_disk.rs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HANG UINT64_MAX
#define FAIL (UINT64_MAX - 1)
#define LOOK_US 1000

static uint64_t nowhere[2];
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
