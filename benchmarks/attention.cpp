#include "benchmarks/attention.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <type_traits>

#include "cli/system/signals.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "posenc/attention.h"
#include "posenc/backend.h"
#include "posenc/error.h"
#include "posenc/mrope.h"
#include "posenc/scheme.h"

namespace posenc::bench {
namespace {

using cli::dim;
using cli::pad_right;
using cli::stop_if_signalled;
using cli::tell;

constexpr double kGiga = 1e9;
constexpr std::int64_t kSgemmSize = 1024;

// The project's targets for bf16 tensors; on x86-64, for a core with a matrix unit (AMX).
#if defined(__x86_64__)
constexpr std::string_view kNarrowBar = "with AMX, >= 450 GFLOP/s a core";
#else
constexpr std::string_view kNarrowBar = "over f32 >= 1.8";
#endif

// Tensors of attention in one piece of memory: k and v first, then q and out, and the gradients if requested.
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

constexpr std::int64_t kTokensWithGates = 1024;

struct Position {
  std::string_view name;
  Form form;
  std::vector<std::int64_t> ids = {};  // [axes, tokens], if positions have several axes
  std::vector<float> own = {};         // multiplied with the form's vectors in place of q
  Extents own_shape = {};
  std::vector<float> gates = {};  // [heads, tokens], if the form adds their sums
  bool is_rounded = false;        // rotated q and k are rounded to their type

  AttentionOptions options(bool causal) const {
    AttentionOptions all{.position = form, .causal = causal, .rounds_rotated = is_rounded};
    if (!own.empty()) all.position_queries = view(own.data(), own_shape);
    if (!gates.empty())
      all.log_gates = view(gates.data(), {1, std::ssize(gates) / kTokensWithGates, kTokensWithGates});
    if (!ids.empty()) all.query_positions = all.key_positions = {.ids = ids, .axes = position_axes_of(form)};
    return all;
  }
};

// A scheme of the list with the given numbers of heads and features, a table of small numbers in place of a trained
// one, and windows and grids that hold all tokens: 1024 of them.
struct BenchedScheme {
  static constexpr std::int64_t kTokens = kTokensWithGates;
  std::vector<float> table;
  Position position;

