#include "kernels/cpu/wide_rows.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/wave_groups.h"
#include "kernels/cpu/wave_pair.h"
#include "kernels/element.h"

// As described in wave_groups.h, with every number a sum of two doubles. Anchors come from integers, and so do the
// powers of two among the added angles; other angles are sums of these, by rotation, because integers take fifty
// times as long.
//
// Error of a value, in units of 2^-106 and of |scale|. Sines and cosines from integers have an error of at most 6
// each (numerics/wave.h), the anchor's product with the scale adds 5: 11. A rotation or step takes the errors e and a
// of what is rotated and of the angle to √2 · (e + a), and adds for its own arithmetic: products omit low · low and
// round twice, in two numbers below 3 · 2^-53 (without a fused multiply-add four times): 6, or 10; the sum rounds
// twice, below 4 · 2^-53: 7; together 17. Angles within a group take four rotations at most: 6, 34, 74, 130, 210.
// Angles to a group, 6 bits, take five: 323. So the error grows from 11 to 490 at the centre, and the factors of a
// row contribute √2 · (490 + 210) = 990 < 2^10.
//
// A row is computed more coarsely. Let P be the smallest power of two that |scale| does not exceed, and the unit
// 2^-81 · P. The factors are split at multiples of 2^-26 (of P, for the centre), so that products of upper parts are
// multiples of 2^-52 · P; no value exceeds P by more than 2^-24 of it: their sum is exact. What follows may exceed
// the stated power of two by 2^-26 of it, so it is rounded to twice its last bit. Lower parts are 2^-27: error 2
// each, and the centre in one double 2^-54 · P, times a lower part 1: for each of two products 5. Of its two terms,
// each 2^-27 · P, one is rounded, by 2 (without a fused multiply-add both), and the sum by 4: 6, or 8. The sum of
// both products is 2^-25 · P, and so is that with the error: 8 each. Together 2 · (5 + 8) + 16 = 42, and with the
// factors' 2^-96 below 44 < 48. That is 2^-22 of the last bit of a double at |scale|, so few values are in doubt.

namespace posenc::kernels::cpu {
namespace {

// Below this many consecutive rows, computing each directly is cheaper than preparing the tables.
constexpr std::int64_t kShortestRun = 64;
// The cost of an anchor relative to that of an entry in the table of groups, most of which are computed by rotation.
constexpr double kAnchorCost = 4;
constexpr std::int64_t kWavesWorthAThread = 256;
// Within these, no product of the scale overflows, and underflow does not matter.
constexpr double kLeastScale = 0x1p-800, kLargestScale = 0x1p800;

Frequency half_of(const Frequency& frequency) {
  Frequency half;
  for (std::size_t i = 0; i < 4; ++i) {
    half.words[i] = frequency.words[i] >> 1 | (i < 3 ? frequency.words[i + 1] << 63 : 0);
  }
  return half;
}

// value · scale, normalised.
numerics::DoubleDouble scaled(const numerics::DoubleDouble& value, double scale) {
  const double high = value.high * scale, low = std::fma(value.low, scale, std::fma(value.high, scale, -high));
  const double sum = high + low;
  return {sum, low - (sum - high)};
}

void set(WideRows::Columns& columns, std::size_t at, const numerics::DoubleDouble& value) {
  columns.high[at] = value.high;
  columns.low[at] = value.low;
}

}  // namespace

void WideRows::Cut::assign(const Columns& columns, double power) {
  upper.resize(columns.high.size());
  lower.resize(columns.high.size());
  cut_wide(columns.row(0, 0), static_cast<std::int64_t>(upper.size()), power, upper.data(), lower.data());
}

void WideRows::Columns::resize(std::size_t count) {
  high.resize(count);
  low.resize(count);
}

WideRows::WideRows(const Waves& waves, const TokenPositions& positions, std::int64_t longest_run)
    : waves_(waves), positions_(positions) {
  padded_ = (width() + kPieceColumns - 1) / kPieceColumns * kPieceColumns;
  const double size = std::fabs(waves.scale);
  if (waves.axes > 1 || !waves.further.empty() || size < kLeastScale || size > kLargestScale ||
      !waves.float32_angles.factors.empty() || longest_run < kShortestRun) {
    return;
  }
  for (const Wave& wave : waves.waves) halves_.push_back(half_of(wave.frequency));
  // Row n is the angle of `first` + n · step half positions: row 0 and the powers of two from integers; each other
  // row is the row without its highest bit, rotated by that bit's angle.
  const auto fill = [&](Columns& sines, Columns& cosines, std::int64_t count, std::int64_t first, std::int64_t step) {
    const auto length = static_cast<std::size_t>(padded_);
    for (Columns* columns : {&sines, &cosines}) columns->resize(static_cast<std::size_t>(count) * length);
    std::int64_t bits = 0;
    while ((std::int64_t{1} << bits) < count) ++bits;
    Columns bit_sines, bit_cosines;
    for (Columns* columns : {&bit_sines, &bit_cosines}) columns->resize(static_cast<std::size_t>(bits) * length);
    parallel_for(bits + 1, 1 + kWavesWorthAThread / (width() + 1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) {
        if (k == bits) {
          set_angles(sines, cosines, 0, first);
        } else {
          set_angles(bit_sines, bit_cosines, k, step << k);
        }
      }
    });
    for (std::int64_t k = 0; k < bits; ++k) {
      for (std::int64_t n = std::int64_t{1} << k; n < std::min(count, std::int64_t{2} << k); ++n) {
        const std::int64_t from = n - (std::int64_t{1} << k), at = n * padded_;
        rotate_wide({sines.row(from, padded_), cosines.row(from, padded_), bit_sines.row(k, padded_),
                     bit_cosines.row(k, padded_), sines.high.data() + at, sines.low.data() + at,
                     cosines.high.data() + at, cosines.low.data() + at, padded_});
      }
    }
  };
  Columns sines, cosines;
  fill(sines, cosines, kReach, 1, 2);
  sines_.assign(sines, 1);
  cosines_.assign(cosines, 1);
  groups_ = groups_per_anchor(longest_run, kAnchorCost);
  fill(group_sines_, group_cosines_, groups_, 0, 2 * kGroupRows);
}

