/* zoi from C: load a .zoi file and run it, without Python.
 *
 *   zoi_plan* plan = zoi_plan_load("model.zoi", NULL);
 *   zoi_session* session = zoi_session_create(plan, NULL);
 *   float* x = zoi_input_data(session, 0);
 *   ... write x ...
 *   if (zoi_session_run(session) != 0) fprintf(stderr, "%s\n", zoi_last_error());
 *   const float* y = zoi_output_data(session, 0);
 *
 * Functions that return a pointer return NULL, and those that return an int return -1, when something is wrong;
 * zoi_last_error() then says what. No function throws or ends the program.
 *
 * Threads: a plan may be used by any number of threads at once, and have any number of sessions. A session is used by
 * one thread at a time. zoi_session_run() makes no system call, takes no lock and allocates nothing with one lane, or
 * with more that are armed. */
#ifndef ZOI_H_
#define ZOI_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ZOI_API __attribute__((visibility("default")))
#else
#define ZOI_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zoi_plan zoi_plan;
typedef struct zoi_session zoi_session;

/* Element types. */
typedef enum {
  ZOI_FLOAT32 = 0,
  ZOI_FLOAT64,
  ZOI_FLOAT16,
  ZOI_BFLOAT16,
  ZOI_INT8,
  ZOI_UINT8,
  ZOI_INT16,
  ZOI_UINT16,
  ZOI_INT32,
  ZOI_UINT32,
  ZOI_INT64,
  ZOI_UINT64,
  ZOI_BOOL /* one byte */
} zoi_dtype;

/* An input or output: contiguous and row-major. `name` and `shape` live as long as the plan. */
typedef struct {
  const char* name;
  zoi_dtype dtype;
  size_t ndim;
  const int64_t* shape;
  size_t bytes;
} zoi_tensor;

/* Exact bytes, known before a session is made. */
typedef struct {
  int64_t weights;     /* packed weights, shared by the plan's sessions */
  int64_t mapped;      /* weights used where the file is mapped; not part of the total */
  int64_t arena;       /* inputs, outputs and intermediates of one session */
  int64_t scratch;     /* of one session, all lanes */
  int64_t bookkeeping; /* calls and arguments of one session */
  int64_t total;       /* weights + arena + scratch + bookkeeping */
} zoi_memory;

/* What zoi_session_create may be told. Fill it with zeros for the defaults. */
typedef struct {
  const int* cores;    /* cores to pin the lanes to, the calling thread's first; NULL: nothing is pinned */
  size_t core_count;   /* how many */
  int lanes;           /* threads that share the work, the caller among them; 0: one for each core given, or one */
  int armed;           /* keep the other lanes spinning between runs: quicker, at the price of busy cores */
  int lock;            /* lock the arena in memory */
  int huge_pages;      /* ask for huge pages for the arena */
  int flush_denormals; /* treat denormal numbers as zero while running */
} zoi_options;

/* What went wrong in this thread's last call that failed. Never NULL. */
ZOI_API const char* zoi_last_error(void);
/* The version of this library, "major.minor.patch". */
ZOI_API const char* zoi_version(void);

/* Loads a .zoi file and chooses kernels. `arch` is "generic", "avx2" or "avx512"; NULL: the best of this machine. */
ZOI_API zoi_plan* zoi_plan_load(const char* path, const char* arch);
/* Sessions stay usable after their plan has been freed. NULL is allowed. */
ZOI_API void zoi_plan_free(zoi_plan* plan);
ZOI_API const char* zoi_plan_name(const zoi_plan* plan);
ZOI_API size_t zoi_plan_input_count(const zoi_plan* plan);
ZOI_API size_t zoi_plan_output_count(const zoi_plan* plan);
/* 0, or -1 if there is no such input or output. */
ZOI_API int zoi_plan_input(const zoi_plan* plan, size_t index, zoi_tensor* result);
ZOI_API int zoi_plan_output(const zoi_plan* plan, size_t index, zoi_tensor* result);
/* The index of a name, or -1. */
ZOI_API int zoi_plan_find_input(const zoi_plan* plan, const char* name);
ZOI_API int zoi_plan_find_output(const zoi_plan* plan, const char* name);
ZOI_API zoi_memory zoi_plan_memory(const zoi_plan* plan, int lanes);

/* Allocates everything that running needs. `options` may be NULL. */
ZOI_API zoi_session* zoi_session_create(const zoi_plan* plan, const zoi_options* options);
/* NULL is allowed. */
ZOI_API void zoi_session_free(zoi_session* session);
/* Runs the plan once on what the inputs hold. */
ZOI_API int zoi_session_run(zoi_session* session);
/* Zeroes every state. */
ZOI_API void zoi_session_reset(zoi_session* session);
ZOI_API int zoi_session_lanes(const zoi_session* session);
/* What was allocated. */
ZOI_API zoi_memory zoi_session_memory(const zoi_session* session);
/* 64-byte aligned. The pointers stay the same for the life of the session, except those of a state: ask again after
 * each run. Outputs are overwritten by the next run. NULL if there is no such input or output. */
ZOI_API void* zoi_input_data(zoi_session* session, size_t index);
ZOI_API const void* zoi_output_data(const zoi_session* session, size_t index);

#ifdef __cplusplus
}
#endif

#endif /* ZOI_H_ */
