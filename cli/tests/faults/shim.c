// Makes one call fail, or ends the process there: loaded by LD_PRELOAD into the real program.
//
// Calls that touch files under FAULT_UNDER are counted, in the order in which the program makes them; the one of number FAULT_AT
// meets what FAULT_KIND says. FAULT_LOG gets a line for each: its number, its name, its file, and `!` where it was met.
//
//   ENOSPC, EIO, EACCES  the call fails so, once
//   FULL                 from then on nothing has room: writes fail, after half of the first, and nothing is made any more
//   SHORT                a write takes half of what it was given
//   BEFORE, AFTER        the process is killed before or after the call
//   WAIT                 the process says so on standard error, and waits until FAULT_GATE, a pipe, is opened for writing
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long at = -1, count;
static const char *kind = "", *under, *gate;
static int out = -1;

__attribute__((constructor)) static void begin(void) {
  under = getenv("FAULT_UNDER");
  const char *number = getenv("FAULT_AT"), *log = getenv("FAULT_LOG");
  if (number) at = atol(number);
  if (getenv("FAULT_KIND")) kind = getenv("FAULT_KIND");
  gate = getenv("FAULT_GATE");
  if (log) out = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static int is(const char *name) { return strcmp(kind, name) == 0; }

static int is_under(const char *path) {
  size_t length = under ? strlen(under) : 0;
  return length && strncmp(path, under, length) == 0 && (path[length] == '/' || !path[length]);
}

// The path behind a descriptor, in `path`.
static const char *of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  path[length < 0 ? 0 : length] = 0;
  return path;
}

static const char *whole(int folder, const char *name, char *path) {
  if (name[0] == '/') return name;
  char start[PATH_MAX];
  if (folder == AT_FDCWD) {
    if (syscall(SYS_getcwd, start, sizeof start) < 0) start[0] = 0;
  } else {
    of(folder, start);
  }
  if (snprintf(path, PATH_MAX, "%s/%s", start, name) >= PATH_MAX) path[0] = 0;
  return path;
}

static void end(void) {
  syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  for (;;) pause();
}

// What a call is told: 0 to go on, an error, -1 to be killed after it, -2 to take half.
static int meet(const char *call, const char *path, int writes) {
  if (!is_under(path)) return 0;
  long number = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
  int met = number == at;
  char line[PATH_MAX + 64];
  int length = snprintf(line, sizeof line, "%ld %s %s%s\n", number, call, path, met ? " !" : "");
  if (out >= 0 && length < (int)sizeof line) syscall(SYS_write, out, line, length);
  if (is("FULL") && at > 0 && number >= at && writes) return met && writes == 2 ? -2 : ENOSPC;
  if (!met) return 0;
  if (is("BEFORE")) end();
  if (is("AFTER")) return -1;
  if (is("SHORT")) return writes == 2 ? -2 : 0;
  if (is("WAIT")) {
    syscall(SYS_write, 2, "WAITING\n", 8);
    int fd = syscall(SYS_openat, AT_FDCWD, gate, O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0) syscall(SYS_close, fd);
    return 0;
  }
  return is("ENOSPC") ? ENOSPC : is("EIO") ? EIO : is("EACCES") ? EACCES : 0;
}

#define RUN(type, call, path, writes, real)        \
  do {                                             \
    int told_ = meet(call, path, writes);          \
    if (told_ > 0) { errno = told_; return (type)-1; } \
    type done_ = (real);                           \
    if (told_ == -1) end();                        \
    return done_;                                  \
  } while (0)

static int opens(int folder, const char *name, int flags, mode_t mode, const char *symbol) {
  char path[PATH_MAX];
  RUN(int, flags & O_CREAT ? "create" : "open", whole(folder, name, path), flags & O_CREAT ? 1 : 0,
      (int)syscall(SYS_openat, folder, name, flags, mode));
}

#define MODE(flags)                              \
  mode_t mode = 0;                               \
  if ((flags) & (O_CREAT | O_TMPFILE)) {         \
    va_list list;                                \
    va_start(list, flags);                       \
    mode = va_arg(list, mode_t);                 \
    va_end(list);                                \
  }

int open(const char *name, int flags, ...) { MODE(flags) return opens(AT_FDCWD, name, flags, mode, "open"); }
int open64(const char *name, int flags, ...) { MODE(flags) return opens(AT_FDCWD, name, flags | O_LARGEFILE, mode, "open"); }
int openat(int folder, const char *name, int flags, ...) { MODE(flags) return opens(folder, name, flags, mode, "open"); }
int openat64(int folder, const char *name, int flags, ...) { MODE(flags) return opens(folder, name, flags | O_LARGEFILE, mode, "open"); }

