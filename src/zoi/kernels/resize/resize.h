// resize: separable interpolation of channels-last images, float32, `taps` taps an axis (1 nearest, 2 linear, 4 cubic):
//   y[n,oy,ox,c] = sum_{i,j} h_weight[oy,i] w_weight[ox,j] x[n, h_index[oy,i], w_index[ox,j], c]
// The tables are constants made from ONNX Resize's coordinate rules; an index outside the image is clamped to it.
// A tap of weight 0 takes no part, whatever it would have read.
#pragma once

#include "../kernel.h"

namespace zoi {

// clang-format off
#define ZOI_RESIZE_FIELDS(I, A, R, S) \
  I(taps) I(n) I(ih) I(iw) I(c) I(oh) I(ow) I(x_image) I(x_row) I(x_pixel) I(y_image) I(y_row) I(y_pixel)
// clang-format on
ZOI_PROBLEM(ResizeProblem, ZOI_RESIZE_FIELDS)

enum ResizeOperand {
  kResizeX,
  kResizeHIndex,
  kResizeHWeight,
  kResizeWIndex,
  kResizeWWeight,
  kResizeY,
  kResizeOperands
};
struct ResizeArgs {
  const float* x;
  const int32_t* h_index;  // [oh, taps]
  const float* h_weight;   // [oh, taps]
  const int32_t* w_index;  // [ow, taps]
  const float* w_weight;   // [ow, taps]
  float* y;
  ResizeProblem problem;
};

#define ZOI_RESIZE_KERNELS(K) K(resize_f32_avx512) K(resize_f32_avx2) K(resize_f32_generic)
ZOI_RESIZE_KERNELS(ZOI_DECLARE_KERNEL)

}  // namespace zoi
