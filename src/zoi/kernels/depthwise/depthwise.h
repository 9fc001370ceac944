// depthwise: one filter per channel over channels-last images, float32.
//   y[n,oy,ox,c] = act(sum_{ky,kx} x[n, oy*sh+ky*dh-pt, ox*sw+kx*dw-pl, c] w[c,0,ky,kx] + bias[c])
#pragma once

#include "../activation.h"

namespace zoi {

// clang-format off
#define ZOI_DEPTHWISE_FIELDS(I, A, R, S) \
  I(n) \
  I(ih) \
  I(iw) \
  I(c) \
  I(oh) \
  I(ow) \
  I(kh) \
  I(kw) \
  I(sh) \
  I(sw) I(dh) I(dw) I(pt) I(pl) I(x_image) I(x_row) I(x_pixel) I(y_image) I(y_row) I(y_pixel) I(act) R(act_p0) \
      R(act_p1)
// clang-format on
ZOI_PROBLEM(DepthwiseProblem, ZOI_DEPTHWISE_FIELDS)

enum DepthwiseOperand { kDepthwiseX, kDepthwiseW, kDepthwiseBias, kDepthwiseY, kDepthwiseOperands };
struct DepthwiseArgs {
  const float* x;
  const float* w;     // plain: [c, 1, kh, kw]
  const float* bias;  // [c] or null
  float* y;
  DepthwiseProblem problem;
};

#define ZOI_DEPTHWISE_KERNELS(K) K(depthwise_f32_avx512) K(depthwise_f32_avx2) K(depthwise_f32_generic)
ZOI_DEPTHWISE_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
