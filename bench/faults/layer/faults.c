// A layer between a program and its disk, loaded with LD_PRELOAD. What it does is read from the file named by
// FAULT_CONTROL: words parted by commas. For files below FAULT_FOLDER only:
//   full (writes fail: no space) | readonly (changes fail: read-only) | stall MS (syncs take that long) |
//   unsynced (syncs fail: the disk is at fault)
// and for the whole process:
//   clock MS (the time of day is that much off; what measures durations is not)
// Where FAULT_UNDO names a folder on the same disk, what a write replaces is noted there until the file is synced, and
// what a rename replaces until the folder is, so that a test can take back, after a kill, all that a power cut would have
// taken.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

static int real_open(const char *path, int flags, mode_t mode) {
  return REAL(int, "open64", const char *, int, ...)(path, flags, mode);
}

/** The part of a path below the folder; null where it lies elsewhere. */
static const char *below(const char *path) {
  const char *folder = getenv("FAULT_FOLDER");
  size_t length = folder ? strlen(folder) : 0;
  if (!folder || strncmp(path, folder, length) != 0) return NULL;
  return path[length] == '/' || path[length] == 0 ? path + length : NULL;
}

/** The file's path, where it lies in the folder. */
static int ours(int fd, char *path, size_t size) {
  if (!getenv("FAULT_FOLDER")) return 0;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, size - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return below(path) != NULL;
}

/** The number after a word of the control file, 0 where there is none; -1 where the word is missing. */
static int64_t order(const char *word) {
  char text[128];
  const char *control = getenv("FAULT_CONTROL");
  int fd = control ? real_open(control, O_RDONLY, 0) : -1;
  if (fd < 0) return -1;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  text[length > 0 ? length : 0] = 0;
  const char *found = strstr(text, word);
  return found ? atoll(found + strlen(word)) : -1;
}

static int read_only(void) { return order("readonly") >= 0 ? EROFS : 0; }

static int refusal(void) { return order("full") >= 0 ? ENOSPC : read_only(); }

// ---- the time of day

static int (*real_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find_clock(void) {
  real_clock = REAL(int, "clock_gettime", clockid_t, struct timespec *);
}

/** Seconds by which the clock is off; looked up anew every 50 ms. */
static time_t clock_offset(void) {
  static _Thread_local int64_t looked = 0;
  static _Thread_local time_t offset = 0;
  struct timespec now;
  real_clock(CLOCK_MONOTONIC, &now);
  int64_t ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
  if (ms - looked < 50) return offset;
  looked = ms;
  int64_t told = order("clock ");
  return offset = told == -1 ? 0 : told / 1000;
}

int clock_gettime(clockid_t which, struct timespec *now) {
  if (!real_clock) find_clock();
  int result = real_clock(which, now);
  if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE) now->tv_sec += clock_offset();
  return result;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  int result = clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return zone ? 0 : result;
}
time_t time(time_t *now) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now) *now = exact.tv_sec;
  return exact.tv_sec;
}

// ---- what a power cut takes

/** Name of the notes on a file's writes, within the folder of notes. */
static void note_name(const char *path, char *name, size_t size) {
  size_t length = snprintf(name, size, "writes");
  for (const char *at = below(path); *at && length < size - 1; at++) name[length++] = *at == '/' ? '%' : *at;
  name[length] = 0;
}

static int undo_file(const char *path, int flags) {
  const char *folder = getenv("FAULT_UNDO");
  if (!folder) return -1;
  char name[600], file[1200];
  note_name(path, name, sizeof name);
  snprintf(file, sizeof file, "%s/%s", folder, name);
  return real_open(file, flags | O_CREAT, 0600);
}

/** Notes go with the file, or with the folder that it lies in; `to` NULL: they are dropped. */
static void move_notes(const char *from, const char *to) {
  const char *folder = getenv("FAULT_UNDO");
  DIR *list = folder ? opendir(folder) : NULL;
  if (!list) return;
  char old[600], next[600], old_file[1200], next_file[1800];
  note_name(from, old, sizeof old);
  if (to) note_name(to, next, sizeof next);
  size_t length = strlen(old);
  for (struct dirent *entry; (entry = readdir(list));) {
    const char *rest = entry->d_name + length;
    if (strncmp(entry->d_name, old, length) != 0 || (*rest && *rest != '%')) continue;
    snprintf(old_file, sizeof old_file, "%s/%s", folder, entry->d_name);
    if (!to) REAL(int, "unlink", const char *)(old_file);
    else {
      snprintf(next_file, sizeof next_file, "%s/%s%s", folder, next, rest);
      REAL(int, "rename", const char *, const char *)(old_file, next_file);
    }
  }
  closedir(list);
}

