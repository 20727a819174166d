#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/limits.h"
#include "posenc/json.h"
#include "posenc/tensor.h"

namespace posenc::bench {

/// A measurement of attention. Causal attention over many queries is bound by arithmetic: its limit is the faster of
/// multiply-adds in registers and SGEMM, which is shown beside it. Decoding is bound by memory; its limit is reading
/// the cache.
struct AttentionFigure {
  std::string job;
  Extents shape;  // of k
  DataType type = DataType::kF32;
  int threads = 1;
  double seconds = 0;
  double operations = 0;        // 4 · features for each pair of query and key; 0 if bytes count
  double limit_operations = 0;  // per second
  double sgemm_operations = 0;  // per second; 0 without OpenBLAS
  double bytes = 0;
  double limit_bytes = 0;            // read per second
  std::string_view limit_loop = {};  // the loop that gave the limit
  double ratio = 0;
  double over_none = 0;                    // time relative to no position; 0: not measured
  double over_f32 = 0;                     // speed relative to f32 tensors; 0: not measured
  std::optional<double> allocations = {};  // per step
  std::string bar = {};                    // the project's target for this row
};

/// With posenc::threads() threads. `all`: also gradients and f16.
std::vector<AttentionFigure> measure_attention(const limits::Effort& effort, bool all);

Json as_json(const AttentionFigure& figure);
std::string as_text(const std::vector<AttentionFigure>& figures, bool colour);

/// Few queries over a cache of 8 key heads, with a plan and a workspace, compared with reading the cache once: 1 to
/// 16 queries, 1, 4 and 8 query heads per key head, 2048 and 16384 keys, f32, bf16 and f16; then positions and a
/// window.
std::vector<AttentionFigure> measure_decode(const limits::Effort& effort);

/// The time to prepare a scheme's form, once per model.
struct PrepareFigure {
  std::string scheme;
  double seconds = 0;
  double bar_seconds = 0;  // the project's target; 0: none
};
std::vector<PrepareFigure> measure_prepare(const limits::Effort& effort);

Json as_json(const PrepareFigure& figure);
std::string as_text(const std::vector<PrepareFigure>& figures, bool colour);

}  // namespace posenc::bench
