#pragma once

#include <string>
#include <vector>

#include "benchmarks/limits.h"
#include "posenc/json.h"
#include "posenc/tensor.h"

namespace posenc::cli {

/// One figure of attention. Causal over many queries it is bound by arithmetic and stands beside SGEMM; decoding is
/// bound by memory and stands beside reading the cache.
struct AttentionFigure {
  std::string job;
  Extents shape;  // of k
  DataType type = DataType::kF32;
  int threads = 1;
  double seconds = 0;
  double operations = 0;        // 4 · features for each pair of query and key; 0 where bytes count
  double limit_operations = 0;  // of SGEMM, in a second; 0 where there is none
  double bytes = 0;
  double limit_bytes = 0;  // read in a second
  double ratio = 0;
  double over_none = 0;  // time over that without position; 0: not measured
};

/// With as many threads as posenc::threads() says.
std::vector<AttentionFigure> measure_attention(const limits::Effort& effort);

Json as_json(const AttentionFigure& figure);
std::string as_text(const std::vector<AttentionFigure>& figures, bool colour);

}  // namespace posenc::cli
