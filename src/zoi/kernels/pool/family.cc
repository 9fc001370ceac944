#include <iterator>

#include "../check.h"
#include "pool.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {{"x", Role::in, false}, {"y", Role::out, false}};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const PoolProblem*>(problem);
  if (p.mode != kPoolMax && p.mode != kPoolAverage) return "unknown mode";
  if (!sizes_at_least(0, {p.n, p.c, p.oh, p.ow, p.pt, p.pl, p.pb, p.pr}))
    return "a dimension or padding is out of range";
  if (!sizes_at_least(1, {p.ih, p.iw, p.kh, p.kw, p.sh, p.sw, p.dh, p.dw}))
    return "the image, the window, its strides and dilations must be positive";
  const int64_t ow = p.ow > 0 ? p.ow : 1, c = p.c > 0 ? p.c : 1;  // empty rows are walked too
  if (!work_is_bounded({p.n, p.oh, ow, c, p.kh, p.kw})) return "too much work";
  if ((p.n > 1 && p.y_image == 0) || (p.oh > 1 && p.y_row == 0) || (p.ow > 1 && p.y_pixel == 0))
    return "the output overlaps itself";
  if (!fits(extents[kPoolX], 4, {{p.n, p.x_image}, {p.ih, p.x_row}, {p.iw, p.x_pixel}, {p.c, 1}}))
    return "x is too small";
  if (!fits(extents[kPoolY], 4, {{p.n, p.y_image}, {p.oh, p.y_row}, {p.ow, p.y_pixel}, {p.c, 1}}))
    return "y is too small";
  return nullptr;
}

double flops(const void* problem) {
  const auto& p = *static_cast<const PoolProblem*>(problem);
  return static_cast<double>(p.n * p.oh * p.ow * p.c) * static_cast<double>(p.kh * p.kw);
}

constexpr KernelEntry kKernels[] = {ZOI_POOL_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kPool = {
    "pool", kOperands, kPoolOperands, kPoolProblemFields, std::size(kPoolProblemFields), sizeof(PoolProblem),
    check,  nullptr,   flops,         kKernels,           std::size(kKernels),
};

}  // namespace zoi