static ssize_t puts_(int fd, const void *bytes, size_t length, off_t place, int placed) {
  char path[PATH_MAX];
  int told = fd > 2 ? meet("write", of(fd, path), 2) : 0;
  if (told > 0) { errno = told; return -1; }
  if (told == -2 && length > 1) length /= 2;
  ssize_t done = placed ? syscall(SYS_pwrite64, fd, bytes, length, place) : syscall(SYS_write, fd, bytes, length);
  if (told == -1) end();
  return done;
}

ssize_t write(int fd, const void *bytes, size_t length) { return puts_(fd, bytes, length, 0, 0); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t place) { return puts_(fd, bytes, length, place, 1); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t place) { return puts_(fd, bytes, length, place, 1); }

ssize_t writev(int fd, const struct iovec *parts, int many) {
  char path[PATH_MAX];
  if (fd > 2 && is_under(of(fd, path)) && many > 0) {
    // The first part that holds anything: a write may take less than it was given.
    int part = 0;
    while (part < many - 1 && !parts[part].iov_len) part++;
    return puts_(fd, parts[part].iov_base, parts[part].iov_len, 0, 0);
  }
  return syscall(SYS_writev, fd, parts, many);
}

// As on a system that does not have it: whoever copies goes on with reads and writes.
ssize_t copy_file_range(int from, off_t *a, int to, off_t *b, size_t length, unsigned flags) { errno = ENOSYS; return -1; }
ssize_t sendfile(int to, int from, off_t *a, size_t length) { errno = ENOSYS; return -1; }
ssize_t sendfile64(int to, int from, off_t *a, size_t length) { errno = ENOSYS; return -1; }

int fsync(int fd) { char path[PATH_MAX]; RUN(int, "fsync", of(fd, path), 0, (int)syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { char path[PATH_MAX]; RUN(int, "fsync", of(fd, path), 0, (int)syscall(SYS_fdatasync, fd)); }
int ftruncate(int fd, off_t length) { char path[PATH_MAX]; RUN(int, "ftruncate", of(fd, path), 0, (int)syscall(SYS_ftruncate, fd, length)); }
int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }
int fchmod(int fd, mode_t mode) { char path[PATH_MAX]; RUN(int, "fchmod", of(fd, path), 0, (int)syscall(SYS_fchmod, fd, mode)); }

int renameat(int a, const char *from, int b, const char *to) {
  char path[PATH_MAX];
  RUN(int, "rename", whole(b, to, path), 0, (int)syscall(SYS_renameat2, a, from, b, to, 0));
}
int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }
int linkat(int a, const char *from, int b, const char *to, int flags) {
  char path[PATH_MAX];
  RUN(int, "link", whole(b, to, path), 1, (int)syscall(SYS_linkat, a, from, b, to, flags));
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
int symlink(const char *target, const char *name) {
  char path[PATH_MAX];
  RUN(int, "symlink", whole(AT_FDCWD, name, path), 1, (int)syscall(SYS_symlinkat, target, AT_FDCWD, name));
}
int mkdirat(int folder, const char *name, mode_t mode) {
  char path[PATH_MAX];
  RUN(int, "mkdir", whole(folder, name, path), 1, (int)syscall(SYS_mkdirat, folder, name, mode));
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }
int unlinkat(int folder, const char *name, int flags) {
  char path[PATH_MAX];
  RUN(int, "unlink", whole(folder, name, path), 0, (int)syscall(SYS_unlinkat, folder, name, flags));
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

static void *maps(void *place, size_t length, int rights, int flags, int fd, off_t offset) {
  char path[PATH_MAX];
  int told = fd >= 0 ? meet("mmap", of(fd, path), 0) : 0;
  if (told > 0) { errno = told; return MAP_FAILED; }
  void *done = (void *)syscall(SYS_mmap, place, length, rights, flags, fd, offset);
  if (told == -1) end();
  return done;
}
void *mmap(void *place, size_t length, int rights, int flags, int fd, off_t offset) { return maps(place, length, rights, flags, fd, offset); }
void *mmap64(void *place, size_t length, int rights, int flags, int fd, off_t offset) { return maps(place, length, rights, flags, fd, offset); }
