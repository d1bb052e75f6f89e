// A layer between a program and its disk, loaded with LD_PRELOAD. What it does is read from the file named by
// FAULT_CONTROL, for files below FAULT_FOLDER only:
//   none | full (writes fail: no space) | readonly (writes fail: read-only) | stall MS (syncs take that long)
// Where FAULT_UNDO names a folder, what a write replaces is noted there until the file is synced, so that a test
// can take back, after a kill, all that a power cut would have taken.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

/** The file's path, where it lies in the folder. */
static int ours(int fd, char *path, size_t size) {
  const char *folder = getenv("FAULT_FOLDER");
  if (!folder) return 0;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, size - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return strncmp(path, folder, strlen(folder)) == 0;
}

static void order(char *text, size_t size) {
  text[0] = 0;
  const char *control = getenv("FAULT_CONTROL");
  int fd = control ? REAL(int, "open64", const char *, int, ...)(control, O_RDONLY) : -1;
  if (fd < 0) return;
  ssize_t length = read(fd, text, size - 1);
  text[length > 0 ? length : 0] = 0;
  close(fd);
}

static int refuse(void) {
  char text[64];
  order(text, sizeof text);
  if (strncmp(text, "full", 4) == 0) return ENOSPC;
  if (strncmp(text, "readonly", 8) == 0) return EROFS;
  return 0;
}

static int undo_file(const char *path, int flags) {
  const char *folder = getenv("FAULT_UNDO");
  if (!folder) return -1;
  char name[512];
  snprintf(name, sizeof name, "%s/%s", folder, strrchr(path, '/') + 1);
  return REAL(int, "open64", const char *, int, ...)(name, flags | O_CREAT, 0600);
}

/** Notes [offset, size of the file, length] and the bytes that will be replaced. */
static void note(int fd, const char *path, uint64_t offset, size_t count) {
  int undo = undo_file(path, O_WRONLY | O_APPEND);
  if (undo < 0) return;
  struct stat before;
  fstat(fd, &before);
  char *old = malloc(count ? count : 1);
  ssize_t length = REAL(ssize_t, "pread64", int, void *, size_t, off64_t)(fd, old, count, offset);
  uint64_t head[3] = {offset, (uint64_t)before.st_size, length > 0 ? (uint64_t)length : 0};
  ssize_t (*put)(int, const void *, size_t) = REAL(ssize_t, "write", int, const void *, size_t);
  put(undo, head, sizeof head);
  if (length > 0) put(undo, old, length);
  free(old);
  close(undo);
}

static ssize_t guarded(int fd, const void *data, size_t count, off64_t offset, int at) {
  char path[512];
  ssize_t (*write_at)(int, const void *, size_t, off64_t) =
      REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
  ssize_t (*write_on)(int, const void *, size_t) = REAL(ssize_t, "write", int, const void *, size_t);
  if (!ours(fd, path, sizeof path)) return at ? write_at(fd, data, count, offset) : write_on(fd, data, count);
  int error = refuse();
  if (error) {
    errno = error;
    return -1;
  }
  pthread_mutex_lock(&lock);
  note(fd, path, at ? (uint64_t)offset : (uint64_t)lseek64(fd, 0, SEEK_CUR), count);
  ssize_t result = at ? write_at(fd, data, count, offset) : write_on(fd, data, count);
  pthread_mutex_unlock(&lock);
  return result;
}

ssize_t write(int fd, const void *data, size_t count) { return guarded(fd, data, count, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t count, off_t offset) { return guarded(fd, data, count, offset, 1); }
ssize_t pwrite64(int fd, const void *data, size_t count, off64_t offset) { return guarded(fd, data, count, offset, 1); }

static int truncated(int fd, off64_t size) {
  char path[512];
  if (ours(fd, path, sizeof path)) {
    struct stat before;
    fstat(fd, &before);
    if (before.st_size > size) note(fd, path, size, before.st_size - size);
  }
  return REAL(int, "ftruncate64", int, off64_t)(fd, size);
}

int ftruncate(int fd, off_t size) { return truncated(fd, size); }
int ftruncate64(int fd, off64_t size) { return truncated(fd, size); }

static int synced(int fd, const char *name) {
  char path[512];
  int mine = ours(fd, path, sizeof path);
  if (mine) {
    char text[64];
    int ms = 0;
    order(text, sizeof text);
    if (sscanf(text, "stall %d", &ms) == 1) usleep((useconds_t)ms * 1000);
  }
  int result = REAL(int, name, int)(fd);
  if (mine && result == 0) {
    int undo = undo_file(path, O_WRONLY | O_TRUNC);
    if (undo >= 0) close(undo);
  }
  return result;
}

int fsync(int fd) { return synced(fd, "fsync"); }
int fdatasync(int fd) { return synced(fd, "fdatasync"); }
