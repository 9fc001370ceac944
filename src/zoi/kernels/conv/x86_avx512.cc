#include "../simd/avx512.h"

#include "../simd/math.h"
#include "../simd/tile.h"
#include "simd.h"
#include "winograd.h"

namespace zoi {
namespace avx512 {

static const ConvProblem& of(const void* problem) { return *static_cast<const ConvProblem*>(problem); }
static const float* floats(const void* data) { return static_cast<const float*>(data); }

static void run(const void* args, Lane lane) { conv(*static_cast<const ConvArgs*>(args), lane); }
static bool supports(const void*) { return true; }
static int64_t slices(const void* p) { return conv_slices(of(p)); }
static int64_t scratch(const void* p) { return conv_scratch(of(p), shape_of(of(p))); }
static int64_t packed_bytes(const void* p, int operand) { return conv_packed_bytes(of(p), operand); }
static void pack(const void* p, int operand, const void* plain, void* packed) {
  conv_pack(of(p), operand, floats(plain), static_cast<float*>(packed));
}
static double cost(const void* p) { return conv_cost(of(p)); }

template <int F>
static void run_winograd(const void* args, Lane lane) {
  winograd<F>(*static_cast<const ConvArgs*>(args), lane);
}
static bool supports_winograd(const void* p) { return winograd_applies(of(p)); }
template <int F>
static int64_t slices_winograd(const void* p) {
  return winograd_slices<F>(of(p));
}
template <int F>
static int64_t scratch_winograd(const void* p) {
  return winograd_scratch<F>(of(p));
}
template <int F>
static int64_t packed_bytes_winograd(const void* p, int operand) {
  return operand == kConvW ? winograd_packed_bytes<F>(of(p)) : 0;
}
template <int F>
static void pack_winograd(const void* p, int, const void* plain, void* packed) {
  winograd_pack<F>(of(p), floats(plain), static_cast<float*>(packed));
}
template <int F>
static double cost_winograd(const void* p) {
  return winograd_cost<F>(of(p));
}
template <int F>
static constexpr Kernel winograd_record(const char* name) {
  return {
      .name = name,
      .arch = Arch::avx512,
      .run = run_winograd<F>,
      .supports = supports_winograd,
      .slices = slices_winograd<F>,
      .scratch = scratch_winograd<F>,
      .packed_bytes = packed_bytes_winograd<F>,
      .pack = pack_winograd<F>,
      .cost = cost_winograd<F>,
      .exact = false,
  };
}

}  // namespace avx512

extern constinit const Kernel conv_f32_avx512_winograd4 = avx512::winograd_record<4>("conv_f32_avx512_winograd4");
extern constinit const Kernel conv_f32_avx512_winograd2 = avx512::winograd_record<2>("conv_f32_avx512_winograd2");
extern const Kernel conv_f32_avx512 = {
    .name = "conv_f32_avx512",
    .arch = Arch::avx512,
    .run = avx512::run,
    .supports = avx512::supports,
    .slices = avx512::slices,
    .scratch = avx512::scratch,
    .packed_bytes = avx512::packed_bytes,
    .pack = avx512::pack,
    .cost = avx512::cost,
    .exact = false,
};

}  // namespace zoi
