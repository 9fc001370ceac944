// pool: maximum or average over windows of channels-last images, float32. Padding never takes part in a maximum.
// Average divides by the window's pixels inside the image, or with count_include_pad by those inside the padded image
// [-pt, ih+pb) x [-pl, iw+pr). A maximum is NaN if any element is. A window without a
// pixel gives -inf as a maximum and 0 as an average.
#pragma once

#include "../kernel.h"

namespace zoi {

enum PoolMode : int64_t { kPoolMax = 0, kPoolAverage = 1 };
// clang-format off
#define ZOI_POOL_FIELDS(I, A, R, S) \
  I(mode) \
  I(n) \
  I(ih) \
  I(iw) \
  I(c) \
  I(oh) \
  I(ow) \
  I(kh) \
  I(kw) \
  I(sh) I(sw) I(dh) I(dw) I(pt) I(pl) I(pb) I(pr) I(count_include_pad) I(x_image) I(x_row) I(x_pixel) I(y_image) \
      I(y_row) I(y_pixel)
// clang-format on
ZOI_PROBLEM(PoolProblem, ZOI_POOL_FIELDS)

enum PoolOperand { kPoolX, kPoolY, kPoolOperands };
struct PoolArgs {
  const float* x;
  float* y;
  PoolProblem problem;
};

#define ZOI_POOL_KERNELS(K) K(pool_f32_avx512) K(pool_f32_avx2) K(pool_f32_generic)
ZOI_POOL_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
