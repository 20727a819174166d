#pragma once

#include <cstdint>

#include "attention/job.h"

namespace posenc::attend::cpu {

/// Turns rows of tokens `begin` to `end` of sequence b, [rows, stride] f32, in place.
void turn_rows(const Turning& turning, std::int64_t b, std::int64_t begin, std::int64_t end, std::int64_t stride,
               float* rows);

}  // namespace posenc::attend::cpu
