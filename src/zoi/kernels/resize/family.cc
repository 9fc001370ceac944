#include <iterator>

#include "../check.h"
#include "resize.h"

namespace zoi {
namespace {

constexpr Operand kOperands[] = {
    {"x", Role::in, false},           {"h_index", Role::weight, false},  {"h_weight", Role::weight, false},
    {"w_index", Role::weight, false}, {"w_weight", Role::weight, false}, {"y", Role::out, false}};

const char* check(const void* problem, const Extent* extents) {
  const auto& p = *static_cast<const ResizeProblem*>(problem);
  if (!sizes_at_least(0, {p.n, p.c, p.oh, p.ow})) return "a dimension is out of range";
  if (!sizes_at_least(1, {p.ih, p.iw, p.taps})) return "the image and the taps must be positive";
  const int64_t ow = p.ow > 0 ? p.ow : 1, c = p.c > 0 ? p.c : 1;  // empty rows are walked too
  if (!work_is_bounded({p.n, p.oh, ow, c, p.taps, p.taps})) return "too much work";
  if ((p.n > 1 && p.y_image == 0) || (p.oh > 1 && p.y_row == 0) || (p.ow > 1 && p.y_pixel == 0))
    return "the output overlaps itself";
  if (!fits(extents[kResizeX], 4, {{p.n, p.x_image}, {p.ih, p.x_row}, {p.iw, p.x_pixel}, {p.c, 1}}))
    return "x is too small";
  if (!fits(extents[kResizeY], 4, {{p.n, p.y_image}, {p.oh, p.y_row}, {p.ow, p.y_pixel}, {p.c, 1}}))
    return "y is too small";
  for (int operand : {kResizeHIndex, kResizeHWeight})
    if (!fits(extents[operand], 4, {{p.oh, p.taps}, {p.taps, 1}})) return "a table of rows is too small";
  for (int operand : {kResizeWIndex, kResizeWWeight})
    if (!fits(extents[operand], 4, {{p.ow, p.taps}, {p.taps, 1}})) return "a table of columns is too small";
  return nullptr;
}

double flops(const void* problem) {
  const auto& p = *static_cast<const ResizeProblem*>(problem);
  return 2.0 * static_cast<double>(p.n * p.oh * p.ow * p.c) * static_cast<double>(p.taps * p.taps);
}

constexpr KernelEntry kKernels[] = {ZOI_RESIZE_KERNELS(ZOI_KERNEL_ENTRY)};

}  // namespace

extern const Family kResize = {
    "resize",
    kOperands,
    kResizeOperands,
    kResizeProblemFields,
    std::size(kResizeProblemFields),
    sizeof(ResizeProblem),
    check,
    nullptr,
    flops,
    kKernels,
    std::size(kKernels),
};

}  // namespace zoi
