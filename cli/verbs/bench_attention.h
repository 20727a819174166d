#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/limits.h"
#include "posenc/json.h"
#include "posenc/tensor.h"

namespace posenc::cli {

/// One figure of attention. Causal over many queries it is bound by arithmetic: its limit is the faster of multiply-adds
/// in registers and SGEMM, which is shown beside it. Decoding is bound by memory, and reading the cache is its limit.
struct AttentionFigure {
  std::string job;
  Extents shape;  // of k
  DataType type = DataType::kF32;
  int threads = 1;
  double seconds = 0;
  double operations = 0;        // 4 · features for each pair of query and key; 0 where bytes count
  double limit_operations = 0;  // in a second
  double sgemm_operations = 0;  // in a second; 0 where there is no OpenBLAS
  double bytes = 0;
  double limit_bytes = 0;            // read in a second
  std::string_view limit_loop = {};  // by which loop
  double ratio = 0;
  double over_none = 0;                    // time over that without position; 0: not measured
  double over_f32 = 0;                     // speed over that of f32 tensors; 0: not measured
  std::optional<double> allocations = {};  // of one step
  std::string bar = {};                    // what the project promises of this row
};

/// With as many threads as posenc::threads() says. `all`: also gradients and f16.
std::vector<AttentionFigure> measure_attention(const limits::Effort& effort, bool all);

Json as_json(const AttentionFigure& figure);
std::string as_text(const std::vector<AttentionFigure>& figures, bool colour);

/// Few queries over a cache of 8 key heads, with a plan and a workspace, beside reading the cache once: 1 to 16 queries,
/// 1, 4 and 8 query heads for each key head, 2048 and 16384 keys, f32, bf16 and f16; then positions and a window.
std::vector<AttentionFigure> measure_decode(const limits::Effort& effort);

/// How long a scheme takes to become a form, once per model.
struct PrepareFigure {
  std::string scheme;
  double seconds = 0;
  double bar_seconds = 0;  // what the project promises; 0: nothing
};
std::vector<PrepareFigure> measure_prepare(const limits::Effort& effort);

Json as_json(const PrepareFigure& figure);
std::string as_text(const std::vector<PrepareFigure>& figures, bool colour);

}  // namespace posenc::cli
