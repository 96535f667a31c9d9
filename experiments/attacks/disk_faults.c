/* System calls of durable files, with a fault planted or with a record of what a loss of power would leave.

     cc -shared -fPIC -O1 -o disk_faults.so disk_faults.c -ldl -lpthread
     LD_PRELOAD=disk_faults.so EMBODIED_MEM_PLANTED=left python ...

   The attacks of this folder must find each fault (planted.py lists them); tests/memory/kill_zygote.py kills itself
   before a call by number (`arm`). Beside a folder F that has a folder
   F.durable, every fsync is recorded there: the bytes of a file under its inode, the names of F in `names`. That is the
   least that a loss of power leaves: nothing is on the disk before it was synced. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(type, name, ...) \
  static type (*real)(__VA_ARGS__); \
  if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int is_planted(const char* fault) {
  const char* name = getenv("EMBODIED_MEM_PLANTED");
  return name && strcmp(name, fault) == 0;
}

/* Whether an attack made the path; all others are left alone. */
static int is_attacked(const char* path) { return strstr(path, "/attack-") != NULL; }

static int path_of(int file, char* path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, size - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_attacked(path);
}

static int has_ending(const char* path, const char* ending) {
  const size_t length = strlen(path), own = strlen(ending);
  return length >= own && strcmp(path + length - own, ending) == 0;
}

/* After `arm(n)` the process is killed before its n-th call, from 0, that changes an attacked file or folder. */

static int armed;
static long left;

void arm(long n) { armed = 1, left = n; }

static void step(void) {
  if (armed && left-- == 0) kill(getpid(), SIGKILL);
}

static ssize_t real_write(int file, const void* bytes, size_t count) {
  REAL(ssize_t, "write", int, const void*, size_t);
  return real(file, bytes, count);
}

static int real_rename(const char* from, const char* to) {
  REAL(int, "rename", const char*, const char*);
  return real(from, to);
}

/* Recording what is durable. */

static void keep(int file) {
  char path[4096], shadow[4400], partial[4600], target[4500];
  struct stat about;
  if (!path_of(file, path, sizeof path) || fstat(file, &about) != 0) return;
  const int is_folder = S_ISDIR(about.st_mode);
  snprintf(shadow, sizeof shadow, "%s", path);
  if (!is_folder && strrchr(shadow, '/')) *strrchr(shadow, '/') = 0;
  strncat(shadow, ".durable", sizeof shadow - strlen(shadow) - 1);
  if (access(shadow, W_OK) != 0) return;
  if (is_folder) snprintf(target, sizeof target, "%s/names", shadow);
  else snprintf(target, sizeof target, "%s/%llu", shadow, (unsigned long long)about.st_ino);
  snprintf(partial, sizeof partial, "%s.%d", target, (int)syscall(SYS_gettid));
  const int out = open(partial, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (is_folder) {
    DIR* folder = opendir(path);
    for (struct dirent* entry; folder && (entry = readdir(folder));) {
      char line[600];
      const int length = snprintf(line, sizeof line, "%llu %s\n", (unsigned long long)entry->d_ino, entry->d_name);
      if (entry->d_type == DT_REG) real_write(out, line, (size_t)length);
    }
    if (folder) closedir(folder);
  } else {
    char bytes[1 << 14];
    const int in = open(path, O_RDONLY);
    for (ssize_t count; (count = read(in, bytes, sizeof bytes)) > 0;) real_write(out, bytes, (size_t)count);
    close(in);
  }
  close(out);
  real_rename(partial, target);
}

static int syncs;

int num_syncs(void) { return syncs; }

static int synced(int file, int (*call)(int)) {
  char path[4096];
  if (path_of(file, path, sizeof path)) ++syncs, step();
  if (is_planted("unsynced") && path_of(file, path, sizeof path)) return 0;
  const int result = call(file);
  if (result == 0) keep(file);
  return result;
}

int fsync(int file) {
  REAL(int, "fsync", int);
  return synced(file, real);
}

int fdatasync(int file) {
  REAL(int, "fdatasync", int);
  return synced(file, real);
}

/* Planted faults. */

typedef struct Late {
  int file;
  size_t count;
  off_t at;
  struct Late* next;
  char bytes[];
} Late;
static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;
static Late *late_first, **late_last = &late_first;
static pid_t late_process;

static ssize_t real_pwrite(int file, const void* bytes, size_t count, off_t at) {
  REAL(ssize_t, "pwrite", int, const void*, size_t, off_t);
  return real(file, bytes, count, at);
}

static void* write_late(void* unused) {
  for (;;) {
    usleep(2000);
    pthread_mutex_lock(&late_lock);
    Late* late = late_first;
    if (late && !(late_first = late->next)) late_last = &late_first;
    pthread_mutex_unlock(&late_lock);
    if (late) real_pwrite(late->file, late->bytes, late->count, late->at);
    free(late);
  }
  return unused;
}

/* SQLite writes with pwrite64, Python with write. */
ssize_t pwrite64(int file, const void* bytes, size_t count, off_t at) {
  char path[4096];
  if (armed && path_of(file, path, sizeof path)) step();
  const int on_main_thread = syscall(SYS_gettid) == getpid();
  if ((is_planted("early") || (is_planted("early_threads") && !on_main_thread)) && path_of(file, path, sizeof path) &&
      has_ending(path, "-wal")) {
    Late* late = malloc(sizeof *late + count);
    late->file = file, late->count = count, late->at = at, late->next = NULL;
    memcpy(late->bytes, bytes, count);
    pthread_mutex_lock(&late_lock);
    *late_last = late, late_last = &late->next;
    if (late_process != getpid()) {
      pthread_t thread;
      late_process = getpid();
      pthread_create(&thread, NULL, write_late, NULL);
    }
    pthread_mutex_unlock(&late_lock);
    return (ssize_t)count;
  }
  const ssize_t result = real_pwrite(file, bytes, count, at);
  if ((result < 0 ? errno == EFBIG || errno == ENOSPC : (size_t)result < count) && is_planted("swallowed") &&
      path_of(file, path, sizeof path))
    return (ssize_t)count;
  return result;
}

ssize_t write(int file, const void* bytes, size_t count) {
  char path[4096];
  if (armed && path_of(file, path, sizeof path)) step();
  const ssize_t result = real_write(file, bytes, count);
  if (result < 0 && (errno == EFBIG || errno == ENOSPC) && is_planted("swallowed") &&
      path_of(file, path, sizeof path))
    return (ssize_t)count;
  return result;
}

/* The WAL keeps what was forgotten. */
int ftruncate64(int file, off_t size) {
  REAL(int, "ftruncate", int, off_t);
  char path[4096];
  if (armed && path_of(file, path, sizeof path)) step();
  if (is_planted("left") && path_of(file, path, sizeof path) && has_ending(path, "-wal")) return 0;
  return real(file, size);
}

int unlink(const char* path) {
  REAL(int, "unlink", const char*);
  if (is_attacked(path)) step();
  return real(path);
}

int rename(const char* from, const char* to) {
  REAL(int, "unlink", const char*);
  if (is_attacked(to)) step();
  if (!is_planted("torn") || !is_attacked(to)) return real_rename(from, to);
  char bytes[8192];
  const int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  for (ssize_t count; (count = read(in, bytes, sizeof bytes)) > 0; usleep(20)) real_write(out, bytes, (size_t)count);
  close(in);
  close(out);
  return real(from);
}

int flock(int file, int operation) {
  REAL(int, "flock", int, int);
  char path[4096];
  if (is_planted("unlocked") && path_of(file, path, sizeof path)) return 0;
  return real(file, operation);
}
