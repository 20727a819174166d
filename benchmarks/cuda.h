#pragma once

#include <string>

namespace posenc::bench {

/// Every measurement of an NVIDIA GPU with its limit and its target, measured now.
std::string cuda_bench_as_text();
std::string cuda_bench_as_json();

}  // namespace posenc::bench