  BenchedScheme(std::string_view name, std::int64_t heads, std::int64_t features) : position{name, Nothing{}} {
    Scheme scheme = scheme_named(name);
    const auto fit = [&]<class S>(S& one) {
      S::fields([&](std::string_view field, auto member, std::string_view) {
        using Field = std::remove_reference_t<decltype(one.*member)>;
        if constexpr (std::is_same_v<Field, std::int64_t>) {
          if (field == "heads") one.*member = heads;
          if (field == "dims") one.*member = features;
          if (field == "floor") one.*member = 64;  // a temperature that changes within the tokens
        }
        if constexpr (std::is_same_v<Field, std::vector<std::int64_t>>) {
          if (field == "window" || field == "patches" || field == "new_grid") one.*member = {32, 32};
        }
        if constexpr (std::is_same_v<Field, std::vector<double>>) {
          if (field == "amplitudes" || field == "rates")
            one.*member = std::vector<double>(static_cast<std::size_t>(heads), 1.0);
        }
      });
    };
    std::visit(fit, scheme);
    int drawn = 0;
    draw_trained(scheme, [&] { return std::sin(++drawn); });
    const Extents shape = shape_of(trained_table_of(scheme), features);
    PrepareOptions options{.length = kTokens};
    if (shape.rank > 0) {
      table.resize(static_cast<std::size_t>(count_of(shape)));
      for (std::size_t i = 0; i < table.size(); ++i) table[i] = std::sin(static_cast<float>(i));
      options.weights = view(static_cast<const float*>(table.data()), shape);
      if (trained_table_of(scheme).has_key_weights) options.key_weights = options.weights;
      if (trained_table_of(scheme).has_value_weights) options.value_weights = options.weights;
    }
    position.form = prepare(scheme, options);
    const auto* const bias = std::get_if<Bias>(&position.form);
    const auto* const vectors = bias != nullptr ? std::get_if<DistanceVectors>(&bias->source) : nullptr;
    if (vectors != nullptr && vectors->has_own_queries) {
      position.own_shape = {1, heads, kTokens, query_features_of(*vectors)};
      position.own.resize(static_cast<std::size_t>(count_of(position.own_shape)), 0.1f);
    }
    if (bias != nullptr && std::holds_alternative<GateSums>(bias->source)) {
      position.gates.resize(static_cast<std::size_t>(heads * kTokens), -0.02f);
    }
    const std::vector<std::int64_t> plane = {32, 32}, volume = {4, 16, 16};
    const int axes = position_axes_of(position.form);
    if (axes > 1) position.ids = grid_positions(axes == 2 ? plane : volume);
  }
  // What attention accepts, except none.
  bool is_benched() const {
    const auto* const nothing = std::get_if<Nothing>(&position.form);
    return nothing != nullptr ? nothing->temperature.has_value() : !std::holds_alternative<Addition>(position.form);
  }
};

enum class Pass { kForward, kBackward };

AttentionFigure measure_causal(const Position& position, Pass pass, const Tensors& tensors,
                               const limits::Effort& effort) {
  const auto run = [&](const AttentionOptions& options) {
    stop_if_signalled();
    pass == Pass::kForward ? tensors.attend(options) : tensors.attend_backward(options);
  };
  const AttentionOptions options = position.options(true);
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
  // Two products forward and five backward; recomputing scores is not counted.
  const double products = pass == Pass::kForward ? 2 : 5;
  figure.operations = 2 * products * static_cast<double>(tensors.keys[3]) * pairs;
  figure.seconds = beside[1].seconds;
  if (position.name != "none") figure.over_none = 1 / beside[0].ratio;
  // The faster of the two, each with its own number of operations.
  const auto take_limit = [&](const limits::Comparison& loop, double operations) {
    if (const double speed = operations / loop.limit_seconds; speed > figure.limit_operations) {
      figure.limit_operations = speed;
      figure.ratio = loop.ratio * figure.operations / operations;
      figure.limit_loop = loop.loop;
    }
  };
  // With 16 bits a matrix unit may exceed any float32 loop: those rows have no limit, but show the speed relative to
  // float32.
  const bool is_f32 = tensors.type == DataType::kF32;
  if (is_f32) take_limit(beside[1], limits::kPeakOperations * threads());
  if (is_f32 && beside.size() > 2) {
    take_limit(beside[2], sgemm.operations());
    figure.sgemm_operations = sgemm.operations() / beside[2].limit_seconds;
  }
  return figure;
}

double speed_over_f32(const Position& position, const Tensors& wide, const Tensors& narrow,
                      const limits::Effort& effort) {
  const AttentionOptions options = position.options(true);
  const limits::Loop f32{"f32", [&] { return seconds_of([&] { wide.attend(options); }); }};
  return limits::compare(
             {f32}, [&] { narrow.attend(options); }, effort)
      .ratio;
}

AttentionFigure measure_decoding(const Position& position, const Tensors& tensors, const limits::Effort& effort) {
  const std::int64_t queries = tensors.queries[2], group = tensors.queries[1] / tensors.keys[1];
  const AttentionOptions options = position.options(queries > 1);
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
    if (position.name == "rope") figures.back().bar = "over none <= +4 %";
  }
  const auto measure_narrow = [&](const Position& position, DataType type, const Tensors& wide) {
    const Tensors narrow(kHeads, 2048, 2048, wide.keys[3], type);
    AttentionFigure figure = measure_causal(position, Pass::kForward, narrow, effort);
    figure.over_f32 = speed_over_f32(position, wide, narrow, effort);
    if (type == DataType::kBF16 && position.name == "none") figure.bar = kNarrowBar;
    figures.push_back(std::move(figure));
  };
  for (const Position& position : {positions[0], positions[1], positions[3]}) {
    measure_narrow(position, DataType::kBF16, causal);
  }
  Position rounded = positions[3];
  rounded.name = "rope, rounded";
  rounded.is_rounded = true;
  measure_narrow(rounded, DataType::kBF16, causal);
  figures.back().bar = "over none <= +4 %";
  measure_narrow(positions[0], DataType::kBF16, {kHeads, 2048, 2048, 2 * kFeatures, DataType::kF32});
  const Tensors shorter(kHeads, BenchedScheme::kTokens, BenchedScheme::kTokens, kFeatures, DataType::kF32);
  for (const std::string_view name : scheme_names()) {
    if (name == "alibi" || name == "t5" || name == "rope") continue;  // above
    try {
      const BenchedScheme scheme(name, kHeads, kFeatures);
      if (!scheme.is_benched()) continue;
      const auto* const bias = std::get_if<Bias>(&scheme.position.form);
      if (bias == nullptr || bias->heads == 0 || bias->heads == kHeads) {
        figures.push_back(measure_causal(scheme.position, Pass::kForward, shorter, effort));
      } else {  // FIRE's heads are those of its network
        const Tensors own(bias->heads, BenchedScheme::kTokens, BenchedScheme::kTokens, kFeatures, DataType::kF32);
        figures.push_back(measure_causal(scheme.position, Pass::kForward, own, effort));
      }
    } catch (const Error& error) {  // it needs more than its defaults
      tell(fmt::format("note: {} was not measured: {}", name, error.what()));
    }
  }
  const std::vector<std::int64_t> volume = {4, 16, 16};
  const MropePiece pieces[] = {{.text = 256}, {.frames = 1, .rows = 32, .columns = 96}};  // 1024 tokens
  const Rope axial{.dims = kFeatures, .sections = {8, 12, 12}, .section_order = SectionOrder::kRestarting};
  const Position grids[] = {
      {"axial rope", prepare(axial), grid_positions(volume)},
      {"m-rope", prepare(Rope{.dims = kFeatures, .sections = {8, 12, 12}}), mrope_positions(pieces).ids}};
  for (const Position& position : grids) {
    figures.push_back(measure_causal(position, Pass::kForward, shorter, effort));
  }
  const Tensors cache(kHeads, 1, 32768, kFeatures, DataType::kF32);
  for (const Position& position : {positions[0], positions[1], positions[2]}) {
    figures.push_back(measure_decoding(position, cache, effort));
    if (position.name == "none") figures.back().bar = "of limit >= 85 %";
  }
  for (const DataType type : {DataType::kBF16, DataType::kF16}) {
    const Tensors narrow(kHeads, 1, 32768, kFeatures, type);
    figures.push_back(measure_decoding(positions[0], narrow, effort));
    figures.back().over_f32 = speed_over_f32(positions[0], cache, narrow, effort);
    figures.back().bar = "over f32 >= 1.7";
  }
  if (!all) return figures;
  measure_narrow(positions[1], DataType::kF16, causal);
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
    if (figure.limit_operations > 0) {
      object.emplace_back("limit", figure.limit_loop);
      object.emplace_back("limit_gflops", figure.limit_operations / kGiga);
      object.emplace_back("ratio", figure.ratio);
    }
    const bool has_sgemm = figure.sgemm_operations > 0;
    object.emplace_back("sgemm_gflops", has_sgemm ? Json(figure.sgemm_operations / kGiga) : Json(nullptr));
    if (figure.over_none > 0) object.emplace_back("over_none", figure.over_none);
    if (figure.over_f32 > 0) object.emplace_back("over_f32", figure.over_f32);
  } else {
    object.emplace_back("gb_per_s", figure.bytes / figure.seconds / kGiga);
    object.emplace_back("limit", "read");
    object.emplace_back("limit_loop", figure.limit_loop);
    object.emplace_back("limit_gb_per_s", figure.limit_bytes / kGiga);
    object.emplace_back("ratio", figure.ratio);
    if (figure.over_none > 0) object.emplace_back("over_none", figure.over_none);
    if (figure.over_f32 > 0) object.emplace_back("over_f32", figure.over_f32);
    if (figure.allocations) object.emplace_back("allocations", *figure.allocations);
  }
  if (!figure.bar.empty()) object.emplace_back("bar", figure.bar);
  return object;
}

