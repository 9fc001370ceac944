// The .zoi file: a program on disk, the same for every machine. docs/plan_format.md says what lies where.
#pragma once

#include <string>

#include "program.h"

namespace zoi {

/// Writes a temporary file beside `path` and renames it, so that `path` is never half written.
void save_program(const Program& program, const std::string& path);

/// Maps the file; constants point into the mapping, which the program keeps. Throws Error naming the file if it cannot
/// be read, is damaged, or was made by another version. The result is well formed but not yet validated.
Program load_program(const std::string& path);

}  // namespace zoi
