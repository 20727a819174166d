#pragma once

#include <string>

namespace posenc::cli {

/// Every figure of an NVIDIA GPU beside its limit and its bar, measured now.
std::string cuda_bench_as_text();
std::string cuda_bench_as_json();

}  // namespace posenc::cli
