#include "cli/verbs/bench_attention.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "cli/system/signals.h"
#include "cli/system/terminal.h"
#include "posenc/attention.h"
#include "posenc/backend.h"
#include "posenc/scheme.h"

namespace posenc::cli {
namespace {

constexpr double kGiga = 1e9;
constexpr std::int64_t kSgemmSize = 1024;

// Tensors of attention in one piece of memory: k and v first, then q and out, and the gradients where they are wanted.
struct Tensors {
  Extents keys, queries;
  DataType type;
  limits::Memory memory;

  Tensors(std::int64_t heads, std::int64_t query_count, std::int64_t key_count, std::int64_t features,
          DataType a_type, bool with_gradients = false, std::int64_t group = 1)
      : keys({1, heads / group, key_count, features}),
        queries({1, heads, query_count, features}),
        type(a_type),
        memory(static_cast<std::size_t>((with_gradients ? 4 : 2) * (count_of(keys) + count_of(queries)) *
                                        size_of(type))) {
    // Values of about 1 in any of the types; denormals would be slow.
    const auto bytes = memory.bytes();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t place = i % static_cast<std::size_t>(size_of(type));
      const bool is_top = place + 1 == static_cast<std::size_t>(size_of(type));
      bytes[i] = static_cast<std::byte>(is_top ? 0x3e | ((i * 2654435761U >> 13) & 0x81) : i * 40503U >> 5);
    }
  }
  std::byte* at(std::int64_t element) const { return memory.bytes().data() + element * size_of(type); }
  ConstTensorView k() const { return {at(0), type, keys}; }
  ConstTensorView v() const { return {at(count_of(keys)), type, keys}; }
  ConstTensorView q() const { return {at(2 * count_of(keys)), type, queries}; }
  TensorView out() const { return {at(2 * count_of(keys) + count_of(queries)), type, queries}; }
  void attend(const AttentionOptions& options) const { attention(out(), q(), k(), v(), options); }
  void attend_backward(const AttentionOptions& options) const {
    const std::int64_t k_count = count_of(keys), q_count = count_of(queries), first = 2 * (k_count + q_count);
    const TensorView dq(at(first), type, queries), dk(at(first + q_count), type, keys);
    const TensorView dv(at(first + q_count + k_count), type, keys);
    const ConstTensorView d_out(at(first + q_count + 2 * k_count), type, queries);
    attention_backward({.q = dq, .k = dk, .v = dv}, d_out, {q(), k(), v()}, options);
  }
};

double seconds_of(const std::function<void()>& job) {
  const auto begin = std::chrono::steady_clock::now();
  job();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Position {
  std::string_view name;
  Form form;
};

enum class Pass { kForward, kBackward };

AttentionFigure measure_causal(const Position& position, Pass pass, const Tensors& tensors,
                               const limits::Effort& effort) {
  const auto run = [&](const AttentionOptions& options) {
    stop_if_signalled();
    pass == Pass::kForward ? tensors.attend(options) : tensors.attend_backward(options);
  };
  const AttentionOptions options{.position = position.form, .causal = true};
  const limits::Sgemm sgemm(kSgemmSize);
  std::vector<limits::Loop> loops = {
      {"none", [&] { return seconds_of([&] { run({.causal = true}); }); }},
      {"fma", [&] { return limits::peak_once(threads()); }},
  };
  if (limits::has_sgemm()) loops.push_back({"sgemm", [&] { return sgemm.once(threads()); }});
  const std::vector<limits::Comparison> beside = limits::compare_each(
      loops, [&] { run(options); }, effort);

  AttentionFigure figure;
  figure.job = fmt::format("{}, {}", pass == Pass::kForward ? "attention" : "gradients", position.name);
  figure.shape = tensors.keys;
  figure.type = tensors.type;
  figure.threads = threads();
  const auto tokens = static_cast<double>(tensors.keys[2]);
  const double pairs = static_cast<double>(tensors.keys[1]) * tokens * (tokens + 1) / 2;
  // Two products forward and five backward; that scores are made again is not counted.
  const double products = pass == Pass::kForward ? 2 : 5;
  figure.operations = 2 * products * static_cast<double>(tensors.keys[3]) * pairs;
  figure.seconds = beside[1].seconds;
  if (!std::holds_alternative<Nothing>(position.form)) figure.over_none = 1 / beside[0].ratio;
  // The faster of the two, each with its own number of operations.
  const auto take_limit = [&](const limits::Comparison& loop, double operations) {
    if (const double speed = operations / loop.limit_seconds; speed > figure.limit_operations) {
      figure.limit_operations = speed;
      figure.ratio = loop.ratio * figure.operations / operations;
      figure.limit_loop = loop.loop;
    }
  };
  take_limit(beside[1], limits::kPeakOperations * threads());
  if (beside.size() > 2) {
    take_limit(beside[2], sgemm.operations());
    figure.sgemm_operations = sgemm.operations() / beside[2].limit_seconds;
  }
  return figure;
}

AttentionFigure measure_decoding(const Position& position, const Tensors& tensors, const limits::Effort& effort) {
  const std::int64_t queries = tensors.queries[2], group = tensors.queries[1] / tensors.keys[1];
  const AttentionOptions options{.position = position.form, .causal = queries > 1};
  const auto bytes = static_cast<std::size_t>(2 * count_of(tensors.keys) * size_of(tensors.type));
  const auto job = [&] {
    stop_if_signalled();
    tensors.attend(options);
  };
  const limits::Comparison times =
      limits::compare(limits::read_loops(tensors.memory.bytes().first(bytes), threads()), job, effort);
  AttentionFigure figure;
  figure.job = queries == 1 && group == 1 ? fmt::format("decode, {}", position.name)
                                          : fmt::format("{} queries, GQA {}", queries, group);
  figure.shape = tensors.keys;
  figure.type = tensors.type;
  figure.threads = threads();
  figure.seconds = times.seconds;
  figure.bytes = static_cast<double>(bytes);
  figure.limit_bytes = figure.bytes / times.limit_seconds;
  figure.ratio = times.ratio;
  figure.limit_loop = times.loop;
  return figure;
}

}  // namespace

std::vector<AttentionFigure> measure_attention(const limits::Effort& effort, bool all) {
  constexpr std::int64_t kHeads = 8, kFeatures = 64;
  std::vector<float> buckets(32 * kHeads);
  for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] = std::sin(static_cast<float>(i));
  const ConstTensorView table = view(static_cast<const float*>(buckets.data()), {32, kHeads});
  const Position positions[] = {{"none", Nothing{}},
                                {"alibi", prepare(Alibi{.heads = kHeads})},
                                {"t5", prepare(T5{.heads = kHeads, .bidirectional = false}, {.weights = table})},
                                {"rope", prepare(Rope{.dims = kFeatures})}};
  std::vector<AttentionFigure> figures;
  const Tensors causal(kHeads, 2048, 2048, kFeatures, DataType::kF32);
  for (const Position& position : positions) {
    figures.push_back(measure_causal(position, Pass::kForward, causal, effort));
  }
  const Tensors halves(kHeads, 2048, 2048, kFeatures, DataType::kBF16);
  figures.push_back(measure_causal(positions[1], Pass::kForward, halves, effort));
  const Tensors cache(kHeads, 1, 32768, kFeatures, DataType::kF32);
  for (const Position& position : {positions[0], positions[1], positions[2]}) {
    figures.push_back(measure_decoding(position, cache, effort));
  }
  for (const DataType type : {DataType::kBF16, DataType::kF16}) {
    figures.push_back(measure_decoding(positions[0], {kHeads, 1, 32768, kFeatures, type}, effort));
  }
  if (!all) return figures;
  const Tensors f16(kHeads, 2048, 2048, kFeatures, DataType::kF16);
  figures.push_back(measure_causal(positions[1], Pass::kForward, f16, effort));
  const Tensors with_gradients(kHeads, 2048, 2048, kFeatures, DataType::kF32, true);
  for (const Position& position : {positions[0], positions[1], positions[2]}) {
    figures.push_back(measure_causal(position, Pass::kBackward, with_gradients, effort));
  }
  const Tensors bf16_cache(kHeads, 1, 32768, kFeatures, DataType::kBF16);
  figures.push_back(measure_decoding(positions[1], bf16_cache, effort));
  return figures;
}