/** Notes [offset, size of the file, bytes that come, bytes that were there] and the latter. */
static void note(int fd, const char *path, uint64_t offset, size_t count) {
  int undo = undo_file(path, O_WRONLY | O_APPEND);
  if (undo < 0) return;
  struct stat before;
  fstat(fd, &before);
  char *old = malloc(count ? count : 1);
  ssize_t (*get)(int, void *, size_t, off64_t) = REAL(ssize_t, "pread64", int, void *, size_t, off64_t);
  ssize_t length = get(fd, old, count, offset);
  if (length < 0) {
    // Open for writing only. Never so for a database: to close a second handle would drop all locks on its file.
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int reader = real_open(link, O_RDONLY, 0);
    length = get(reader, old, count, offset);
    if (reader >= 0) close(reader);
  }
  uint64_t head[4] = {offset, (uint64_t)before.st_size, count, length > 0 ? (uint64_t)length : 0};
  ssize_t (*put)(int, const void *, size_t) = REAL(ssize_t, "write", int, const void *, size_t);
  put(undo, head, sizeof head);
  if (length > 0) put(undo, old, length);
  free(old);
  close(undo);
}

/** Before a write: 0, or the error with which it shall fail. The lock is held until `after`. */
static int before(int fd, const char *path, off64_t offset, size_t count) {
  int error = refusal();
  if (error) return error;
  pthread_mutex_lock(&lock);
  int flags = fcntl(fd, F_GETFL);
  struct stat now;
  if (offset < 0 && flags & O_APPEND && fstat(fd, &now) == 0) offset = now.st_size;
  note(fd, path, offset < 0 ? (uint64_t)lseek64(fd, 0, SEEK_CUR) : (uint64_t)offset, count);
  return 0;
}

static void after(void) { pthread_mutex_unlock(&lock); }

#define GUARD(offset, count, call)                       \
  char path[512];                                        \
  if (!ours(fd, path, sizeof path)) return call;         \
  int error = before(fd, path, offset, count);           \
  if (error) {                                           \
    errno = error;                                       \
    return -1;                                           \
  }                                                      \
  ssize_t result = call;                                 \
  int told = errno;                                      \
  after();                                               \
  errno = told;                                          \
  return result

ssize_t write(int fd, const void *data, size_t count) {
  GUARD(-1, count, REAL(ssize_t, "write", int, const void *, size_t)(fd, data, count));
}
ssize_t pwrite64(int fd, const void *data, size_t count, off64_t at) {
  GUARD(at, count, REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t)(fd, data, count, at));
}
ssize_t pwrite(int fd, const void *data, size_t count, off_t at) { return pwrite64(fd, data, count, at); }

static size_t bytes_of(const struct iovec *parts, int count) {
  size_t sum = 0;
  for (int i = 0; i < count; i++) sum += parts[i].iov_len;
  return sum;
}
ssize_t writev(int fd, const struct iovec *parts, int n) {
  GUARD(-1, bytes_of(parts, n), REAL(ssize_t, "writev", int, const struct iovec *, int)(fd, parts, n));
}
ssize_t pwritev64(int fd, const struct iovec *parts, int n, off64_t at) {
  GUARD(at, bytes_of(parts, n), REAL(ssize_t, "pwritev64", int, const struct iovec *, int, off64_t)(fd, parts, n, at));
}
ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t at) { return pwritev64(fd, parts, n, at); }
ssize_t sendfile64(int fd, int from, off64_t *at, size_t count) {
  GUARD(-1, count, REAL(ssize_t, "sendfile64", int, int, off64_t *, size_t)(fd, from, at, count));
}
ssize_t sendfile(int fd, int from, off_t *at, size_t count) { return sendfile64(fd, from, (off64_t *)at, count); }
ssize_t copy_file_range(int from, off64_t *in, int fd, off64_t *out, size_t count, unsigned flags) {
  char path[512];
  if (!ours(fd, path, sizeof path))
    return REAL(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned)(from, in, fd, out, count, flags);
  // The caller then writes.
  errno = ENOSYS;
  return -1;
}

