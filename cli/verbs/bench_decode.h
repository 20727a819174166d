#pragma once

#include <string>
#include <vector>

#include "benchmarks/limits.h"
#include "cli/verbs/bench_attention.h"

namespace posenc::cli {

/// Few queries over a cache of 8 key heads, with a plan and a workspace, beside reading the cache once: 1 to 16 queries,
/// 1, 4 and 8 query heads for each key head, 2048 and 16384 keys, f32, bf16 and f16; then positions and a window.
std::vector<AttentionFigure> measure_decode(const limits::Effort& effort);

/// How long a scheme takes to become a form, once per model.
struct PrepareFigure {
  std::string scheme;
  double seconds = 0;
};
std::vector<PrepareFigure> measure_prepare(const limits::Effort& effort);

Json as_json(const PrepareFigure& figure);
std::string as_text(const std::vector<PrepareFigure>& figures, bool colour);

}  // namespace posenc::cli
