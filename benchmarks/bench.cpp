#include "benchmarks/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/attention.h"
#include "benchmarks/cuda.h"
#include "cli/flags/engine_flags.h"
#include "cli/system/failure.h"
#include "cli/system/signals.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "posenc/apply.h"
#include "posenc/backend.h"
#include "posenc/json.h"
#include "posenc/schemes/sinusoidal.h"

namespace posenc::bench {
namespace {

using cli::columns_of;
using cli::pad_right;
using cli::stop_if_signalled;

struct BenchFlags {
  std::vector<std::string> jobs;
  std::int64_t repeats = 11;
  bool json = false, all = false;
  cli::EngineFlags engine;
};

constexpr std::array<std::string_view, 6> kJobs = {"table", "add", "rotate", "attention", "decode", "prepare"};

std::size_t bytes_of(const Extents& shape, DataType type) {
  return static_cast<std::size_t>(count_of(shape) * size_of(type));
}

// The exact sinusoidal table, compared with stores to the same memory.
BenchResult measure_table(const Extents& shape, DataType type, const limits::Effort& effort) {
  const limits::Memory out(bytes_of(shape, type));
  const Addition form = prepare(Sinusoidal{.width = shape.back(0)});
  const auto job = [&] {
    stop_if_signalled();
    tabulate({out.as<void>(), type, shape}, {}, form);
  };
  return {"table",
          shape,
          type,
          threads(),
          "write",
          static_cast<double>(out.bytes().size()),
          limits::compare(limits::write_loops(out.bytes(), threads()), job, effort)};
}

// x += p compared with only reading and writing x; p comes from a table in x's type, or is computed on the way.
BenchResult measure_add(const Extents& shape, DataType type, bool is_ready, const limits::Effort& effort) {
  const limits::Memory x(bytes_of(shape, type));
  const Extents table_shape = {shape.back(1), shape.back(0)};
  const limits::Memory table(bytes_of(table_shape, type));
  const Addition waves = prepare(Sinusoidal{.width = shape.back(0)});
  Addition rows;
  if (is_ready) {
    const TensorView made(table.as<void>(), type, table_shape);
    tabulate(made, {}, waves);
    rows = {shape.back(0), Rows{made, 0}};
  }
  const auto job = [&] {
    stop_if_signalled();
    add({x.as<void>(), type, shape}, {}, is_ready ? rows : waves);
  };
  return {is_ready ? "add, table ready" : "add, table made inside",
          shape,
          type,
          threads(),
          "in-place",
          2.0 * static_cast<double>(x.bytes().size()),
          limits::compare(limits::in_place_loops(x.bytes(), threads()), job, effort)};
}

bool wants(const BenchFlags& flags, std::string_view job) {
  return flags.jobs.empty() || std::find(flags.jobs.begin(), flags.jobs.end(), job) != flags.jobs.end();
}

std::vector<BenchResult> measure(const BenchFlags& flags, const limits::Effort& effort,
                                 const std::vector<int>& thread_counts) {
  std::vector<BenchResult> results;
  for (const int count : thread_counts) {
    set_threads(count);
    if (wants(flags, "table")) {
      results.push_back(measure_table({131072, 1024}, DataType::kF32, effort));
      results.push_back(measure_table({65536, 1024}, DataType::kBF16, effort));
      results.push_back(measure_table({65536, 1024}, DataType::kF16, effort));
      for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kBF16, DataType::kF16}) {
        if (flags.all) results.push_back(measure_table({1024, 1024}, type, effort));  // fits in a cache
      }
    }
    for (const bool is_ready : {true, false}) {
      if (!wants(flags, "add")) break;
      results.push_back(measure_add({8, 4096, 1024}, DataType::kF32, is_ready, effort));
      results.push_back(measure_add({16, 4096, 1024}, DataType::kBF16, is_ready, effort));
      results.push_back(measure_add({16, 4096, 1024}, DataType::kF16, is_ready, effort));
      if (flags.all) results.push_back(measure_add({4, 4096, 1024}, DataType::kF64, is_ready, effort));
    }
    if (!wants(flags, "rotate")) continue;
    for (BenchResult& result : measure_rotate(effort, flags.all)) results.push_back(std::move(result));
  }
  return results;
}

