#pragma once

#include <cstdint>

#include "attention/job.h"

namespace posenc::attend::cpu {

/// Rotates rows of tokens `begin` to `end` of sequence b, [rows, stride] f32, in place.
void rotate_loaded_rows(const RowRotation& rotation, std::int64_t b, std::int64_t begin, std::int64_t end,
                        std::int64_t stride, float* rows);

}  // namespace posenc::attend::cpu
