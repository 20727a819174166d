#include "kernels/cpu/wide_rows.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/wave_pair.h"
#include "kernels/element.h"

// As wave_rows.cpp: anchor ──rotate──▶ centre of a group ──step──▶ each row, every number a sum of two doubles. Seeds
// come from integers.
//
// Error of a value, in units of 2^-106 and of |scale|. Sines and cosines from integers are off by at most 6 each
// (numerics/wave.h), the anchor's product with the scale adds 5: 11. A rotation or step takes an error e of both
// components to √2 · e, adds √2 · 6 for the angle that is added, and for its own arithmetic: products leave out low ·
// low and round twice, in two numbers below 3 · 2^-53 (without a fused multiply-add four times): 6, or 10; the sum
// rounds twice, below 4 · 2^-53: 7. So from 11 to 41 to 84, and rounding low ± error adds 5: 89 < 128 = kWideError.

namespace posenc::kernels::cpu {
namespace {

constexpr std::int64_t kGroupRows = 32, kReach = kGroupRows / 2;
// Below this many consecutive rows, computing each directly is cheaper than preparing the tables.
constexpr std::int64_t kShortestRun = 64;
static_assert(kWideError == 128 * 0x1p-106);
constexpr std::int64_t kWavesWorthAThread = 256;
// Within these, no product of the scale overflows, nor does what it loses matter.
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

void WideRows::Columns::resize(std::size_t count) {
  high.resize(count);
  low.resize(count);
}

WideRows::WideRows(const Waves& waves, const TokenPositions& positions, std::int64_t longest_run)
    : waves_(waves), positions_(positions) {
  padded_ = (width() + kPieceColumns - 1) / kPieceColumns * kPieceColumns;
  const double size = std::fabs(waves.scale);
  if (waves.axes > 1 || size < kLeastScale || size > kLargestScale || !waves.float32_angles.factors.empty() ||
      longest_run < kShortestRun) {
    return;
  }
  for (const Wave& wave : waves.waves) halves_.push_back(half_of(wave.frequency));
  const auto fill = [&](Columns& sines, Columns& cosines, std::int64_t count, std::int64_t first, std::int64_t step) {
    sines.resize(static_cast<std::size_t>(count * padded_));
    cosines.resize(static_cast<std::size_t>(count * padded_));
    parallel_for(count, 1 + kWavesWorthAThread / (width() + 1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        std::vector<numerics::DoubleDouble> wave_sines, wave_cosines;
        for (const Frequency& half : halves_) {
          const numerics::Angle angle{half, static_cast<std::uint64_t>(first + n * step)};
          wave_sines.push_back(numerics::wave_in_double_double(angle, 0));
          wave_cosines.push_back(numerics::wave_in_double_double(angle, 1));
        }
        for (std::int64_t c = 0; c < padded_; ++c) {
          const auto at = static_cast<std::size_t>(n * padded_ + c);
          const bool is_column = c < width();
          const auto wave =
              is_column ? static_cast<std::size_t>(waves_.columns[static_cast<std::size_t>(c)].wave) : 0;
          set(sines, at, is_column ? wave_sines[wave] : numerics::DoubleDouble{});
          set(cosines, at, is_column ? wave_cosines[wave] : numerics::DoubleDouble{1, 0});
        }
      }
    });
  };
  fill(sines_, cosines_, kReach, 1, 2);
  const double groups = static_cast<double>(longest_run) / kGroupRows;
  groups_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(std::sqrt(groups))), 1, 64);
  fill(group_sines_, group_cosines_, groups_, 0, 2 * kGroupRows);
}

void WideRows::make(std::int64_t b, std::int64_t t0, std::int64_t t1, double* rows, std::int64_t row_stride,
                    Anchor& anchor, Outcome& outcome) const {
  for (std::int64_t t = t0; t < t1;) {
    double* const row = rows + (t - t0) * row_stride;
    const std::int64_t position = positions_.at(b, t);
    std::int64_t end = t + 1;
    while (!halves_.empty() && end < t1 && positions_.at(b, end) == position + (end - t)) ++end;
    if (end - t < kReach) {  // fewer than half a group: what two rows cost in integers, a group costs in all
      make_directly(b, t, row, outcome);
      ++t;
      continue;
    }
    make_run(position, end - t, row, row_stride, anchor, outcome);
    t = end;
  }
}

void WideRows::set_anchor(Anchor& anchor, std::int64_t half_position) const {
  const auto size = static_cast<std::size_t>(padded_);
  anchor.half_position = half_position;
  for (Columns* columns : {&anchor.sine, &anchor.cosine, &anchor.centre_sine, &anchor.centre_cosine}) {
    columns->resize(size);
  }
  anchor.spare.resize(size);
  anchor.doubtful.resize(size / kPieceColumns);
  std::int32_t before = -1;
  numerics::DoubleDouble sine, cosine;
  for (std::size_t c = 0; c < size; ++c) {
    if (c >= waves_.columns.size()) {  // the padding stands still, where nothing is in doubt
      set(anchor.sine, c, {waves_.scale, 0});
      set(anchor.cosine, c, {0, 0});
      continue;
    }
    const WaveColumn column = waves_.columns[c];
    if (column.wave != before) {  // a sine and its cosine are mostly neighbours
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
  for (std::int64_t first = 0; first < count; first += kGroupRows) {
    const std::int64_t centre = 2 * (position + first + kReach) - 1;  // in half positions
    std::int64_t ahead = (centre - anchor.half_position) / 2;
    if (anchor.half_position < 0 || ahead < 0 || ahead % kGroupRows != 0 || ahead >= groups_ * kGroupRows) {
      set_anchor(anchor, centre);
      ahead = 0;
    }
    const std::int64_t group = ahead / kGroupRows;
    rotate_wide({anchor.sine.row(0, 0), anchor.cosine.row(0, 0), group_sines_.row(group, padded_),
                 group_cosines_.row(group, padded_), anchor.centre_sine.high.data(), anchor.centre_sine.low.data(),
                 anchor.centre_cosine.high.data(), anchor.centre_cosine.low.data(), padded_});
    for (std::int64_t n = 0; n < kReach; ++n) {
      const std::int64_t before = first + kReach - 1 - n, after = first + kReach + n;
      if (before >= count) continue;
      const bool both = after < count;
      const WideRowPair pair{anchor.centre_sine.row(0, 0),
                             anchor.centre_cosine.row(0, 0),
                             cosines_.row(n, padded_),
                             sines_.row(n, padded_),
                             padded_,
                             kWideError * std::fabs(waves_.scale),
                             rows + before * row_stride,
                             both ? rows + after * row_stride : anchor.spare.data()};
      const std::int64_t listed = wide_row_pair(pair, anchor.doubtful.data());
      for (std::int64_t i = 0; i < listed; ++i) {
        const std::int64_t column = anchor.doubtful[static_cast<std::size_t>(i)];
        remake(column, position + before, pair.before, outcome);
        if (both) remake(column, position + after, pair.after, outcome);
      }
    }
  }
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