Json as_json(const AttentionFigure& figure) {
  Json::Array shape;
  for (int axis = 0; axis < figure.shape.rank; ++axis) shape.emplace_back(figure.shape[axis]);
  Json::Object object = {{"job", figure.job},
                         {"shape", std::move(shape)},
                         {"dtype", name_of(figure.type)},
                         {"threads", figure.threads},
                         {"seconds", figure.seconds}};
  if (figure.operations > 0) {
    object.emplace_back("gflops", figure.operations / figure.seconds / kGiga);
    object.emplace_back("limit", figure.limit_loop);
    object.emplace_back("limit_gflops", figure.limit_operations / kGiga);
    object.emplace_back("ratio", figure.ratio);
    const bool has_sgemm = figure.sgemm_operations > 0;
    object.emplace_back("sgemm_gflops", has_sgemm ? Json(figure.sgemm_operations / kGiga) : Json(nullptr));
    if (figure.over_none > 0) object.emplace_back("over_none", figure.over_none);
  } else {
    object.emplace_back("gb_per_s", figure.bytes / figure.seconds / kGiga);
    object.emplace_back("limit", "read");
    object.emplace_back("limit_loop", figure.limit_loop);
    object.emplace_back("limit_gb_per_s", figure.limit_bytes / kGiga);
    object.emplace_back("ratio", figure.ratio);
    if (figure.over_none > 0) object.emplace_back("over_none", figure.over_none);
    if (figure.over_f32 > 0) object.emplace_back("over_f32", figure.over_f32);
  }
  return object;
}

