// Random sines and cosines against MPFR: how many are not the correctly rounded float32?
//   check_rounding --below-2^31 100000000 --below-2^53 10000000 [--seed N]
// Values come from the fast blocks (runs of 64 rows) and from single rows, over the bases and widths that models use.
// Prints a line for each range; exit 1 if any value is wrong.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "oracle/mpfr_wave.h"
#include "posenc/apply.h"
#include "posenc/backend.h"
#include "posenc/scheme.h"

namespace {

using namespace posenc;

struct Config {
  double base;
  std::int64_t width;
};
constexpr Config kConfigs[] = {{1e4, 64}, {1e4, 128}, {1e4, 512}, {5e5, 64},  {5e5, 128},  {5e5, 256},
                               {1e6, 64}, {1e6, 128}, {1e6, 256}, {1e7, 128}, {150000, 64}};
constexpr std::int64_t kRun = 64;

struct Count {
  long long values = 0, wrong = 0;
};

// Checks whole runs of rows, every value of some columns.
Count check(long long wanted, int bits, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Addition> forms;
  std::vector<std::unique_ptr<oracle::MpfrWaves>> oracles;
  for (const Config& config : kConfigs) {
    forms.push_back(prepare(Sinusoidal{.width = config.width, .base = config.base}));
    oracles.push_back(std::make_unique<oracle::MpfrWaves>(config.base, config.width));
  }
  Count count;
  std::vector<float> rows;
  while (count.values < wanted) {
    const std::size_t which = random() % forms.size();
    const Config& config = kConfigs[which];
    const std::int64_t run = random() % 8 == 0 ? 1 : kRun;
    const auto limit = (std::uint64_t{1} << bits) - static_cast<std::uint64_t>(run);
    const auto first = static_cast<std::int64_t>((random() >> (64 - bits)) % limit);
    rows.resize(static_cast<std::size_t>(run * config.width));
    tabulate(view(rows.data(), {run, config.width}), {.first = first}, forms[which]);
    for (int picked = 0; picked < 64 && count.values < wanted; ++picked) {
      const auto row = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(run));
      const auto column = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(config.width));
      const double want = oracles[which]->wave(column / 2, static_cast<std::uint64_t>(first + row),
                                               static_cast<unsigned>(column % 2), oracle::kF32);
      const float got = rows[static_cast<std::size_t>(row * config.width + column)];
      ++count.values;
      if (static_cast<double>(got) == want) continue;
      if (++count.wrong <= 10) {
        std::printf("wrong: base %g width %lld position %lld column %lld: %a, MPFR %a\n", config.base,
                    static_cast<long long>(config.width), static_cast<long long>(first + row),
                    static_cast<long long>(column), static_cast<double>(got), want);
      }
    }
  }
  return count;
}

Count check_on_all_cores(long long wanted, int bits, std::uint64_t seed) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Count> counts(cores);
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < cores; ++i) {
    workers.emplace_back([&, i] { counts[i] = check(wanted / cores + 1, bits, seed + i); });
  }
  Count total;
  for (unsigned i = 0; i < cores; ++i) {
    workers[i].join();
    total.values += counts[i].values;
    total.wrong += counts[i].wrong;
  }
  return total;
}

}  // namespace

int main(int count, char** arguments) {
  long long below31 = 0, below53 = 0;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string flag = arguments[i];
    const long long value = std::atoll(arguments[i + 1]);
    if (flag == "--below-2^31") below31 = value;
    if (flag == "--below-2^53") below53 = value;
    if (flag == "--seed") seed = static_cast<std::uint64_t>(value);
  }
  if (below31 + below53 <= 0) {
    std::fprintf(stderr, "usage: check_rounding --below-2^31 N --below-2^53 N [--seed N]\n");
    return 2;
  }
  set_threads(1);  // the checking itself runs on all cores
  long long wrong = 0;
  for (const auto& [bits, wanted] : {std::pair{31, below31}, std::pair{53, below53}}) {
    if (wanted <= 0) continue;
    const Count result = check_on_all_cores(wanted, bits, seed);
    std::printf("positions below 2^%d: %lld values, %lld not correctly rounded (seed %llu)\n", bits, result.values,
                result.wrong, static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    wrong += result.wrong;
  }
  return wrong == 0 ? 0 : 1;
}
