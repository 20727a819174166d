// Ports of ALiBi and T5, right and with one mistake each, as scores before and after: all queries, all queries under a
// causal mask, and the last two of a cache; in f32, f16 and bf16, 4, 16, 64 and 256 keys: see port_matrix.h. A run of the
// tests takes a sample; all of them, with the label `rest`:
//   POSENC_DIAGNOSIS_MATRIX=all diagnosis_tests --gtest_filter='CheckMatrix.*'

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "port_matrix.h"

namespace posenc::bias_matrix_test {
namespace {

using namespace tests;

enum class Form : std::uint8_t { kSquare, kCausal, kCached };
std::string_view name_of(Form form) {
  return form == Form::kSquare ? "square" : form == Form::kCausal ? "causal" : "cached";
}

// head, position of the query, position of the key → what is added
using Added = std::function<double(std::int64_t, std::int64_t, std::int64_t)>;

std::vector<double> slopes_of(std::int64_t heads, double max_bias = 8) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> list;
  const auto p = static_cast<double>(power);
  for (std::int64_t h = 0; h < power; ++h) list.push_back(std::exp2(-max_bias * static_cast<double>(h + 1) / p));
  for (std::int64_t h = 0; h < heads - power; ++h) {
    list.push_back(std::exp2(-max_bias * static_cast<double>(2 * h + 1) / (2 * p)));
  }
  return list;
}
Added with_slopes(const std::vector<double>& slopes, double factor = 1) {
  return [=](std::int64_t h, std::int64_t m, std::int64_t n) {
    return -factor * slopes[static_cast<std::size_t>(h)] * static_cast<double>(std::abs(n - m));
  };
}

std::int64_t bucket_of(std::int64_t delta, const T5& t5) {
  std::int64_t count = t5.buckets, first = 0, distance = std::max<std::int64_t>(-delta, 0);
  if (t5.bidirectional) {
    count /= 2;
    first = delta > 0 ? count : 0;
    distance = std::abs(delta);
  }
  const std::int64_t exact = count / 2;
  if (distance < exact) return first + distance;
  const double steps = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(t5.max_distance) / static_cast<double>(exact));
  const auto far = static_cast<std::int64_t>(std::floor(steps * static_cast<double>(count - exact) + 1e-9));
  return first + std::min(exact + far, count - 1);
}
// A table for 32 buckets; a port that asks for more gets the last row.
std::vector<double> table_of(std::int64_t heads) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal(0, 3);
  std::vector<double> table(static_cast<std::size_t>(32 * heads));
  for (double& value : table) value = normal(random);
  return table;
}
Added with_buckets(const T5& t5) {
  return [t5, table = table_of(t5.heads)](std::int64_t h, std::int64_t m, std::int64_t n) {
    return table[static_cast<std::size_t>(std::min<std::int64_t>(bucket_of(n - m, t5), 31) * t5.heads + h)];
  };
}

struct Wrong {
  std::string name, words;
  Added added;
  bool lacks_offset = false;       // of cached queries
  bool is_for_all_queries = true;  // whether a mask, or a single row, would leave only a constant
};

std::vector<Wrong> wrong_ports(const Alibi& alibi) {
  const std::int64_t heads = alibi.heads;
  const std::vector<double> right = slopes_of(heads, alibi.max_bias);
  const Added usual = with_slopes(right, alibi.scale);
  std::vector<Wrong> list;
  list.push_back({"not applied", "", [](auto, auto, auto) { return 0.0; }});
  const auto slopes = [&](std::string name, std::string words, const std::vector<double>& other) {
    if (other != right) list.push_back({std::move(name), std::move(words), with_slopes(other, alibi.scale)});
  };
  std::vector<double> more = slopes_of(2 * heads, alibi.max_bias), half = slopes_of(heads / 2, alibi.max_bias);
  slopes("twice the heads", heads == 8 ? "max_bias: expected 8, got 4" : "of those of 24 heads", more);
  half.insert(half.end(), half.begin(), half.end());
  slopes("half the heads", "start again every", half);
  std::vector<double> sixteen = slopes_of(16, alibi.max_bias), naive, early;
  if (heads == 12) slopes("slopes of 16", "of those of 16 heads", sixteen);
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto share = alibi.max_bias / static_cast<double>(heads);
    naive.push_back(std::exp2(-share * static_cast<double>(h + 1)));
    early.push_back(right[static_cast<std::size_t>(h)] * (h < 8 ? 2 : std::sqrt(2.0)));
  }
  slopes("for powers of two", "is for powers of two", naive);
  slopes("from 0", heads == 8 ? "scale: expected" : "exponents of slopes start at 0", early);
  slopes("in reverse", "in the reverse order", {right.rbegin(), right.rend()});
  slopes("half of max_bias", "max_bias: expected 8, got 4", slopes_of(heads, alibi.max_bias / 2));
  slopes("twice max_bias", "max_bias: expected 8, got 16", slopes_of(heads, alibi.max_bias * 2));
  slopes("base e", "max_bias: expected 8, got 11.5", slopes_of(heads, alibi.max_bias / std::log(2.0)));
  list.push_back({"sign", "sign is flipped", with_slopes(right, -alibi.scale)});
  list.push_back({"factor", "scale: expected", with_slopes(right, alibi.scale == 1 ? 0.125 : 1)});
  list.push_back(
      {"signed distances", "Keys after the query gain",
       [=](std::int64_t h, std::int64_t m, std::int64_t n) { return n > m ? -usual(h, m, n) : usual(h, m, n); },
       false, false});
  list.push_back({"no offset", "Queries are counted from 0", usual, true});
  list.push_back({"off by one", "Queries are off by 1",
                  [=](std::int64_t h, std::int64_t m, std::int64_t n) { return usual(h, m + 1, n); }, false, false});
  return list;
}

