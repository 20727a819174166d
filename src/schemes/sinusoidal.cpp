#include "posenc/schemes/sinusoidal.h"

#include <algorithm>

#include "numerics/real.h"
#include "schemes/check.h"

namespace posenc {
namespace {

using numerics::Real;

void check(const Sinusoidal& s) {
  schemes::check_between(Sinusoidal::name, "width", s.width, 1, schemes::kWidthLimit);
  schemes::check_between(Sinusoidal::name, "axes", s.axes, 1, 3);
  if (!(s.base >= 1.0 && s.base <= 1e36)) {
    raise(fmt::format("sinusoidal: base must be between 1 and 1e36 but is {}", s.base));
  }
  if (!(std::fabs(s.scale) <= 32768.0)) {  // larger values would exceed the range of f16
    raise(fmt::format("sinusoidal: scale must be between -32768 and 32768 but is {}", s.scale));
  }
  if (s.odd != OddWidth::kRefuse || s.width % (2 * s.axes) == 0) return;
  const std::string rule = s.axes == 1 ? "even" : fmt::format("a multiple of {} for {} axes", 2 * s.axes, s.axes);
  raise(fmt::format("sinusoidal: width must be {} but is {} (odd trim or zero says how such a width ends)", rule,
                    s.width));
}

// ω_i = base^(−i·numerator/denominator). With one pair, inclusive spacing has no second end; as in tensor2tensor,
// that pair then has frequency 1.
struct Step {
  std::int64_t numerator;
  std::int64_t denominator;
};
Step exponent_step(const Sinusoidal& s, std::int64_t features, std::int64_t pairs) {
  if (s.spacing == Spacing::kPaper) return {2, features};
  return {1, std::max<std::int64_t>(pairs - 1, 1)};
}

// The float32 arithmetic of engines, each operation rounded as theirs. Hugging Face's torch sinusoids (Whisper,
// M2M100, Speech2Text): exp(i · float(−ln(base)/denominator)). ggml: one ratio powf(base, −numerator/denominator),
// multiplied from pair to pair.
std::vector<float> float32_factors(Numerics numerics, double base, Step step, std::int64_t pairs) {
  std::vector<float> factors;
  if (numerics == Numerics::kExact) return factors;
  if (numerics == Numerics::kGgmlF32) {
    const float exponent = -static_cast<float>(step.numerator) / static_cast<float>(step.denominator);
    factors.assign(pairs, numerics::nearest_float(pow(Real(static_cast<float>(base)), Real(exponent))));
    factors.front() = 1.0f;
    return factors;
  }
  const Real log_ratio = -log(Real(base)) * step.numerator / step.denominator;
  const auto exponent = static_cast<float>(log_ratio.convert_to<double>());  // Python's double, then torch's float
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float product = exponent * static_cast<float>(i);
    factors.push_back(numerics::nearest_float(exp(Real(product))));
  }
  return factors;
}

// Columns of one axis whose waves begin at `first`: sine and cosine of each pair, in the layout's order.
void append_columns(std::vector<WaveColumn>& columns, WaveLayout layout, std::int64_t first, std::int64_t pairs) {
  const auto column = [&](std::int64_t pair, int quarter) {
    columns.push_back({static_cast<std::int32_t>(first + pair), static_cast<std::uint8_t>(quarter)});
  };
  if (layout == WaveLayout::kInterleaved) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      column(i, 0);
      column(i, 1);
    }
    return;
  }
  const int front = layout == WaveLayout::kSinCos ? 0 : 1;
  for (std::int64_t i = 0; i < pairs; ++i) column(i, front);
  for (std::int64_t i = 0; i < pairs; ++i) column(i, 1 - front);
}

}  // namespace

Addition prepare(const Sinusoidal& s, const PrepareOptions& options) {
  check(s);
  if (s.turns && options.numerics != Numerics::kExact) {
    raise(fmt::format("sinusoidal: {} is not available with turns: coordinates are fractions",
                      name_of(options.numerics)));
  }
  const bool up = s.odd == OddWidth::kTrim;
  const std::int64_t group = 2 * s.axes;
  const std::int64_t pairs = (s.width + (up ? group - 1 : 0)) / group;  // per axis
  // An odd width on one axis keeps its own width in the exponent, as XLM and Marian do.
  const std::int64_t features = s.axes == 1 ? s.width : 2 * pairs;
  const Step step = exponent_step(s, features, pairs);
  std::vector<Real> radians = numerics::geometric(s.base, Real(step.numerator) / step.denominator, pairs);
  if (s.turns) {
    for (Real& one : radians) one *= numerics::two_pi();
  }
  const std::vector<float> factors = float32_factors(options.numerics, s.base, step, pairs);

  Waves waves;
  waves.scale = s.scale;
  waves.axes = static_cast<int>(s.axes);
  waves.float32_angles.chain = options.numerics == Numerics::kGgmlF32 ? pairs : 0;
  std::vector<float>& all_factors = waves.float32_angles.factors;
  for (std::int64_t axis = 0; axis < s.axes; ++axis) {
    append_columns(waves.columns, s.layout, axis * pairs, pairs);
    const std::int64_t denominator = schemes::denominator_of(Sinusoidal::name, options, axis, s.axes);
    for (const Real& value : radians) {
      waves.waves.push_back(
          {numerics::frequency_from(schemes::over(value, denominator)), static_cast<std::uint8_t>(axis)});
    }
    all_factors.insert(all_factors.end(), factors.begin(), factors.end());
  }
  if (static_cast<std::int64_t>(waves.columns.size()) < s.width) {  // columns of zeros: the sine of frequency 0
    const auto zero = static_cast<std::int32_t>(waves.waves.size());
    waves.waves.push_back({});
    if (!all_factors.empty()) all_factors.push_back(0.0f);
    waves.columns.resize(s.width, WaveColumn{zero, 0});
  }
  waves.columns.resize(s.width);
  return {s.width, std::move(waves)};
}

}  // namespace posenc
