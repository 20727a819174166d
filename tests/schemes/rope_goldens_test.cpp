// What transformers computes for rotary models (oracle/data/goldens/README.md), every case of it: frequencies,
// cosines and sines, rotated queries and keys; and the frequencies of its own tests (oracle/data/frequencies).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "backends.h"
#include "posenc/files.h"
#include "posenc/posenc.h"

namespace posenc::rope_goldens_test {
namespace {

std::string bytes_of(const std::string& name) {
  std::ifstream file(std::string(POSENC_TEST_DATA) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

double number(const Json& json) {
  const auto* const integer = json.as<std::int64_t>();
  return integer != nullptr ? static_cast<double>(*integer) : *json.as<double>();
}

struct GoldenCase {
  std::string name;
  Scheme scheme;
  PrepareOptions prepare;
  double magnitude = 1.0;
  std::vector<std::int64_t> ids;
  bool heads_last = false;  // [batch, sequence, heads, features]
  std::map<std::string, std::vector<float>> values;
  std::map<std::string, Extents> shapes;

  const Rope& rope() const { return std::get<Rope>(scheme); }
  int axes() const { return rope().sections.empty() ? 1 : 3; }
  Positions positions() const { return {.ids = ids, .axes = axes()}; }
};

std::vector<GoldenCase> golden_cases() {
  const std::string raw = bytes_of("goldens/rope.npy");
  const NpyArray all = read_npy(std::as_bytes(std::span(raw)));
  const auto* numbers = reinterpret_cast<const float*>(all.bytes.data());
  std::vector<GoldenCase> cases;
  const Json root = parse_json(bytes_of("goldens/rope.json"));
  for (const Json& json : *root.as<Json::Array>()) {
    GoldenCase one;
    one.name = *json.find("name")->as<std::string>();
    one.scheme = scheme_from_json(dump_json(*json.find("scheme")));
    one.prepare.length = *json.find("length")->as<std::int64_t>();
    one.magnitude = number(*json.find("magnitude"));
    one.heads_last = *json.find("axes")->as<std::string>() == "batch,seq,heads,dim";
    const Json* ids = json.find("positions");
    if (ids->as<Json::Array>() == nullptr) ids = json.find("tensors")->find("positions_thw")->find("values");
    for (const Json& id : *ids->as<Json::Array>()) one.ids.push_back(*id.as<std::int64_t>());
    for (const auto& [name, tensor] : *json.find("tensors")->as<Json::Object>()) {
      Extents shape;
      for (const Json& extent : *tensor.find("shape")->as<Json::Array>()) shape.push_back(*extent.as<std::int64_t>());
      if (name == "positions_thw") continue;
      const std::int64_t offset = *tensor.find("offset")->as<std::int64_t>();
      one.values[name] = {numbers + offset, numbers + offset + count_of(shape)};
      one.shapes[name] = shape;
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

double ulp(double value) { return std::ldexp(1.0, std::max(std::ilogb(value == 0 ? 1e-40 : value), -126) - 23); }

// Cosine and sine of pair i at token t as the golden has them.
double golden_wave(const GoldenCase& one, const std::string& which, std::int64_t t, std::int64_t pair) {
  const std::int64_t columns = one.shapes.at(which).back(0);
  const bool doubled = one.name == "cohere-interleaved";  // each column twice, side by side
  return static_cast<double>(
      one.values.at(which)[static_cast<std::size_t>(t * columns + (doubled ? 2 * pair : pair))]);
}

// The golden's own frequencies as float32 factors.
Rotation with_golden_frequencies(const GoldenCase& one) {
  Rotation form = prepare(one.rope(), {.length = one.prepare.length, .numerics = Numerics::kHfF32});
  const auto found = one.values.find("inv_freq");
  if (found != one.values.end()) std::get<PairWaves>(form.source).float32_angles.factors = found->second;
  return form;
}

TEST(RopeGoldens, CosinesAndSinesAreWithinOneUlpOfTheirFloat32Chain) {
  for (const GoldenCase& one : golden_cases()) {
    SCOPED_TRACE(one.name);
    const Rotation form = with_golden_frequencies(one);
    const std::int64_t pairs = one.rope().dims / 2, tokens = std::ssize(one.ids) / one.axes();
    std::vector<float> cosines(static_cast<std::size_t>(tokens * pairs)), sines(cosines.size());
    // torch's sine is off by 1 ulp here and there. Times a magnitude, that ulp grows with it, and both are rounded
    // again.
    const auto room = [&](double value) {
      return one.magnitude == 1 ? ulp(value) : one.magnitude * ulp(value / one.magnitude) + ulp(value);
    };
    tests::for_each_engine([&] {
      tabulate(view(cosines.data(), {tokens, pairs}), view(sines.data(), {tokens, pairs}), one.positions(), form);
      for (std::int64_t t = 0; t < tokens; ++t) {
        for (std::int64_t i = 0; i < pairs; ++i) {
          const auto at = static_cast<std::size_t>(t * pairs + i);
          const double c = golden_wave(one, "cos", t, i), s = golden_wave(one, "sin", t, i);
          ASSERT_LE(std::fabs(static_cast<double>(cosines[at]) - c), room(c)) << t << ' ' << i;
          ASSERT_LE(std::fabs(static_cast<double>(sines[at]) - s), room(s)) << t << ' ' << i;
        }
      }
    });
  }
}

TEST(RopeGoldens, MagnitudeIsTheirs) {
  for (const GoldenCase& one : golden_cases()) {
    const Rotation form = prepare(one.rope(), one.prepare);
    EXPECT_NEAR(form.magnitude, one.magnitude, 1e-15 * one.magnitude) << one.name;
  }
}

// From their frequencies: cosines and sines that differ by 1 ulp, two products and a sum.
TEST(RopeGoldens, RotatedQueriesAndKeysAreWithinTwoUlpOfTheLargerTerm) {
  for (const GoldenCase& one : golden_cases()) {
    SCOPED_TRACE(one.name);
    const Rotation form = with_golden_frequencies(one);
    const std::int64_t pairs = one.rope().dims / 2;
    tests::for_each_engine([&] {
      for (const std::string name : {"q", "k", "x"}) {
        if (!one.values.contains(name)) continue;
        const Extents& shape = one.shapes.at(name);
        std::vector<float> got = one.values.at(name);
        const TensorView plain = view(got.data(), shape);
        rotate(one.heads_last ? swap_axes(plain, 1, 2) : plain, one.positions(), form);
        const std::vector<float>&want = one.values.at(name + "_rot"), &before = one.values.at(name);
        const std::int64_t features = shape.back(0), sequence = one.heads_last ? shape[1] : shape[2];
        const std::int64_t per_token = one.heads_last ? shape[2] : 1;
        for (std::size_t i = 0; i < got.size(); ++i) {
          const std::int64_t feature = static_cast<std::int64_t>(i) % features;
          if (feature >= 2 * pairs) {
            ASSERT_EQ(got[i], want[i]) << i;
            continue;
          }
          const bool halves = one.rope().layout == PairLayout::kHalves;
          const std::int64_t pair = halves ? feature % pairs : feature / 2;
          const std::int64_t partner = halves ? (feature + pairs) % (2 * pairs) : feature ^ 1;
          const std::int64_t t = static_cast<std::int64_t>(i) / features / per_token % sequence;
          const double c = golden_wave(one, "cos", t, pair), s = golden_wave(one, "sin", t, pair);
          const double own = static_cast<double>(before[i]) * c;
          const double other =
              static_cast<double>(before[i - static_cast<std::size_t>(feature) + static_cast<std::size_t>(partner)]) *
              s;
          const double largest =
              std::max({std::fabs(own), std::fabs(other), std::fabs(static_cast<double>(want[i]))});
          ASSERT_LE(std::fabs(static_cast<double>(got[i]) - static_cast<double>(want[i])), 2 * ulp(largest)) << i;
        }
      }
    });
  }
}

// With their own cosines and sines as a table, not a bit differs.
TEST(RopeGoldens, TheirTableGivesTheirBytes) {
  for (const GoldenCase& one : golden_cases()) {
    SCOPED_TRACE(one.name);
    const std::int64_t pairs = one.rope().dims / 2, tokens = std::ssize(one.ids) / one.axes();
    const std::int64_t columns = one.shapes.at("cos").back(0), step = one.name == "cohere-interleaved" ? 2 : 1;
    const Extents shape = {1, tokens, pairs}, strides = {0, columns, step};
    const Rotation form{.layout = one.rope().layout,
                        .source = RotationTable{{one.values.at("cos").data(), DataType::kF32, shape, strides},
                                                {one.values.at("sin").data(), DataType::kF32, shape, strides}}};
    tests::for_each_engine([&] {
      for (const std::string name : {"q", "k", "x"}) {
        if (!one.values.contains(name)) continue;
        std::vector<float> got = one.values.at(name);
        const TensorView plain = view(got.data(), one.shapes.at(name));
        rotate(one.heads_last ? swap_axes(plain, 1, 2) : plain, {}, form);
        EXPECT_EQ(got, one.values.at(name + "_rot"));
      }
    });
  }
}

// Ours are what the formula gives where every step is rounded correctly. torch's float32 pow is 1 ulp off at these
// pairs, which its inverse may make 2.
const std::map<std::string, std::set<std::size_t>> kTorchPowIsOff = {
    {"dynamic-2-beyond", {29, 51}}, {"gemma3-full_attention", {74}}, {"longrope-long", {20}}, {"yarn-qwen25", {37}}};

TEST(RopeGoldens, OurFloat32FrequenciesAreTheirsButWhereTorchIsOff) {
  std::size_t compared = 0, off = 0;
  for (const GoldenCase& one : golden_cases()) {
    if (!one.values.contains("inv_freq")) continue;
    const std::vector<float>& want = one.values.at("inv_freq");
    const auto got = pair_waves_of(prepare(one.rope(), {.length = one.prepare.length, .numerics = Numerics::kHfF32}))
                         .float32_angles.factors;
    ASSERT_EQ(got.size(), want.size()) << one.name;
    const auto known = kTorchPowIsOff.find(one.name);
    for (std::size_t i = 0; i < want.size(); ++i) {
      ++compared;
      if (got[i] == want[i]) continue;
      ++off;
      EXPECT_TRUE(known != kTorchPowIsOff.end() && known->second.contains(i)) << one.name << " pair " << i;
      EXPECT_NEAR(got[i], want[i], 2 * ulp(static_cast<double>(want[i]))) << one.name << " pair " << i;
    }
  }
  EXPECT_GE(compared, 800u);
  EXPECT_EQ(off, 5u);
}

// Why exact differs from them: their angle is float(p · float(ω)). The difference of the two cosines is at most that
// of the two angles, and equals it where the cosine is steep.
TEST(RopeGoldens, ExactDiffersByTheErrorOfTheirFloat32Angle) {
  double largest_difference = 0;
  for (const GoldenCase& one : golden_cases()) {
    if (!one.values.contains("inv_freq")) continue;
    SCOPED_TRACE(one.name);
    const Rotation exact = prepare(one.rope(), one.prepare);
    const std::int64_t pairs = one.rope().dims / 2, tokens = std::ssize(one.ids);
    std::vector<double> cosines(static_cast<std::size_t>(tokens * pairs)), sines(cosines.size());
    tabulate(view(cosines.data(), {tokens, pairs}), view(sines.data(), {tokens, pairs}), one.positions(), exact);
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t i = 0; i < pairs; ++i) {
        const auto pair = static_cast<std::size_t>(i), at = static_cast<std::size_t>(t * pairs + i);
        const auto position = static_cast<float>(one.ids[static_cast<std::size_t>(t)]);
        const float angle = position * one.values.at("inv_freq")[pair];
        const auto omega = static_cast<long double>(radians_of(exact.frequencies[pair]));
        const auto far = static_cast<long double>(position);
        const long double error = std::fabs(static_cast<long double>(angle) - far * omega);
        const double got = golden_wave(one, "cos", t, i) - cosines[at];
        const double rounding = 1.5 * ulp(one.magnitude) + 1e-15 * static_cast<double>(position);
        ASSERT_LE(std::fabs(got), one.magnitude * static_cast<double>(error) + rounding) << t << ' ' << i;
        // To first order the cosine moves by sin · error.
        const double moved = static_cast<double>(static_cast<long double>(angle) - far * omega) * -sines[at];
        ASSERT_LE(std::fabs(got - moved), static_cast<double>(error * error) * one.magnitude + rounding)
            << t << ' ' << i;
        largest_difference = std::max(largest_difference, std::fabs(got));
      }
    }
  }
  EXPECT_GT(largest_difference, 1e-3) << "the float32 angles should be visibly off at position 131071";
}

TEST(RopeFrequencies, AreThoseOfTransformersForEveryScaling) {
  const Json root = parse_json(bytes_of("frequencies/frequencies.json"));
  std::set<std::string_view> scalings;
  for (const Json& json : *root.as<Json::Array>()) {
    const std::string& name = *json.find("name")->as<std::string>();
    SCOPED_TRACE(name);
    const Scheme scheme = scheme_from_json(dump_json(*json.find("scheme")));
    const PrepareOptions options{.length = *json.find("length")->as<std::int64_t>(), .numerics = Numerics::kHfF32};
    const Rotation form = prepare(std::get<Rope>(scheme), options);
    const auto& want = *json.find("frequencies")->as<Json::Array>();
    const std::string& printed = *json.find("tolerance")->as<std::string>();
    ASSERT_EQ(form.frequencies.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double value = number(want[i]), exact = radians_of(form.frequencies[i]);
      const auto narrow = static_cast<double>(pair_waves_of(form).float32_angles.factors[i]);
      // Half a unit of the last digit they print; or what float32 arithmetic may lose on the way, 5 ulp.
      const double room = printed == "5 digits" ? 5e-5 * value : printed == "4 decimals" ? 5e-5 : 0;
      EXPECT_NEAR(exact, value, std::max(room, 6e-7 * value)) << i;
      EXPECT_NEAR(narrow, value, std::max(room, 1.3e-7 * value)) << i;
    }
    const Json* const magnitude = json.find("magnitude");
    EXPECT_NEAR(form.magnitude, magnitude == nullptr ? form.magnitude : number(*magnitude), 1e-15);
    scalings.insert(std::visit([](const auto& scaling) { return scaling.name; }, *std::get<Rope>(scheme).scaling));
  }
  // every one that transformers has
  for (const char* const name : {"none", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"}) {
    EXPECT_TRUE(scalings.contains(name)) << name;
  }
}

// Trained on 64 positions, no pair makes 32 full turns: the ramp would begin below pair 0, and begins there. It ends with
// pair ceil(8 ln(64 / 2π) / (2 ln 10000)) = ceil(1.008) = 2, so that pair 1 is halfway.
TEST(RopeFrequencies, YarnsRampBeginsWithPair0AtTheEarliest) {
  const Rotation form = prepare(Rope{.dims = 8, .scaling = YarnScaling{.factor = 4, .original_length = 64}});
  const double expected[] = {1, 0.1 * (0.5 + 0.5 / 4), 0.01 / 4, 0.001 / 4};
  ASSERT_EQ(form.frequencies.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_NEAR(radians_of(form.frequencies[i]), expected[i], 1e-15) << i;
  }
}

// DeepSeek's second factor, on the softmax scale: (0.1 · mscale_all_dim · ln 40 + 1)².
TEST(RopeFrequencies, YarnGivesTheSoftmaxFactorOfDeepSeek) {
  const auto factor = [](double mscale) {
    const YarnScaling scaling{.factor = 40, .original_length = 4096, .mscale = mscale, .mscale_all_dim = mscale};
    return prepare(Rope{.dims = 64, .scaling = scaling}).softmax_factor;
  };
  EXPECT_NEAR(factor(1.0), 1.8739, 1e-4);
  EXPECT_NEAR(factor(0.707), std::pow(0.0707 * std::log(40.0) + 1, 2), 1e-14);
  EXPECT_EQ(prepare(Rope{.scaling = YarnScaling{.factor = 4, .original_length = 32768}}).softmax_factor, 1.0);
}

}  // namespace
}  // namespace posenc::rope_goldens_test