std::vector<Wrong> wrong_ports(const T5& t5) {
  const Added usual = with_buckets(t5);
  std::vector<Wrong> list;
  list.push_back({"not applied", "", [](auto, auto, auto) { return 0.0; }});
  const auto add = [&](std::string name, std::string words, const auto& change) {
    T5 port = t5;
    change(port);
    if (!(port == t5)) list.push_back({std::move(name), std::move(words), with_buckets(port)});
  };
  for (const std::int64_t distance : {20, 64, 100, 160, 256, 512, 1000}) {
    add(fmt::format("max_distance {}", distance), "max_distance: expected",
        [=](T5& port) { port.max_distance = distance; });
  }
  for (const std::int64_t buckets : {16, 64}) {
    add(fmt::format("{} buckets", buckets), "buckets: expected", [=](T5& port) { port.buckets = buckets; });
  }
  add("direction", "bidirectional: expected", [](T5& port) { port.bidirectional = !port.bidirectional; });
  list.push_back({"transposed", "queries and keys are swapped",
                  [=](std::int64_t h, std::int64_t m, std::int64_t n) { return usual(h, n, m); }});
  list.push_back({"no offset", "Queries are counted from 0", usual, true});
  list.push_back({"off by one", "Queries are off by 1",
                  [=](std::int64_t h, std::int64_t m, std::int64_t n) { return usual(h, m + 1, n); }});
  list.push_back({"heads in reverse", "eads",
                  [=](std::int64_t h, std::int64_t m, std::int64_t n) { return usual(t5.heads - 1 - h, m, n); }});
  return list;
}

struct Case {
  Scheme scheme;
  std::int64_t heads;
  Added right;
  Wrong wrong;
  DataType type;
  Form form;
  std::int64_t keys;
};

CheckResult checked(const Case& one, bool is_right, const DecidingTokens* enough) {
  const std::int64_t keys = enough == nullptr ? one.keys : enough->tokens;
  const bool is_short = one.form == Form::kCached || keys > 300;
  const std::int64_t count = is_short ? std::min<std::int64_t>(2, keys) : keys;
  const Extents shape{one.heads, count, keys};
  Typed before = queries(shape, one.type, enough == nullptr ? 3 : 4);
  std::vector<double> after = before.values;
  const Added& added = is_right ? one.right : one.wrong.added;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t key = at % keys, query = at / keys % count, head = at / keys / count;
    const std::int64_t counted = !is_right && one.wrong.lacks_offset ? query : query + keys - count;
    after[i] += added(head, counted, key);
    if (one.form == Form::kCausal && key > query + keys - count) after[i] = -std::numeric_limits<double>::infinity();
  }
  CheckOptions options;
  const std::vector<double> table = table_of(one.heads);
  if (std::holds_alternative<T5>(one.scheme)) options.weights = view(table.data(), {32, one.heads});
  return check(one.scheme, before.view(), typed(after, shape, one.type).view(), options);
}

void add_cases(const char* name, const Scheme& scheme, std::int64_t heads, const Added& right,
               const std::vector<Wrong>& wrongs, std::vector<PortCase>& cases) {
  for (const Wrong& wrong : wrongs) {
    for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16}) {
      for (const std::int64_t keys : {4, 16, 64, 256}) {
        for (const Form form : {Form::kSquare, Form::kCausal, Form::kCached}) {
          if ((wrong.lacks_offset && form != Form::kCached) || (!wrong.is_for_all_queries && form != Form::kSquare)) {
            continue;
          }
          const Case one{scheme, heads, right, wrong, type, form, keys};
          cases.push_back(
              {name, wrong.name, fmt::format("{}, {} keys, {}", posenc::name_of(type), keys, name_of(form)),
               wrong.words,
               [one](bool is_right, const DecidingTokens* enough) { return checked(one, is_right, enough); }});
        }
      }
    }
  }
}

TEST(CheckMatrix, NoWrongBiasesPass) {
  std::vector<PortCase> cases;
  for (const auto& [name, alibi] : {std::pair{"alibi 8", Alibi{.heads = 8}},
                                    {"alibi 12", Alibi{.heads = 12}},
                                    {"falcon", Alibi{.heads = 8, .scale = 0.125}}}) {
    add_cases(name, alibi, alibi.heads, with_slopes(slopes_of(alibi.heads), alibi.scale), wrong_ports(alibi), cases);
  }
  for (const bool is_encoder : {true, false}) {
    const T5 t5{.heads = 4, .bidirectional = is_encoder};
    add_cases(is_encoder ? "t5 encoder" : "t5 decoder", t5, 4, with_buckets(t5), wrong_ports(t5), cases);
  }
  run_port_cases(cases, 151);
}

}  // namespace
}  // namespace posenc::bias_matrix_test