std::string simd_target() {
  const std::vector<std::string> targets = simd_targets();
  return targets.empty() ? "none" : targets.front();
}

int cores() { return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U)); }

std::string as_json(const std::vector<BenchResult>& results, const std::vector<AttentionFigure>& figures,
                    const std::vector<PrepareFigure>& prepared) {
  Json::Array list;
  for (const BenchResult& result : results) {
    Json::Array shape;
    for (int axis = 0; axis < result.shape.rank; ++axis) shape.emplace_back(result.shape[axis]);
    Json::Object entry = {
        {"job", result.job},          {"shape", std::move(shape)},       {"dtype", name_of(result.type)},
        {"threads", result.threads},  {"seconds", result.times.seconds}, {"gb_per_s", result.gb_per_s()},
        {"limit", result.limit},      {"limit_loop", result.times.loop}, {"limit_gb_per_s", result.limit_gb_per_s()},
        {"ratio", result.times.ratio}};
    if (result.of_ready) entry.emplace_back("of_ready", *result.of_ready);
    if (result.prefill_gbs) entry.emplace_back("prefill_gb_per_s", *result.prefill_gbs);
    list.push_back(std::move(entry));
  }
  for (const AttentionFigure& figure : figures) list.push_back(as_json(figure));
  for (const PrepareFigure& figure : prepared) list.push_back(as_json(figure));
  const Json::Object machine = {{"cores", cores()}, {"simd_target", simd_target()}, {"backend", backend()}};
  return dump_json(Json::Object{{"machine", machine}, {"results", std::move(list)}}, 2) + "\n";
}

// 8×4096×1024
std::string short_shape(const Extents& shape) {
  std::string text;
  for (int axis = 0; axis < shape.rank; ++axis) text += fmt::format("{}{}", axis > 0 ? "×" : "", shape[axis]);
  return text;
}

std::string as_text(const std::vector<BenchResult>& results, const std::vector<AttentionFigure>& figures,
                    const std::vector<PrepareFigure>& prepared) {
  const bool colour = cli::wants_colour(STDOUT_FILENO);
  std::string text = fmt::format("{} cores, {}, backend {}; each job alternates with its limit\n\n", cores(),
                                 simd_target(), backend());
  if (!figures.empty()) text += as_text(figures, colour) + (results.empty() && prepared.empty() ? "" : "\n");
  if (!prepared.empty()) text += as_text(prepared, colour) + (results.empty() ? "" : "\n");
  if (results.empty()) return text;
  constexpr std::string_view kLine = "{}  {}  {:>5}  {:>7}  {:>9}  {:>5}  {:>16}  {:>8}  {:>8}\n";
  int job_columns = 0, shape_columns = 0;
  for (const BenchResult& result : results) {
    job_columns = std::max(job_columns, columns_of(result.job));
    shape_columns = std::max(shape_columns, columns_of(short_shape(result.shape)));
  }
  const auto line = [&](std::string_view job, std::string_view shape, const auto&... cells) {
    std::string words = fmt::format(kLine, pad_right(job, job_columns), pad_right(shape, shape_columns), cells...);
    while (words.ends_with(" \n")) words.erase(words.size() - 2, 1);
    return words;
  };
  text += cli::dim(line("job", "shape", "dtype", "threads", "time", "GB/s", "limit", "of limit", "of ready"), colour);
  for (const BenchResult& result : results) {
    const std::string of_ready = result.of_ready ? fmt::format("{:.1f} %", 100 * *result.of_ready) : "";
    text += line(result.job, short_shape(result.shape), name_of(result.type), result.threads,
                 fmt::format("{:.2f} ms", result.times.seconds * 1e3), fmt::format("{:.1f}", result.gb_per_s()),
                 fmt::format("{:.1f} {}", result.limit_gb_per_s(), result.times.loop),
                 fmt::format("{:.1f} %", 100 * result.times.ratio), of_ready);
  }
  return text;
}

