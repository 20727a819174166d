#include "benchmarks/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "benchmarks/cuda_figures.h"
#include "cli/system/terminal.h"
#include "posenc/cuda.h"
#include "posenc/json.h"

namespace posenc::bench {
namespace {

using cli::columns_of;
using cli::pad_right;

std::vector<figures::CudaFigure> measure() {
  std::vector<figures::CudaFigure> all = figures::measure_cuda();
  for (figures::CudaFigure& figure : figures::measure_decoding()) all.push_back(std::move(figure));
  for (figures::CudaFigure& figure : figures::measure_cuda_attention()) all.push_back(std::move(figure));
  return all;
}

std::string machine_line() {
  const cuda::Facts facts = cuda::facts();
  return fmt::format("{}, {} multiprocessors, compute capability {}.{}, driver of CUDA {}.{}", facts.name,
                     facts.multiprocessors, facts.capability / 10, facts.capability % 10, facts.driver_version / 1000,
                     facts.driver_version % 1000 / 10);
}

std::string speed_of(const figures::CudaFigure& figure) {
  if (figure.tflop_per_s > 0) return fmt::format("{:.0f} TFLOP/s", figure.tflop_per_s);
  if (figure.gb_per_s > 0) return fmt::format("{:.0f} GB/s", figure.gb_per_s);
  return "";
}

}  // namespace

std::string cuda_bench_as_text() {
  constexpr std::string_view kLine = "{}  {:>9}  {:>9}  {:>12}  {:>10}  {:>8}  {:>13}  {:>9}\n";
  const std::vector<figures::CudaFigure> all = measure();
  int columns = 0;
  for (const figures::CudaFigure& figure : all) columns = std::max(columns, columns_of(figure.job));
  std::string text =
      machine_line() + "\n\n" +
      fmt::format(kLine, pad_right("job", columns), "ms", "GPU alone", "speed", "limit", "of limit", "bar", "goal");
  for (const figures::CudaFigure& figure : all) {
    const bool has_limit = figure.limit_gb_per_s > 0;
    text += fmt::format(kLine, pad_right(figure.job, columns), fmt::format("{:.4f}", figure.milliseconds),
                        fmt::format("{:.4f}", figure.alone), speed_of(figure),
                        has_limit ? fmt::format("{:.0f} GB/s", figure.limit_gb_per_s) : "",
                        has_limit ? fmt::format("{:.1f} %", 100 * figure.of_limit()) : "", figure.bar, figure.goal);
  }
  return text;
}

std::string cuda_bench_as_json() {
  Json::Array list;
  for (const figures::CudaFigure& figure : measure()) {
    list.push_back(Json::Object{{"job", figure.job},
                                {"milliseconds", figure.milliseconds},
                                {"alone_milliseconds", figure.alone},
                                {"gb_per_s", figure.gb_per_s},
                                {"tflop_per_s", figure.tflop_per_s},
                                {"limit", figure.limit},
                                {"limit_gb_per_s", figure.limit_gb_per_s},
                                {"bar", figure.bar},
                                {"goal", figure.goal}});
  }
  return dump_json(Json::Object{{"machine", machine_line()}, {"results", std::move(list)}}, 2) + "\n";
}

}  // namespace posenc::bench
