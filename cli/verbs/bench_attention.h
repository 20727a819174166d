#pragma once

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
  double over_none = 0;  // time over that without position; 0: not measured
  double over_f32 = 0;   // speed over that of an f32 cache; 0: not measured
};

/// With as many threads as posenc::threads() says. `all`: also gradients and f16.
std::vector<AttentionFigure> measure_attention(const limits::Effort& effort, bool all);

Json as_json(const AttentionFigure& figure);
std::string as_text(const std::vector<AttentionFigure>& figures, bool colour);

}  // namespace posenc::cli