int ftruncate64(int fd, off64_t size) {
  char path[512];
  struct stat now;
  if (ours(fd, path, sizeof path)) {
    if ((errno = read_only())) return -1;
    pthread_mutex_lock(&lock);
    fstat(fd, &now);
    note(fd, path, now.st_size > size ? size : now.st_size, now.st_size > size ? now.st_size - size : 0);
    pthread_mutex_unlock(&lock);
  }
  return REAL(int, "ftruncate64", int, off64_t)(fd, size);
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

// ---- open, rename, remove

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (flags & (O_WRONLY | O_RDWR | O_CREAT) && below(path) && (errno = read_only())) return -1;
  return real_open(path, flags, mode);
}
int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open64(path, flags, mode);
}

/** What was written to a file goes with its name; the rename itself is noted until its folder is synced. */
int rename(const char *from, const char *to) {
  const char *folder = getenv("FAULT_UNDO");
  int (*move)(const char *, const char *) = REAL(int, "rename", const char *, const char *);
  if (!below(from) || !below(to)) return move(from, to);
  if ((errno = read_only())) return -1;
  if (!folder) return move(from, to);
  pthread_mutex_lock(&lock);
  char name[600], saved[640], text[2048];
  struct timespec now;
  real_clock(CLOCK_MONOTONIC, &now);
  // Sorted by name they come in their order.
  snprintf(name, sizeof name, "%s/rename.%012ld%09ld", folder, (long)now.tv_sec, now.tv_nsec);
  snprintf(saved, sizeof saved, "%s.old", name);
  if (link(to, saved) != 0) saved[0] = 0;
  int result = move(from, to);
  int told = errno;
  if (result == 0) move_notes(from, to);
  int fd = result == 0 ? real_open(name, O_WRONLY | O_CREAT, 0600) : -1;
  if (fd >= 0) {
    int length = snprintf(text, sizeof text, "%s\n%s\n%s", from, to, saved);
    REAL(ssize_t, "write", int, const void *, size_t)(fd, text, length);
    close(fd);
  }
  pthread_mutex_unlock(&lock);
  errno = told;
  return result;
}
int unlink(const char *path) {
  if (!below(path)) return REAL(int, "unlink", const char *)(path);
  if ((errno = read_only())) return -1;
  pthread_mutex_lock(&lock);
  move_notes(path, NULL);
  int result = REAL(int, "unlink", const char *)(path);
  int told = errno;
  pthread_mutex_unlock(&lock);
  errno = told;
  return result;
}
int mkdir(const char *path, mode_t mode) {
  if (below(path) && (errno = read_only())) return -1;
  return REAL(int, "mkdir", const char *, mode_t)(path, mode);
}

/** Renames into a folder that was synced can no longer be taken back. */
static void keep_renames(const char *path) {
  const char *folder = getenv("FAULT_UNDO");
  DIR *list = folder ? opendir(folder) : NULL;
  if (!list) return;
  for (struct dirent *entry; (entry = readdir(list));) {
    if (strncmp(entry->d_name, "rename.", 7) != 0 || strstr(entry->d_name, ".old")) continue;
    char name[1024], text[2048];
    snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
    int fd = real_open(name, O_RDONLY, 0);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[length > 0 ? length : 0] = 0;
    char *to = strchr(text, '\n');
    char *end = to ? strchr(to + 1, '\n') : NULL;
    if (!end) continue;
    *end = 0;
    char *slash = strrchr(to + 1, '/');
    if (!slash) continue;
    *slash = 0;
    if (strcmp(to + 1, path) != 0) continue;
    int (*drop)(const char *) = REAL(int, "unlink", const char *);
    drop(name);
    if (end[1]) drop(end + 1);
  }
  closedir(list);
}

static int synced(int fd, const char *name) {
  char path[512];
  int mine = ours(fd, path, sizeof path);
  int64_t ms = mine ? order("stall") : 0;
  if (ms > 0) usleep((useconds_t)ms * 1000);
  if (mine && order("unsynced") >= 0) {
    errno = EIO;
    return -1;
  }
  int result = REAL(int, name, int)(fd);
  if (!mine || result != 0) return result;
  struct stat about;
  pthread_mutex_lock(&lock);
  if (fstat(fd, &about) == 0 && S_ISDIR(about.st_mode)) keep_renames(path);
  else {
    int undo = undo_file(path, O_WRONLY | O_TRUNC);
    if (undo >= 0) close(undo);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

int fsync(int fd) { return synced(fd, "fsync"); }
int fdatasync(int fd) { return synced(fd, "fdatasync"); }
