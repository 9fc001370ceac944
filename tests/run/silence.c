/* silence MODEL.zoi LANES [TASK]: makes a session, then forbids every system call and counts allocations while it runs.
 * Exits with 0 if there were none and every run gave the same bits; a system call kills it. TASK may be
 *   memory   compares what was mapped with what the plan states, instead
 *   float    checks that the host's rounding and denormal modes neither reach the kernels nor get lost
 *   syscall, malloc   does what must be caught, to show that it is */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>
#include <zoi.h>

enum { RUNS = 200, EXIT_UNAVAILABLE = 77 };

static volatile long allocations;
static volatile size_t mapped;

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
void* malloc(size_t n) { return ++allocations, __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return ++allocations, __libc_calloc(n, size); }
void* realloc(void* p, size_t n) { return ++allocations, __libc_realloc(p, n); }
void* aligned_alloc(size_t alignment, size_t n) { return ++allocations, __libc_memalign(alignment, n); }
int posix_memalign(void** p, size_t alignment, size_t n) {
  return ++allocations, (*p = __libc_memalign(alignment, n)) ? 0 : 12;
}
void free(void* p) { ++allocations, __libc_free(p); }
void* mmap(void* at, size_t bytes, int protection, int flags, int fd, long offset) {
  ++allocations;
  mapped += bytes;
  return (void*)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}
int munmap(void* at, size_t bytes) { return ++allocations, (int)syscall(SYS_munmap, at, bytes); }

static int fail(const char* what) {
  fprintf(stderr, "%s; %s\n", what, zoi_last_error());
  return 1;
}

/* From here on only the end of the process is allowed, in every thread. */
static int forbid_system_calls(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static int check_float(zoi_session* s, const float* y, size_t bytes, const void* wanted) {
  const unsigned modes[] = {0x1f80u, 0x3f80u, 0x5f80u, 0x9fc0u}; /* nearest, down, up, flush denormals */
  for (size_t i = 0; i < 4; ++i) {
    _mm_setcsr(modes[i]);
    const int result = zoi_session_run(s);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(0x1f80u);
    if (result != 0) return fail("run");
    if ((after & ~0x3fu) != modes[i]) return fail("the mode of the host was changed");
    if (memcmp(y, wanted, bytes) != 0) return fail("the mode of the host reached the kernels");
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return fail("usage: silence MODEL.zoi LANES [TASK]");
  const char* task = argc > 3 ? argv[3] : "";
  zoi_plan* plan = zoi_plan_load(argv[1], NULL);
  if (!plan) return fail("load");
  zoi_options options;
  memset(&options, 0, sizeof options);
  options.lanes = atoi(argv[2]);
  options.armed = 1;
  const zoi_memory stated = zoi_plan_memory(plan, options.lanes);
  zoi_session* s = zoi_session_create(plan, &options);
  if (!s) return fail("create");
  if (zoi_session_lanes(s) != options.lanes) return EXIT_UNAVAILABLE;
  if (strcmp(task, "memory") == 0) {
    struct stat file;
    if (stat(argv[1], &file) != 0) return fail("stat");
    const zoi_memory made = zoi_session_memory(s);
    if (memcmp(&stated, &made, sizeof made) != 0) return fail("the session allocated something else than stated");
    if ((size_t)stated.total != mapped - (size_t)file.st_size) return fail("more or less was mapped than stated");
    return 0;
  }

  zoi_tensor in, out;
  if (zoi_plan_input(plan, 0, &in) != 0 || zoi_plan_output(plan, 0, &out) != 0) return fail("tensors");
  float* x = zoi_input_data(s, 0);
  const float* y = zoi_output_data(s, 0);
  for (size_t i = 0; i < in.bytes / sizeof *x; ++i) x[i] = (float)(i % 13) / 7 - 0.3f;
  if (zoi_session_run(s) != 0) return fail("run");
  void* wanted = malloc(out.bytes);
  memcpy(wanted, y, out.bytes);
  if (strcmp(task, "float") == 0) return check_float(s, y, out.bytes, wanted);

  if (forbid_system_calls() != 0) return EXIT_UNAVAILABLE;
  const long before = allocations;
  if (strcmp(task, "syscall") == 0) syscall(SYS_getpid);
  if (strcmp(task, "malloc") == 0) free(malloc(1));
  for (int i = 0; i < RUNS; ++i) {
    if (zoi_session_run(s) != 0) _exit(3);
    if (memcmp(y, wanted, out.bytes) != 0) _exit(4);
  }
  _exit(allocations == before ? 0 : 5);
}
