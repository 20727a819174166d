#pragma once

#include <optional>
#include <string>
#include <vector>

#include "benchmarks/limits.h"
#include "cli/flags/command.h"
#include "cli/flags/help.h"
#include "posenc/tensor.h"

namespace posenc::bench {

/// A measurement of `bench` with its limit.
struct BenchResult {
  std::string job;
  Extents shape;
  DataType type = DataType::kF32;
  int threads = 1;
  std::string limit;
  double bytes = 0;  // read and written per run
  limits::Comparison times;
  std::optional<double> of_ready = {};     // seconds with a ready table / seconds, alternating
  std::optional<double> prefill_gbs = {};  // GB/s of the same rotation over a whole sequence

  double gb_per_s() const { return bytes / times.seconds / 1e9; }
  double limit_gb_per_s() const { return bytes / times.limit_seconds / 1e9; }
};

/// Rotations of queries and keys, [1, 4096, 32, 128] each and, as in decoding, [64, 1, 32, 128]; `all`: also types
/// and layouts without a target.
std::vector<BenchResult> measure_rotate(const limits::Effort& effort, bool all);

/// The command: its flags, its help, and how to run it.
cli::Verb bench_verb(cli::Command program);

}  // namespace posenc::bench
