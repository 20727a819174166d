#include "cli/pages/tour_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "cli/system/signals.h"
#include "posenc/apply.h"
#include "posenc/backend.h"
#include "posenc/scheme.h"

namespace posenc::cli {
namespace {

constexpr Extents kShownTable = {32768, 1024};  // larger than the caches, but still quick

double seconds_of_job(const std::function<void()>& job) {
  const auto begin = std::chrono::steady_clock::now();
  job();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// On as many threads as the table. The bytes are not 0, for which some processors have an instruction of their own.
void store_plainly(std::vector<float>& memory, int thread_count) {
  const std::size_t count = memory.size(), share = count / thread_count;
  std::vector<std::jthread> others;
  for (std::size_t begin = share; begin + share <= count; begin += share) {
    others.emplace_back([=, &memory] { std::memset(memory.data() + begin, 1, share * sizeof(float)); });
  }
  std::memset(memory.data(), 1, share * sizeof(float));
}

double median_of_three(std::array<double, 3> values) {
  std::sort(values.begin(), values.end());
  return values[1];
}

}  // namespace

ReportSection speed_section() {
  std::vector<float> memory(count_of(kShownTable));  // touched here, so no page is new below
  const Addition form = prepare(Sinusoidal{.width = kShownTable.back(0)});
  std::array<double, 3> table{}, stores{};
  for (std::size_t i = 0; i < table.size(); ++i) {  // alternating, so that both meet the same noise
    stop_if_signalled();
    stores[i] = seconds_of_job([&] { store_plainly(memory, threads()); });
    table[i] = seconds_of_job([&] { tabulate(view(memory.data(), kShownTable), {}, form); });
  }
  const double gigabytes = static_cast<double>(memory.size() * sizeof(float)) / 1e9;
  ReportSection section;
  section.heading = "Speed on this machine";
  section.text = fmt::format(
      "posenc writes such a table at {:.1f} GB/s with {} thread{}; plain stores reach {:.1f} GB/s.",
      gigabytes / median_of_three(table), threads(), threads() == 1 ? "" : "s", gigabytes / median_of_three(stores));
  return section;
}

}  // namespace posenc::cli
