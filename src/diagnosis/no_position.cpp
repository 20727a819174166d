#include "diagnosis/no_position.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "diagnosis/waves.h"

namespace posenc::diagnosis {
namespace {

// Fits with parameters per feature need more vectors than that.
constexpr std::int64_t kFewestVectors = 8;

std::int64_t vectors_of(const Samples& samples) { return samples.heads * samples.sequence; }

// The energy that three roundings may leave.
double room_of(const Samples& samples) { return 9 * samples.rounding * samples.rounding * samples.energy; }

// y = w·z + b, with w and b per feature: what it leaves unexplained.
double affine_residual(const std::vector<double>& z, const Samples& samples) {
  const std::size_t width = samples.features;
  double left = 0;
  for (std::size_t feature = 0; feature < width; ++feature) {
    double mean_z = 0, mean_y = 0, zz = 0, zy = 0;
    const double count = static_cast<double>(vectors_of(samples));
    for (std::size_t i = feature; i < z.size(); i += width) {
      mean_z += z[i] / count;
      mean_y += samples.after[i] / count;
    }
    for (std::size_t i = feature; i < z.size(); i += width) {
      zz += (z[i] - mean_z) * (z[i] - mean_z);
      zy += (z[i] - mean_z) * (samples.after[i] - mean_y);
    }
    const double slope = zz > 0 ? zy / zz : 0;
    for (std::size_t i = feature; i < z.size(); i += width) {
      const double rest = samples.after[i] - mean_y - slope * (z[i] - mean_z);
      left += rest * rest;
    }
  }
  return left;
}

std::optional<std::string> scaled(const Samples& samples) {
  double product = 0, square = 0, left = 0;
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    product += samples.before[i] * samples.after[i];
    square += samples.before[i] * samples.before[i];
  }
  const double factor = square > 0 ? product / square : 0;
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    left += std::pow(samples.after[i] - factor * samples.before[i], 2);
  }
  if (left > room_of(samples)) return std::nullopt;
  if (samples.change <= room_of(samples)) return "every value changes by no more than rounding";
  return fmt::format("every value is multiplied by {:.6g}", factor);
}

std::optional<std::string> shifted_or_weighted(const Samples& samples) {
  if (vectors_of(samples) < kFewestVectors) return std::nullopt;
  const std::size_t width = samples.features;
  std::vector<double> mean(width);
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    mean[i % width] += (samples.after[i] - samples.before[i]) / static_cast<double>(vectors_of(samples));
  }
  double left = 0;
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    left += std::pow(samples.after[i] - samples.before[i] - mean[i % width], 2);
  }
  if (left <= room_of(samples)) return "the same vector is added to every token";
  if (affine_residual(samples.before, samples) <= room_of(samples)) {
    return "each feature is multiplied by its own factor, the same for every token";
  }
  return std::nullopt;
}

// Whether y has at most the given number of significant bits, and is x rounded to them.
bool is_rounded(const Samples& samples, int bits) {
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    const double y = samples.after[i], x = samples.before[i];
    int exponent = 0;
    const double fraction = std::ldexp(std::frexp(y, &exponent), bits);
    if (fraction != std::floor(fraction)) return false;
    if (std::fabs(y - x) > std::ldexp(std::fabs(x), -bits) * 1.001 + 1e-7 * std::fabs(x) + 6e-8) return false;
  }
  return true;
}

// Whether the values of a group are integer multiples of one step, at most 255 in either direction, and close to x.
bool is_on_grid(const std::vector<double>& x, std::vector<double> y) {
  const std::vector<double> all = y;
  std::sort(y.begin(), y.end());
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double step = kNone, largest = 0;
  for (std::size_t i = 1; i < y.size(); ++i) {
    if (y[i] - y[i - 1] > 1e-7 * (std::fabs(y.front()) + std::fabs(y.back()))) step = std::min(step, y[i] - y[i - 1]);
    largest = std::max({largest, std::fabs(y[i]), std::fabs(y[i - 1])});
  }
  if (!(step < kNone) || largest / step > 256 || largest / step < 4) return false;
  std::size_t away = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double level = all[i] / step;
    if (std::fabs(level - std::round(level)) > 0.02) return false;
    away += std::fabs(all[i] - x[i]) > 0.52 * step ? 1 : 0;
  }
  return away * 50 <= all.size();  // values past the ends are clamped
}

