/* Tar archives (ustar, POSIX.1-1988) on block devices: the input is read from one, the output is written to another.
   Names that are too long for a header stand in a member before it, as GNU tar writes them. */
#define _GNU_SOURCE
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCK = 512, BUFFER = 1 << 20, MAX_DEPTH = 32, NAME = 512 };
#define LONG_NAME 'L' /* a member whose content is the name of the next one */
#define MAX_DESCRIPTION ((size_t)1 << 20)

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
        user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static char buffer[BUFFER];

static unsigned long sum(const struct header* header) {
    const unsigned char* bytes = (const unsigned char*)header;
    unsigned long total = 0;
    for (size_t index = 0; index < BLOCK; ++index) {
        const bool inside = index >= offsetof(struct header, checksum) && index < offsetof(struct header, type);
        total += inside ? ' ' : bytes[index];
    }
    return total;
}

/* Opens a path below `root`; no symbolic link leads out of it. */
static int open_below(const char* root, const char* path, uint64_t flags, mode_t mode) {
    int directory = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return -1;
    }
    struct open_how how = {.flags = flags | O_CLOEXEC, .mode = flags & O_CREAT ? mode : 0, .resolve = RESOLVE_IN_ROOT};
    int file = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
    const int error = errno;
    close(directory);
    errno = error;
    return file;
}

/* ---- reading ------------------------------------------------------------------------------- */

static void read_all(int device, void* target, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t count = read(device, (char*)target + done, size - done);
        if (count <= 0) {
            fail("the input ends early");
        }
        done += (size_t)count;
    }
}

static uint64_t octal(const char* field, size_t size) {
    char text[16] = {0};
    memcpy(text, field, size < sizeof text ? size : sizeof text - 1);
    char* end;
    const uint64_t value = strtoull(text, &end, 8);
    if (end == text || (*end && *end != ' ')) {
        fail("the input has a number that is none");
    }
    return value;
}

static void make_directories(const char* root, const char* path, bool last) {
    char text[NAME];
    snprintf(text, sizeof text, "%s", path);
    for (char* slash = text; *slash;) {
        slash = strchrnul(slash + 1, '/');
        const char ended = *slash;
        if (!ended && !last) {
            return;
        }
        *slash = 0;
        char* name = strrchr(text, '/');
        int parent = name ? (*name = 0, open_below(root, text, O_PATH | O_DIRECTORY, 0))
                          : open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (parent < 0 || (mkdirat(parent, name ? name + 1 : text, 0755) && errno != EEXIST)) {
            fail("input: %s: %s", path, strerror(errno));
        }
        close(parent);
        if (name) {
            *name = '/';
        }
        *slash = ended;
    }
}

static void unpack_file(int device, const char* root, const char* path, uint64_t size, mode_t mode) {
    make_directories(root, path, false);
    int file = open_below(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode);
    if (file < 0) {
        fail("input: %s: %s", path, strerror(errno));
    }
    while (size) {
        const size_t count = size < BUFFER ? size : BUFFER;
        read_all(device, buffer, (count + BLOCK - 1) / BLOCK * BLOCK);
        if (write(file, buffer, count) != (ssize_t)count) {
            fail("input: %s: %s", path, strerror(errno));
        }
        size -= count;
    }
    close(file);
}

