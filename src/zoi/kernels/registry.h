// Every family of kernels, in one explicit table.
#pragma once

#include <span>
#include <string_view>

#include "kernel.h"

namespace zoi {

std::span<const Family* const> families();
/// nullptr if there is none of that name.
const Family* find_family(std::string_view name);
const char* arch_name(Arch arch);
/// kCount if `name` is no architecture.
Arch parse_arch(std::string_view name);

}  // namespace zoi
