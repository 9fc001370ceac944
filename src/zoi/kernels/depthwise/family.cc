#include <iterator>

#include "../check.h"
#include "depthwise.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {
    {"x", Role::in, false}, {"w", Role::weight, false}, {"bias", Role::weight, true}, {"y", Role::out, false}};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  if (!sizes_at_least(0, {p.n, p.c, p.oh, p.ow, p.pt, p.pl})) return "a dimension or padding is out of range";
  if (!sizes_at_least(1, {p.ih, p.iw, p.kh, p.kw, p.sh, p.sw, p.dh, p.dw}))
    return "the image, the window, its strides and dilations must be positive";
  const int64_t ow = p.ow > 0 ? p.ow : 1, c = p.c > 0 ? p.c : 1;  // empty rows are walked too
  if (!work_is_bounded({p.n, p.oh, ow, c, p.kh, p.kw})) return "too much work";
  if (p.act < 0 || p.act >= kActCount) return "unknown activation";
  if ((p.n > 1 && p.y_image == 0) || (p.oh > 1 && p.y_row == 0) || (p.ow > 1 && p.y_pixel == 0))
    return "the output overlaps itself";
  if (!fits(extents[kDepthwiseX], 4, {{p.n, p.x_image}, {p.ih, p.x_row}, {p.iw, p.x_pixel}, {p.c, 1}}))
    return "x is too small";
  if (!fits(extents[kDepthwiseY], 4, {{p.n, p.y_image}, {p.oh, p.y_row}, {p.ow, p.y_pixel}, {p.c, 1}}))
    return "y is too small";
  if (!fits(extents[kDepthwiseW], 4, {{p.c, p.kh * p.kw}, {p.kh, p.kw}, {p.kw, 1}})) return "w is too small";
  if (!fits_optional(extents[kDepthwiseBias], 4, {{p.c, 1}})) return "bias is too small";
  return nullptr;
}

double flops(const void* problem) {
  const auto& p = *static_cast<const DepthwiseProblem*>(problem);
  return 2.0 * static_cast<double>(p.n * p.oh * p.ow * p.c) * static_cast<double>(p.kh * p.kw);
}

constexpr KernelEntry kKernels[] = {ZOI_DEPTHWISE_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kDepthwise = {
    "depthwise",
    kOperands,
    kDepthwiseOperands,
    kDepthwiseProblemFields,
    std::size(kDepthwiseProblemFields),
    sizeof(DepthwiseProblem),
    check,
    nullptr,
    flops,
    kKernels,
    std::size(kKernels),
};

}  // namespace zoi