std::optional<std::string> quantised(const Samples& samples) {
  for (const auto& [bits, name] : std::array<std::pair<int, const char*>, 4>{
           {{11, "float16"}, {8, "bfloat16"}, {4, "float8 (e4m3)"}, {3, "float8 (e5m2)"}}}) {
    if (is_rounded(samples, bits)) return fmt::format("every value is rounded to {}", name);
  }
  if (is_on_grid(samples.before, samples.after)) return "every value is rounded to a whole number of steps (int8)";
  // a separate step for each head, or each vector
  for (const std::size_t size :
       {samples.after.size() / static_cast<std::size_t>(samples.heads), static_cast<std::size_t>(samples.features)}) {
    bool is_grid = size >= 16;
    for (std::size_t at = 0; at < samples.after.size() && is_grid; at += size) {
      const auto part = [&](const std::vector<double>& from) {
        return std::vector<double>(from.begin() + static_cast<std::ptrdiff_t>(at),
                                   from.begin() + static_cast<std::ptrdiff_t>(at + size));
      };
      is_grid = is_on_grid(part(samples.before), part(samples.after));
    }
    if (is_grid) return "every value is rounded to a whole number of steps (int8)";
  }
  return std::nullopt;
}

std::optional<std::string> dropped(const Samples& samples) {
  double product = 0, square = 0, left = 0;
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    if (samples.after[i] == 0) {
      zeros += samples.before[i] != 0 ? 1 : 0;
      continue;
    }
    product += samples.before[i] * samples.after[i];
    square += samples.before[i] * samples.before[i];
  }
  if (zeros * 200 < samples.after.size() || square == 0) return std::nullopt;
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    if (samples.after[i] != 0) left += std::pow(samples.after[i] - product / square * samples.before[i], 2);
  }
  if (left > room_of(samples)) return std::nullopt;
  return fmt::format("{:.0f}% of the values are set to zero and the others multiplied by {:.6g}: dropout",
                     100 * static_cast<double>(zeros) / static_cast<double>(samples.after.size()), product / square);
}

std::optional<std::string> permuted(const Samples& samples) {
  const std::size_t width = samples.features;
  const double room = 4 * samples.rounding / kRoundingShare;
  bool has_sign = false;
  std::vector<bool> is_taken(width);
  for (std::size_t to = 0; to < width; ++to) {
    bool is_found = false;
    for (std::size_t from = 0; from < width && !is_found; ++from) {
      if (is_taken[from]) continue;
      for (const double sign : {1.0, -1.0}) {
        bool is_same = true;
        for (std::size_t row = 0; row < samples.after.size() && is_same; row += width) {
          const double x = sign * samples.before[row + from], y = samples.after[row + to];
          is_same = std::fabs(y - x) <= room * std::fabs(x);
        }
        if (!is_same) continue;
        is_found = is_taken[from] = true;
        has_sign = has_sign || sign < 0;
        break;
      }
    }
    if (!is_found) return std::nullopt;
  }
  return has_sign ? "the features are permuted and some negated, the same for every token"
                  : "the features are permuted, the same for every token";
}

std::optional<std::string> normalised(const Samples& samples) {
  if (vectors_of(samples) < kFewestVectors) return std::nullopt;
  const std::size_t width = samples.features;
  for (const bool is_centred : {false, true}) {
    std::vector<double> z = samples.before;
    for (std::size_t row = 0; row < z.size(); row += width) {
      double mean = 0, square = 0;
      for (std::size_t i = 0; i < width && is_centred; ++i) mean += z[row + i] / static_cast<double>(width);
      for (std::size_t i = 0; i < width; ++i) square += (z[row + i] - mean) * (z[row + i] - mean);
      for (std::size_t i = 0; i < width; ++i) z[row + i] = square > 0 ? (z[row + i] - mean) / std::sqrt(square) : 0;
    }
    // an epsilon in the norm changes more than rounding does
    if (affine_residual(z, samples) <= 4 * room_of(samples) + 1e-9 * samples.energy) {
      return is_centred ? "each vector is normalised by its mean and variance (LayerNorm)"
                        : "each vector is normalised by its length (RMSNorm, or a unit norm)";
    }
  }
  return std::nullopt;
}