int run(const BenchFlags& flags) {
  cli::use_engine(flags.engine);
  if (backend() == "cuda") {
    cli::print(flags.json ? cuda_bench_as_json() : cuda_bench_as_text());
    return cli::kDone;
  }
  for (const std::string& job : flags.jobs) {
    if (std::find(kJobs.begin(), kJobs.end(), job) == kJobs.end()) {
      cli::refuse(fmt::format("bench: '{}' is not one of {}", job, fmt::join(kJobs, ", ")));
    }
  }
  std::vector<int> thread_counts = {threads()};
  if (!flags.engine.threads && threads() > 1) thread_counts = {1, threads()};
  const limits::Effort effort{.repeats = static_cast<int>(flags.repeats)};
  const std::vector<BenchResult> results = measure(flags, effort, thread_counts);
  std::vector<AttentionFigure> figures;
  for (const int count : thread_counts) {
    if (!wants(flags, "attention")) break;
    set_threads(count);
    for (AttentionFigure& figure : measure_attention(effort, flags.all)) figures.push_back(std::move(figure));
  }
  for (const int count : thread_counts) {
    if (!wants(flags, "decode")) break;
    set_threads(count);
    for (AttentionFigure& figure : measure_decode(effort)) figures.push_back(std::move(figure));
  }
  std::vector<PrepareFigure> prepared;
  if (wants(flags, "prepare")) prepared = measure_prepare(effort);
  cli::print(flags.json ? as_json(results, figures, prepared) : as_text(results, figures, prepared));
  return cli::kDone;
}

}  // namespace

cli::Verb bench_verb(cli::Command program) {
  cli::Verb verb;
  verb.program = "./run";
  verb.name = "bench";
  verb.summary = "measure each kernel against the limits of this machine";
  verb.usage = "[table] [add] [rotate] [attention] [decode] [prepare] [options]";
  verb.details =
      "Each job alternates with its limit. For memory, the limit is the fastest loop over the same bytes in the same run: "
      "plain, prefetched or with streaming stores; stores alone for a table, loads and stores in place for x += p and "
      "rotations, loads alone for decoding with a cache. For attention it is the peak of multiply-adds in registers, or "
      "OpenBLAS's SGEMM if that is faster; SGEMM is shown beside it. \"Of limit\" is the median of the ratios, which "
      "is stable when absolute figures drift; \"of ready\" compares with the same job with a precomputed table of "
      "cosines and sines. Rotations rotate queries and keys of the shape shown; decode is one new token in each of "
      "64 sequences. The job decode is attention of 1 to 16 queries over a cache of keys, with a plan; \"over f32\" is its "
      "speed with a cache of 16 bits over that with one of float32, \"allocs\" how often a step allocates, \"bar\" what the "
      "project promises. The job prepare measures how long a scheme takes to become a form, and how long another trained "
      "table takes to be bound to one. Runs with one thread and with all, unless --threads is given. Needs 0.7 GiB and six "
      "minutes.";
  verb.examples = "./run bench\n./run bench table\n./run bench rotate --threads 2 --json\n./run bench attention";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<BenchFlags>();
  verb.command.add_option("JOB", flags->jobs).choices({kJobs.begin(), kJobs.end()});
  constexpr std::int64_t kMostRepeats = 1001;
  verb.command.add_integer("--repeats", flags->repeats, {1, kMostRepeats},
                           "runs per job, fewer if that takes over 4 seconds");
  verb.command.add_flag("--all", flags->all, "also run more types, a table that fits a cache, and gradients");
  verb.command.add_flag("--json", flags->json, "print one JSON document and nothing else");
  cli::add_engine_flags(verb.command, flags->engine);
  verb.run = [flags] { return run(*flags); };
  return verb;
}

}  // namespace posenc::bench