char* unpack_input(const char* device, const char* const roots[NETWORKS], size_t* size) {
    int input = open(device, O_RDONLY | O_CLOEXEC);
    if (input < 0) {
        fail("%s: %s", device, strerror(errno));
    }
    char* description = NULL;
    char longer[NAME + 1] = {0};
    for (;;) {
        struct header header;
        read_all(input, &header, sizeof header);
        if (!header.name[0]) {
            break;
        }
        if (memcmp(header.magic, "ustar", 5) || octal(header.checksum, sizeof header.checksum) != sum(&header)) {
            fail("the input is no archive");
        }
        const uint64_t length = octal(header.size, sizeof header.size);
        if (header.type == LONG_NAME) {
            if (length > NAME) {
                fail("the input has a name that is too long");
            }
            read_all(input, longer, (length + BLOCK - 1) / BLOCK * BLOCK);
            longer[length] = 0;
            continue;
        }
        char name[NAME + 1];
        if (longer[0]) {
            snprintf(name, sizeof name, "%s", longer);
            longer[0] = 0;
        } else {
            snprintf(name, sizeof name, "%.155s%s%.100s", header.prefix, header.prefix[0] ? "/" : "", header.name);
        }
        if (!strcmp(name, "run")) {
            const size_t room = (length + BLOCK - 1) / BLOCK * BLOCK;
            if (length > MAX_DESCRIPTION || !(description = malloc(room + 1))) {
                fail("the description is too long");
            }
            read_all(input, description, room);
            description[length] = 0;
            *size = length;
            continue;
        }
        int part = 0;
        char* path = strchr(name, '/');
        while (path && part < NETWORKS &&
               (strlen(part_names[part]) != (size_t)(path - name) || memcmp(part_names[part], name, path - name))) {
            ++part;
        }
        if (!path || part == NETWORKS || !roots[part]) {
            fail("input: %s belongs to no container", name);
        }
        if (header.type == '5') {
            char* end = path + strlen(path);
            while (end > path + 1 && end[-1] == '/') {
                *--end = 0;
            }
            make_directories(roots[part], path + 1, true);
        } else if (header.type == '0' || !header.type) {
            unpack_file(input, roots[part], path + 1, length, octal(header.mode, sizeof header.mode) & 0777);
        } else {
            fail("input: %s is neither file nor directory", name);
        }
    }
    close(input);
    if (!description) {
        fail("the input has no description");
    }
    return description;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Bytes at the end of the output for the result and the end of the archive. */
#define RESERVED UINT64_C(65536)
/* Bytes of a long name with its header. */
#define LONGEST_NAME (UINT64_C(2) * BLOCK)
/* The largest size that a header holds. */
#define LARGEST (UINT64_C(8) << 30)

static int output = -1;
static uint64_t room; /* bytes of the output that are left */
static unsigned lost;

unsigned count_lost(void) {
    return lost;
}

static void write_all(const void* source, size_t size) {
    for (size_t done = 0; output >= 0 && done < size;) { /* a fault may come before there is an output */
        ssize_t count = write(output, (const char*)source + done, size - done);
        if (count <= 0) {
            output = -1;
            fail("output: %s", count ? strerror(errno) : "full");
        }
        done += (size_t)count;
        room -= (uint64_t)count;
    }
}

static void pad(uint64_t size) {
    static const char zeros[BLOCK];
    write_all(zeros, (BLOCK - size % BLOCK) % BLOCK);
}

void open_output(const char* device) {
    output = open(device, O_WRONLY | O_CLOEXEC);
    if (output < 0 || ioctl(output, BLKGETSIZE64, &room)) {
        fail("%s: %s", device, strerror(errno));
    }
    if (room < 4 * RESERVED) {
        fail("the output has no more than %" PRIu64 " bytes", room);
    }
}

/* Whether a file of `size` bytes still finds room, and what must follow it too. */
static bool fits(uint64_t size, uint64_t reserved) {
    return size < LARGEST && size + 2 * BLOCK + LONGEST_NAME + reserved <= room;
}

static void add_header(const char* name, char type, const struct stat* facts, uint64_t size, const char* link) {
    struct header header = {.type = type, .magic = "ustar", .version = "00"};
    const size_t length = strlen(name);
    if (length > sizeof header.name) {
        add_header("././@LongLink", LONG_NAME, NULL, length + 1, NULL);
        write_all(name, length + 1);
        pad(length + 1);
    }
    memcpy(header.name, name, length < sizeof header.name ? length : sizeof header.name);
    snprintf(header.mode, sizeof header.mode, "%07o", facts ? facts->st_mode & 07777 : 0644);
    snprintf(header.uid, sizeof header.uid, "%07o", 0);
    snprintf(header.gid, sizeof header.gid, "%07o", 0);
    snprintf(header.size, sizeof header.size, "%011llo", (unsigned long long)size);
    const bool dated = facts && facts->st_mtime > 0 && (uint64_t)facts->st_mtime < LARGEST;
    snprintf(header.mtime, sizeof header.mtime, "%011llo", dated ? (unsigned long long)facts->st_mtime : 0);
    if (link) {
        memcpy(header.link, link, strnlen(link, sizeof header.link));
    }
    snprintf(header.checksum, sizeof header.checksum, "%06lo", sum(&header));
    header.checksum[7] = ' ';
    write_all(&header, sizeof header);
}

void add_memory(const char* name, const void* content, size_t size, bool last) {
    if (!fits(size, last ? 0 : RESERVED)) {
        ++lost;
        return;
    }
    add_header(name, '0', NULL, size, NULL);
    write_all(content, size);
    pad(size);
}

static void add_file(int file, const struct stat* facts, const char* name) {
    if (!fits((uint64_t)facts->st_size, RESERVED)) {
        ++lost;
        return;
    }
    add_header(name, '0', facts, (uint64_t)facts->st_size, NULL);
    for (uint64_t rest = (uint64_t)facts->st_size; rest;) {
        ssize_t count = read(file, buffer, rest < BUFFER ? rest : BUFFER);
        if (count <= 0) { /* nothing runs any more, so no file shrinks */
            fail("output: %s cannot be read", name);
        }
        write_all(buffer, (size_t)count);
        rest -= (uint64_t)count;
    }
    pad((uint64_t)facts->st_size);
}

static int by_name(const struct dirent** left, const struct dirent** right) {
    return strcmp((*left)->d_name, (*right)->d_name);
}

static void add_directory(int directory, const char* name, int depth) {
    struct dirent** entries;
    int count = scandirat(directory, ".", &entries, NULL, by_name);
    for (int index = 0; index < count; ++index) {
        const char* child = entries[index]->d_name;
        char path[NAME];
        struct stat facts;
        if (strcmp(child, ".") && strcmp(child, "..") && depth < MAX_DEPTH &&
            snprintf(path, sizeof path, "%s/%s", name, child) < (int)sizeof path &&
            !fstatat(directory, child, &facts, AT_SYMLINK_NOFOLLOW)) {
            char link[101] = {0};
            int file = -1;
            if (!fits(0, RESERVED)) {
                ++lost;
            } else if (S_ISLNK(facts.st_mode) &&
                       readlinkat(directory, child, link, sizeof link) < (ssize_t)sizeof link) {
                add_header(path, '2', &facts, 0, link);
            } else if ((S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)) &&
                       (file = openat(directory, child, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) >= 0) {
                if (S_ISREG(facts.st_mode)) {
                    add_file(file, &facts, path);
                } else {
                    add_header(path, '5', &facts, 0, NULL);
                    add_directory(file, path, depth + 1);
                }
            }
            if (file >= 0) {
                close(file);
            }
        }
        free(entries[index]);
    }
    if (count >= 0) {
        free(entries);
    }
}

void add_tree(const char* root, const char* path, const char* name) {
    int file = open_below(root, path, O_RDONLY | O_NONBLOCK, 0);
    struct stat facts;
    if (file < 0 || fstat(file, &facts)) {
        return; /* what is not there is not collected */
    }
    if (S_ISREG(facts.st_mode)) {
        add_file(file, &facts, name);
    } else if (S_ISDIR(facts.st_mode)) {
        add_header(name, '5', &facts, 0, NULL);
        add_directory(file, name, 0);
    }
    close(file);
}

void close_output(void) {
    static const char zeros[2 * BLOCK];
    if (output >= 0) {
        write_all(zeros, sizeof zeros);
        fsync(output);
        close(output);
        output = -1;
    }
}