// Whether one matrix maps every vector before to the one after: least squares, if there are enough vectors.
bool is_linear(const Samples& samples) {
  const std::size_t width = samples.features;
  const std::size_t rows = vectors_of(samples);
  if (width > 160 || rows < width + width / 2 + 8) return false;
  // X'X = LL', by Cholesky
  std::vector<double> factor(width * width), right(width * width);
  for (std::size_t row = 0; row < rows; ++row) {
    const double* const x = &samples.before[row * width];
    const double* const y = &samples.after[row * width];
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t j = 0; j <= i; ++j) factor[i * width + j] += x[i] * x[j];
      for (std::size_t j = 0; j < width; ++j) right[i * width + j] += x[i] * y[j];
    }
  }
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = factor[i * width + j];
      for (std::size_t k = 0; k < j; ++k) sum -= factor[i * width + k] * factor[j * width + k];
      if (i == j && !(sum > 0)) return false;
      factor[i * width + j] = i == j ? std::sqrt(sum) : sum / factor[j * width + j];
    }
  }
  const auto solve = [&](std::size_t i, std::size_t k) { return factor[i * width + k]; };
  for (std::size_t column = 0; column < width; ++column) {
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t k = 0; k < i; ++k) right[i * width + column] -= solve(i, k) * right[k * width + column];
      right[i * width + column] /= solve(i, i);
    }
    for (std::size_t i = width; i-- > 0;) {
      for (std::size_t k = i + 1; k < width; ++k)
        right[i * width + column] -= solve(k, i) * right[k * width + column];
      right[i * width + column] /= solve(i, i);
    }
  }
  double left = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t j = 0; j < width; ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += samples.before[row * width + i] * right[i * width + j];
      left += std::pow(samples.after[row * width + j] - sum, 2);
    }
  }
  // both tensors are rounded, and a matrix mixes the errors
  return left <= 10 * room_of(samples) + 1e-12 * samples.energy;
}

}  // namespace

std::optional<std::string> exact_change(const Samples& samples) {
  for (const auto& name : {scaled, shifted_or_weighted, quantised, dropped, permuted, normalised}) {
    if (std::optional<std::string> text = name(samples)) return text;
  }
  return std::nullopt;
}

Guess guess_change(const Samples& samples) {
  constexpr double kSmall = 0.2;  // relative to the values
  if (is_linear(samples)) return {"one linear map reproduces every token: it does not depend on position", true};
  const Added added = added_of(samples, 1);
  const auto count = static_cast<double>(added.values.size()), heads = static_cast<double>(samples.heads);
  if (samples.heads > 1 && added.apart <= 4 * added.noise * count * heads * heads &&
      added.energy > 16 * added.noise * count) {
    return {
        "the same vector is added in every head, at each token another: a learned table, perhaps; no sinusoids "
        "reproduce it",
        false};
  }
  const double share = std::sqrt(samples.change / samples.energy);
  if (share > kSmall) return {};
  // what heads share would be an addition by position
  const bool is_apart = samples.heads > 1 && added.apart > 0.5 * samples.change * (heads - 1) / heads;
  if (is_apart) {
    return {fmt::format("the change is {:.2g} of the values and every head has its own: noise, rounding or "
                        "quantisation",
                        share),
            true};
  }
  return {fmt::format("the change is {:.2g} of the values: noise, quantisation, or a small table that was added; "
                      "several heads or sequences would tell",
                      share),
          false};
}

}  // namespace posenc::diagnosis