// Row n of both: the angles of that many half positions, from integers. The padding is not rotated.
void WideRows::set_angles(Columns& sines, Columns& cosines, std::int64_t n, std::int64_t half_positions) const {
  std::vector<numerics::DoubleDouble> wave_sines, wave_cosines;
  for (const Frequency& half : halves_) {
    const numerics::Angle angle{half, static_cast<std::uint64_t>(half_positions)};
    wave_sines.push_back(numerics::wave_in_double_double(angle, 0));
    wave_cosines.push_back(numerics::wave_in_double_double(angle, 1));
  }
  for (std::int64_t c = 0; c < padded_; ++c) {
    const auto at = static_cast<std::size_t>(n * padded_ + c);
    const bool is_column = c < width();
    const auto wave = is_column ? static_cast<std::size_t>(waves_.columns[static_cast<std::size_t>(c)].wave) : 0;
    set(sines, at, is_column ? wave_sines[wave] : numerics::DoubleDouble{});
    set(cosines, at, is_column ? wave_cosines[wave] : numerics::DoubleDouble{1, 0});
  }
}

void WideRows::make(std::int64_t b, std::int64_t t0, std::int64_t t1, double* rows, std::int64_t row_stride,
                    Anchor& anchor, Outcome& outcome) const {
  each_run(positions_, b, t0, t1, [&](std::int64_t t, std::int64_t count) {
    double* const first = rows + (t - t0) * row_stride;
    if (!halves_.empty() && count >= kReach &&
        positions_.at(b, t) >= 0) {  // a whole group costs as much as two rows in integers
      make_run(positions_.at(b, t), count, first, row_stride, anchor, outcome);
      return;
    }
    for (std::int64_t n = 0; n < count; ++n) make_directly(b, t + n, first + n * row_stride, outcome);
  });
}