std::string as_text(const std::vector<AttentionFigure>& figures, bool colour) {
  constexpr std::string_view kLine =
      "{}  {}  {:>5}  {:>7}  {:>9}  {:>13}  {:>8}  {:>18}  {:>6}  {:>9}  {:>8}  {:>6}  {}\n";
  std::string text =
      dim(fmt::format(kLine, pad_right("job", 22), pad_right("shape of k", 18), "dtype", "threads", "time", "speed",
                      "of limit", "limit", "SGEMM", "over none", "over f32", "allocs", "bar"),
          colour);
  for (const AttentionFigure& figure : figures) {
    const bool counts_operations = figure.operations > 0;
    const double speed = (counts_operations ? figure.operations : figure.bytes) / figure.seconds / kGiga;
    const double limit = (counts_operations ? figure.limit_operations : figure.limit_bytes) / kGiga;
    const std::string_view unit = counts_operations ? "GFLOP/s" : "GB/s";
    const std::string sgemm = figure.sgemm_operations > 0 ? fmt::format("{:.1f}", figure.sgemm_operations / kGiga)
                              : counts_operations && limit > 0 ? "none"
                                                               : "";
    std::string line = fmt::format(
        kLine, pad_right(figure.job, 22), pad_right(to_string(figure.shape), 18), name_of(figure.type),
        figure.threads, fmt::format("{:.2f} ms", figure.seconds * 1e3), fmt::format("{:.1f} {}", speed, unit),
        limit > 0 ? fmt::format("{:.1f} %", 100 * figure.ratio) : "",
        limit > 0 ? fmt::format("{:.1f} {}", limit, figure.limit_loop) : "", sgemm,
        figure.over_none > 0 ? fmt::format("{:+.1f} %", 100 * (figure.over_none - 1)) : "",
        figure.over_f32 > 0 ? fmt::format("{:.2f}", figure.over_f32) : "",
        figure.allocations ? fmt::format("{:g}", *figure.allocations) : "", figure.bar);
    while (line.ends_with(" \n")) line.erase(line.size() - 2, 1);
    text += line;
  }
  return text;
}

}  // namespace posenc::bench
