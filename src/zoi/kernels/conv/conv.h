// conv: 2-D convolution over channels-last images, float32, dense or grouped.
//   y[n,oy,ox,g*oc+o] = act(sum_{ky,kx,c} x[n, oy*sh+ky*dh-pt, ox*sw+kx*dw-pl, g*ic+c] w[g*oc+o,c,ky,kx] + bias +
//   residual)
// Outside the image x is 0. `ic` and `oc` are channels of one group. With residual_after the residual is added after
// act.
#pragma once

#include "../activation.h"

namespace zoi {

// *_image, *_row, *_pixel: elements between images, rows and pixels of x, y and the residual; channels are contiguous.
// clang-format off
#define ZOI_CONV_FIELDS(I, A, R, S) \
  I(n) \
  I(ih) \
  I(iw) \
  I(ic) \
  I(oh) \
  I(ow) \
  I(oc) \
  I(groups) \
  I(kh) \
  I(kw) I(sh) I(sw) I(dh) I(dw) I(pt) I(pl) I(x_image) I(x_row) I(x_pixel) I(y_image) I(y_row) I(y_pixel) I(r_image) \
      I(r_row) I(r_pixel) I(residual_after) I(act) R(act_p0) R(act_p1)
// clang-format on
ZOI_PROBLEM(ConvProblem, ZOI_CONV_FIELDS)

enum ConvOperand { kConvX, kConvW, kConvBias, kConvResidual, kConvY, kConvOperands };
struct ConvArgs {
  const float* x;
  const float* w;         // plain: [groups*oc, ic, kh, kw]; packed as the kernel's record says
  const float* bias;      // [groups*oc] or null
  const float* residual;  // or null
  float* y;
  ConvProblem problem;
};

#define ZOI_CONV_KERNELS(K) \
  K(conv_f32_avx512_winograd4) \
  K(conv_f32_avx512_winograd2) \
  K(conv_f32_avx512) K(conv_f32_avx2_winograd4) K(conv_f32_avx2_winograd2) K(conv_f32_avx2) K(conv_f32_generic)
ZOI_CONV_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
