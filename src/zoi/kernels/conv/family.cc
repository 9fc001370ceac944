#include <iterator>

#include "../check.h"
#include "conv.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {{"x", Role::in, false},
                                 {"w", Role::weight, false},
                                 {"bias", Role::weight, true},
                                 {"residual", Role::in, true},
                                 {"y", Role::out, false}};

constexpr int64_t kMaxStep = int64_t{1} << 20;  // of stride, dilation and padding: keeps coordinates in 64 bits

bool inside(const Extent& extent, const ConvProblem& p, int64_t h, int64_t w, int64_t channels, int64_t image,
            int64_t row, int64_t pixel) {
  return fits(extent, 4, {{p.n, image}, {h, row}, {w, pixel}, {channels, 1}});
}

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const ConvProblem*>(problem);
  if (!sizes_at_least(0, {p.n, p.oh, p.ow, p.oc}) || !sizes_at_least(1, {p.ih, p.iw, p.ic, p.groups, p.kh, p.kw}))
    return "a dimension is out of range";
  for (int64_t step : {p.sh, p.sw, p.dh, p.dw})
    if (step < 1 || step > kMaxStep) return "a stride or dilation is out of range";
  for (int64_t pad : {p.pt, p.pl})
    if (pad < 0 || pad > kMaxStep) return "a padding is out of range";
  if (!work_is_bounded({p.groups, p.oc, p.kh, p.kw, p.ic}) || !work_is_bounded({p.groups, p.ic, p.kh, p.kw}) ||
      !work_is_bounded({p.n, p.oh, p.ow, p.oc, p.groups, p.kh, p.kw, p.ic}))
    return "too much work";
  if (p.act < 0 || p.act >= kActCount) return "unknown activation";
  const int64_t in = p.groups * p.ic, out = p.groups * p.oc;  // bounded by the work
  if (!sizes_at_least(0, {in, out})) return "too many channels";
  if (!inside(extents[kConvX], p, p.ih, p.iw, in, p.x_image, p.x_row, p.x_pixel)) return "x is too small";
  if (!inside(extents[kConvY], p, p.oh, p.ow, out, p.y_image, p.y_row, p.y_pixel)) return "y is too small";
  if (extents[kConvResidual].present && p.r_pixel < 1) return "residual needs a stride between pixels";
  if (extents[kConvResidual].present &&
      !inside(extents[kConvResidual], p, p.oh, p.ow, out, p.r_image, p.r_row, p.r_pixel))
    return "residual is too small";
  if (!fits(extents[kConvW], 4, {{out, p.ic * p.kh * p.kw}, {p.ic * p.kh * p.kw, 1}})) return "w is too small";
  if (!fits_optional(extents[kConvBias], 4, {{out, 1}})) return "bias is too small";
  return nullptr;
}

// Each element of the residual is read just before its element of y is written, unless it is added in a second pass.
bool in_place(const void* problem, int operand) {
  const auto& p = *static_cast<const ConvProblem*>(problem);
  return operand == kConvResidual && p.r_image == p.y_image && p.r_row == p.y_row && p.r_pixel == p.y_pixel &&
         !p.residual_after;
}

double flops(const void* problem) {
  const auto& p = *static_cast<const ConvProblem*>(problem);
  return 2.0 * static_cast<double>(p.n * p.oh * p.ow) * static_cast<double>(p.groups * p.oc) *
         static_cast<double>(p.ic * p.kh * p.kw);
}

constexpr KernelEntry kKernels[] = {ZOI_CONV_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kConv = {
    "conv", kOperands, kConvOperands, kConvProblemFields, std::size(kConvProblemFields), sizeof(ConvProblem),
    check,  in_place,  flops,         kKernels,           std::size(kKernels),
};

}  // namespace zoi