void WideRows::set_anchor(Anchor& anchor, std::int64_t half_position) const {
  const auto size = static_cast<std::size_t>(padded_);
  for (Columns* columns : {&anchor.sine, &anchor.cosine, &anchor.centre_sine, &anchor.centre_cosine}) {
    columns->resize(size);
  }
  anchor.spare.resize(size);
  anchor.doubtful.resize(size / kPieceColumns);
  std::int32_t before = -1;
  numerics::DoubleDouble sine, cosine;
  for (std::size_t c = 0; c < size; ++c) {
    if (c >= waves_.columns.size()) {  // the padding is constant, so nothing is in doubt
      set(anchor.sine, c, {waves_.scale, 0});
      set(anchor.cosine, c, {0, 0});
      continue;
    }
    const WaveColumn column = waves_.columns[c];
    if (column.wave != before) {  // a sine and its cosine are usually neighbours
      const numerics::Angle angle{halves_[static_cast<std::size_t>(column.wave)],
                                  static_cast<std::uint64_t>(half_position)};
      sine = numerics::wave_in_double_double(angle, 0);
      cosine = numerics::wave_in_double_double(angle, 1);
      before = column.wave;
    }
    const double sign = (column.quarter & 2) != 0 ? -waves_.scale : waves_.scale;
    const bool is_cosine = (column.quarter & 1) != 0;
    set(anchor.sine, c, scaled(is_cosine ? cosine : sine, sign));
    set(anchor.cosine, c, is_cosine ? scaled(sine, -sign) : scaled(cosine, sign));
  }
}

void WideRows::make_run(std::int64_t position, std::int64_t count, double* rows, std::int64_t row_stride,
                        Anchor& anchor, Outcome& outcome) const {
  const double power = power_from(std::fabs(waves_.scale));
  const auto set_centre = [&](std::int64_t group) {
    rotate_wide({anchor.sine.row(0, 0), anchor.cosine.row(0, 0), group_sines_.row(group, padded_),
                 group_cosines_.row(group, padded_), anchor.centre_sine.high.data(), anchor.centre_sine.low.data(),
                 anchor.centre_cosine.high.data(), anchor.centre_cosine.low.data(), padded_});
    anchor.cut_sine.assign(anchor.centre_sine, power);
    anchor.cut_cosine.assign(anchor.centre_cosine, power);
  };
  const auto make_pair = [&](std::int64_t n, std::int64_t before, std::int64_t after) {
    const bool both = after < count;
    const WideRowPair pair{anchor.cut_sine.row(0, 0),
                           anchor.cut_cosine.row(0, 0),
                           anchor.centre_sine.high.data(),
                           anchor.centre_cosine.high.data(),
                           cosines_.row(n, padded_),
                           sines_.row(n, padded_),
                           padded_,
                           kWideError * power,
                           rows + before * row_stride,
                           both ? rows + after * row_stride : anchor.spare.data(),
                           row_stride};
    const std::int64_t listed = wide_row_pair(pair, anchor.doubtful.data());
    for (std::int64_t i = 0; i < listed; ++i) {
      const std::int64_t column = anchor.doubtful[static_cast<std::size_t>(i)];
      remake(column, position + before, pair.before, outcome);
      if (both) remake(column, position + after, pair.after, outcome);
    }
  };
  each_row_pair(
      position, count, groups_, anchor.half_position, [&](std::int64_t at) { set_anchor(anchor, at); }, set_centre,
      make_pair);
}

void WideRows::remake(std::int64_t first, std::int64_t position, double* row, Outcome& outcome) const {
  for (std::int64_t c = first; c < std::min(first + kPieceColumns, width()); ++c) {
    const WaveColumn& column = waves_.columns[static_cast<std::size_t>(c)];
    const numerics::Angle angle{waves_.waves[static_cast<std::size_t>(column.wave)].frequency,
                                static_cast<std::uint64_t>(position)};
    if (!numerics::round_wave_by_integers(row[c], angle, column.quarter, waves_.scale)) {
      outcome = {false, position, c};
    }
  }
}

void WideRows::make_directly(std::int64_t b, std::int64_t t, double* row, Outcome& outcome) const {
  for (std::int64_t c = 0; c < width(); ++c) {
    const WaveColumn column = waves_.columns[static_cast<std::size_t>(c)];
    const auto angle = angle_of(waves_, static_cast<std::size_t>(column.wave), positions_, b, t);
    if (!numerics::round_wave_by_integers(row[c], angle, column.quarter, waves_.scale)) {
      outcome = {false, positions_.at(b, t), c};
    }
  }
}

}  // namespace posenc::kernels::cpu