std::string as_text(const std::vector<AttentionFigure>& figures, bool colour) {
  constexpr std::string_view kLine = "{}  {}  {:>5}  {:>7}  {:>9}  {:>13}  {:>8}  {:>18}  {:>6}  {:>9}  {:>8}\n";
  std::string text = dim(fmt::format(kLine, pad_right("job", 18), pad_right("shape of k", 18), "dtype", "threads",
                                     "time", "speed", "of limit", "limit", "SGEMM", "over none", "over f32"),
                         colour);
  for (const AttentionFigure& figure : figures) {
    const bool counts_operations = figure.operations > 0;
    const double speed = (counts_operations ? figure.operations : figure.bytes) / figure.seconds / kGiga;
    const double limit = (counts_operations ? figure.limit_operations : figure.limit_bytes) / kGiga;
    const std::string_view unit = counts_operations ? "GFLOP/s" : "GB/s";
    const std::string sgemm = figure.sgemm_operations > 0 ? fmt::format("{:.1f}", figure.sgemm_operations / kGiga)
                              : counts_operations         ? "none"
                                                          : "";
    std::string line = fmt::format(
        kLine, pad_right(figure.job, 18), pad_right(to_string(figure.shape), 18), name_of(figure.type),
        figure.threads, fmt::format("{:.2f} ms", figure.seconds * 1e3), fmt::format("{:.1f} {}", speed, unit),
        fmt::format("{:.1f} %", 100 * figure.ratio), fmt::format("{:.1f} {}", limit, figure.limit_loop), sgemm,
        figure.over_none > 0 ? fmt::format("{:+.1f} %", 100 * (figure.over_none - 1)) : "",
        figure.over_f32 > 0 ? fmt::format("{:.2f}", figure.over_f32) : "");
    while (line.ends_with(" \n")) line.erase(line.size() - 2, 1);
    text += line;
  }
  return text;
}

}  // namespace posenc::cli
