/* Loads a .zoi file, fills every input with 0, 1, 2, ..., runs it and prints the outputs: main MODEL.zoi [RUNS]
 * Only float32 inputs and outputs are shown. */
#include <stdio.h>
#include <stdlib.h>

#include <zoi.h>

static int fail(void) {
  fprintf(stderr, "%s\n", zoi_last_error());
  return 1;
}

int main(int argc, char** argv) {
  zoi_plan* plan = zoi_plan_load(argc > 1 ? argv[1] : "model.zoi", NULL);
  if (!plan) return fail();
  zoi_session* session = zoi_session_create(plan, NULL);
  if (!session) return fail();
  zoi_tensor t;
  for (size_t i = 0; zoi_plan_input(plan, i, &t) == 0; ++i) {
    float* x = zoi_input_data(session, i);
    for (size_t j = 0; t.dtype == ZOI_FLOAT32 && j < t.bytes / sizeof *x; ++j) x[j] = (float)j;
  }
  for (long runs = argc > 2 ? atol(argv[2]) : 1; runs > 0; --runs)
    if (zoi_session_run(session) != 0) return fail();
  for (size_t i = 0; zoi_plan_output(plan, i, &t) == 0; ++i) {
    const float* y = zoi_output_data(session, i);
    printf("%s", t.name);
    for (size_t j = 0; t.dtype == ZOI_FLOAT32 && j < t.bytes / sizeof *y; ++j) printf(" %.9g", y[j]);
    printf("\n");
  }
  zoi_session_free(session);
  zoi_plan_free(plan);
  return 0;
}
