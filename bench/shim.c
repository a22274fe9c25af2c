/* Makes every sync of a file take 4 ms without touching the disk, and counts them in the file that BENCH_SYNCS names. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SYNC_US 4000

static uint64_t nowhere;
static uint64_t *count = &nowhere;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("BENCH_SYNCS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page != MAP_FAILED)
        count = page;
}

static int take(void)
{
    __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
    usleep(SYNC_US);
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
