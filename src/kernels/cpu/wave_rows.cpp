#include "kernels/cpu/wave_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/wave_groups.h"
#include "kernels/cpu/wave_pair.h"
#include "kernels/element.h"

// Rows are derived from exactly computed anchors, as described in wave_groups.h.
//
// Error of a value, in units of 2^-52 and of |scale|. Sines and cosines of the anchor and of every added angle have
// an error of at most 1 each (numerics/wave.h), √2 as a vector. A rotation or step adds that √2 and the rounding of
// two products and a sum in each component, at most 1.1 as a vector: 2.5. The anchor and two of these: √2 + 2 · 2.5 =
// 6.5; the factor scale · (1 + kLarger) adds 0.5, and removing kLarger again 0.5: 7.5 < 8 = kWaveError.

namespace posenc::kernels::cpu {
namespace {

// Below this many consecutive rows, computing each directly is cheaper than preparing the tables.
constexpr std::int64_t kShortestRun = 32;
static_assert(kWaveError == 8 * 0x1p-52);
constexpr std::int64_t kWavesWorthAThread = 2048;
// Scales beyond these need not be fast: their power of two would not be a float, or the error not a normal double.
constexpr double kLeastScale = 0x1p-900, kLargestScale = 0x1p100;
// From here up, float32 has room for the error of a 16-bit row beside its values.
constexpr double kLeastNarrowScale = 0x1p-20;

// An angle, from its turns in units of 2^-128, modulo one: true if enough of it remains for a sine with a relative
// error of 2^-50 after `count` positions.
bool reduce_angle(ReducedAngles& angles, std::size_t i, numerics::uint128 phase, std::uint64_t count) {
  const auto top = static_cast<std::uint64_t>(phase >> 64);
  const std::uint64_t quarter = (top + (std::uint64_t{1} << 61)) >> 62;
  const auto rest = static_cast<std::int64_t>(top - (quarter << 62));
  const auto magnitude = static_cast<std::uint64_t>(rest < 0 ? -rest : rest);
  angles.quarter[i] = static_cast<std::int64_t>(quarter);
  angles.rest[i] = rest;
  angles.below[i] = static_cast<std::uint64_t>(phase);
  angles.radians[i] =
      static_cast<std::int64_t>(static_cast<numerics::uint128>(magnitude) * numerics::kFixedTwoPi61 >> 64);
  return magnitude > (count >> 11) + 1;
}

// Four 16-bit lanes at once.
constexpr std::int64_t kLanesOfAWord = 4;
std::uint64_t word_at(const std::uint16_t* lanes) {
  std::uint64_t word = 0;
  std::memcpy(&word, lanes, sizeof word);
  return word;
}

}  // namespace

WaveRows::WaveRows(const Waves& waves, const TokenPositions& positions, std::int64_t longest_run)
    : waves_(waves), positions_(positions), fraction_(waves.scale) {
  alternates_ = waves.columns.size() == 2 * waves.waves.size();
  for (std::size_t c = 0; c < waves.columns.size(); ++c) {
    const WaveColumn alternating{static_cast<std::int32_t>(c / 2), static_cast<std::uint8_t>(c % 2)};
    alternates_ = alternates_ && waves.columns[c] == alternating;
  }
  if (!alternates_) find_column_runs();
  if (waves.float32_angles.factors.empty() && waves.further.empty()) {
    high_.reserve(waves.waves.size());
    low_.reserve(waves.waves.size());
    for (const Wave& wave : waves.waves) {
      high_.push_back(wave.frequency.words[3]);
      low_.push_back(wave.frequency.words[2]);
    }
  }
  padded_ = (width() + kPieceColumns - 1) / kPieceColumns * kPieceColumns;
  const double size = std::fabs(waves.scale);
  const bool direct = waves.axes > 1 || !waves.further.empty() || size < kLeastScale || size > kLargestScale ||
                      !waves.float32_angles.factors.empty() || longest_run < kShortestRun;
  if (direct) return;
  for (; std::fabs(fraction_) >= 2; fraction_ /= 2) power_ *= 2;
  const auto fill = [&](AlignedVector<double>& sines, AlignedVector<double>& cosines, std::int64_t count,
                        std::int64_t first, std::int64_t step) {
    sines.resize(count * padded_ + kReadAhead);
    cosines.assign(sines.size(), 1.0);
    const std::int64_t grain = 1 + kWavesWorthAThread / (width() + 1);
    parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
      ReducedAngles angles;
      for (std::int64_t n = begin; n < end; ++n) {
        find_waves(angles, first + n * step);
        for (std::size_t c = 0; c < waves.columns.size(); ++c) {
          const auto wave = static_cast<std::size_t>(waves.columns[c].wave),
                     at = c + static_cast<std::size_t>(n * padded_);
          sines[at] = angles.sine[wave];
          cosines[at] = angles.cosine[wave];
        }
      }
    });
  };
  fill(sines_, cosines_, kReach, 1, 2);
  groups_ = groups_per_anchor(longest_run);
  fill(group_sines_, group_cosines_, groups_, 0, 2 * kGroupRows);
}

void WaveRows::find_column_runs() {
  for (std::size_t c = 0; c < waves_.columns.size(); ++c) {
    const WaveColumn column = waves_.columns[c];
    if (!column_runs_.empty()) {
      ColumnRun& last = column_runs_.back();
      if (column.quarter == last.quarter && column.wave == last.wave + last.count) {
        ++last.count;
        continue;
      }
    }
    column_runs_.push_back({static_cast<std::int32_t>(c), column.wave, 1, column.quarter});
  }
}

void WaveRows::find_waves(ReducedAngles& angles, std::int64_t half_position) const {
  const std::size_t count = waves_.waves.size();
  angles.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const numerics::uint128 half = (static_cast<numerics::uint128>(high_[i]) << 64 | low_[i]) >> 1;
    reduce_angle(angles, i, half * static_cast<std::uint64_t>(half_position), 0);
  }
  waves_in_double(angles, static_cast<std::int64_t>(count));
}

void WaveRows::make(std::int64_t b, std::int64_t t0, std::int64_t t1, float* rows, std::int64_t row_stride,
                    Anchor& anchor, Outcome& outcome) const {
  each_run(positions_, b, t0, t1, [&](std::int64_t t, std::int64_t count) {
    float* const first = rows + (t - t0) * row_stride;
    if (!sines_.empty() && count >= kShortestRun && positions_.at(b, t) >= 0) {
      make_run(positions_.at(b, t), count, first, row_stride, anchor, outcome);
      return;
    }
    for (std::int64_t n = 0; n < count; ++n) make_directly(b, t + n, first + n * row_stride, anchor, outcome);
  });
}

void WaveRows::place_columns(float* row, const Anchor& scratch) const {
  const float *sines = scratch.wave_sines.data(), *cosines = scratch.wave_cosines.data();
  if (alternates_) {
    for (std::size_t i = 0; i < waves_.waves.size(); ++i) {
      row[2 * i] = sines[i];
      row[2 * i + 1] = cosines[i];
    }
    return;
  }
  for (const ColumnRun& run : column_runs_) {
    const float* const from = ((run.quarter & 1) != 0 ? cosines : sines) + run.wave;
    float* const to = row + run.column;
    const float sign = (run.quarter & 2) != 0 ? -1.0f : 1.0f;
    for (std::int64_t i = 0; i < run.count; ++i) to[i] = from[i] == 0.0f ? from[i] : sign * from[i];
  }
}

// Lists the waves whose sine may have a relative error above 2^-50, because too little of the angle remains; returns
// their number.
std::int64_t WaveRows::reduce_angles(std::int64_t b, std::int64_t t, Anchor& scratch) const {
  const std::size_t count = waves_.waves.size();
  std::int64_t doubts = 0;
  const auto reduce = [&](std::size_t i, numerics::uint128 phase, std::uint64_t steps) {
    if (reduce_angle(scratch.angles, i, phase, steps)) return;
    scratch.doubtful_waves[doubts++] = static_cast<std::int32_t>(i);
  };
  if (high_.empty()) {
    for (std::size_t i = 0; i < count; ++i) {
      const numerics::Angle angle = angle_of(waves_, i, positions_, b, t);
      reduce(i, numerics::times_short(angle.unit, angle.count), angle.count);
    }
    return doubts;
  }
  std::int64_t position = positions_.at(b, t);
  for (std::size_t i = 0; i < count; ++i) {
    if (waves_.axes > 1) position = positions_.at(b, t, waves_.waves[i].axis);
    const auto size = static_cast<std::uint64_t>(position < 0 ? -position : position);
    const numerics::uint128 phase = (static_cast<numerics::uint128>(high_[i]) << 64 | low_[i]) * size;
    reduce(i, position < 0 ? -phase : phase, size);
  }
  return doubts;
}

void WaveRows::make_directly(std::int64_t b, std::int64_t t, float* row, Anchor& scratch, Outcome& outcome) const {
  if (waves_.scale == 0) {
    std::fill(row, row + width(), 0.0f);
    return;
  }
  const std::size_t count = waves_.waves.size();
  scratch.angles.resize(count);
  scratch.wave_sines.resize(count + kDirectPadding);
  scratch.wave_cosines.resize(count + kDirectPadding);
  scratch.doubtful_waves.resize(2 * count);
  std::int64_t doubts = reduce_angles(b, t, scratch);
  doubts += direct_waves(scratch.angles, static_cast<std::int64_t>(count), waves_.scale, scratch.wave_sines.data(),
                         scratch.wave_cosines.data(), scratch.doubtful_waves.data() + doubts);
  for (std::int64_t n = 0; n < doubts; ++n) {
    const std::size_t i = scratch.doubtful_waves[n];
    const numerics::Angle angle = angle_of(waves_, i, positions_, b, t);
    if (angle.count == 0 || angle.unit == Frequency{}) {  // position 0, or a constant wave
      scratch.wave_sines[i] = 0.0f;
      scratch.wave_cosines[i] = numerics::narrow<float>(waves_.scale);
      continue;
    }
    const numerics::Reduced reduced = numerics::reduce(angle);
    if (!numerics::round_wave(scratch.wave_sines[i], angle, reduced, 0, waves_.scale) ||
        !numerics::round_wave(scratch.wave_cosines[i], angle, reduced, 1, waves_.scale)) {
      const auto same = [&](const WaveColumn& column) { return column.wave == static_cast<std::int32_t>(i); };
      const auto found = std::find_if(waves_.columns.begin(), waves_.columns.end(), same);
      outcome = {false, positions_.at(b, t), found - waves_.columns.begin()};
    }
  }
  place_columns(row, scratch);
}

void WaveRows::set_anchor(Anchor& anchor, std::int64_t half_position) const {
  const auto size = static_cast<std::size_t>(padded_ + kReadAhead),
             pieces = static_cast<std::size_t>(padded_ / kPieceColumns);
  for (auto* buffer : {&anchor.sine, &anchor.cosine, &anchor.centre_sine, &anchor.centre_cosine})
    buffer->resize(size);
  anchor.spare.resize(size);
  anchor.nearest.resize(pieces * WaveDoubts::kLanes);
  anchor.doubtful.resize(pieces);
  const double larger = fraction_ * (1 + kLarger);
  find_waves(anchor.angles, half_position);
  for (std::size_t c = 0; c < waves_.columns.size(); ++c) {
    const std::size_t wave = waves_.columns[c].wave;
    const unsigned quarter = waves_.columns[c].quarter;
    const double sine = anchor.angles.sine[wave], cosine = anchor.angles.cosine[wave];
    const double value = quarter & 1 ? cosine : sine, slope = quarter & 1 ? -sine : cosine;
    anchor.sine[c] = (quarter & 2 ? -value : value) * larger;
    anchor.cosine[c] = (quarter & 2 ? -slope : slope) * larger;
  }
  // The padding is constant at a power of two, whose rounding is never in doubt.
  const double still = std::exp2(std::floor(std::log2(std::fabs(fraction_))));
  std::fill(anchor.sine.begin() + width(), anchor.sine.end(), still);
}

void WaveRows::set_centre(Anchor& anchor, std::int64_t group) const {
  const std::int64_t entry = group * padded_;
  rotate_centre(anchor.sine.data(), anchor.cosine.data(), group_sines_.data() + entry, group_cosines_.data() + entry,
                anchor.centre_sine.data(), anchor.centre_cosine.data(), padded_);
}

void WaveRows::make_run(std::int64_t position, std::int64_t count, float* rows, std::int64_t row_stride,
                        Anchor& anchor, Outcome& outcome) const {
  const auto make_pair = [&](std::int64_t n, std::int64_t before, std::int64_t after) {
    const bool both = after < count;
    const WaveRowPair pair{anchor.centre_sine.data(),
                           anchor.centre_cosine.data(),
                           cosines_.data() + n * padded_,
                           sines_.data() + n * padded_,
                           padded_,
                           std::fabs(fraction_),
                           rows + before * row_stride,
                           both ? rows + after * row_stride : anchor.spare.data(),
                           row_stride};
    const std::int64_t listed = wave_row_pair(pair, {anchor.nearest.data(), anchor.doubtful.data()});
    if (power_ > 1) enlarge(pair);
    for (std::int64_t i = 0; i < listed; ++i) {
      const std::int64_t column = anchor.doubtful[i];
      remake(column, position + before, pair.before, outcome);
      if (both) remake(column, position + after, pair.after, outcome);
    }
  };
  each_row_pair(
      position, count, groups_, anchor.half_position, [&](std::int64_t at) { set_anchor(anchor, at); },
      [&](std::int64_t group) { set_centre(anchor, group); }, make_pair);
}

void WaveRows::prepare_16_bits() {
  if (sines_.empty() || power_ > 1 || std::fabs(waves_.scale) < kLeastNarrowScale) return;
  narrow_sines_.assign(sines_.begin(), sines_.end());
  narrow_cosines_.assign(cosines_.begin(), cosines_.end());
}

template <class T> bool WaveRows::make_16_bits(std::int64_t b, std::int64_t t0, std::int64_t t1, T* rows,
                                               std::int64_t row_stride, Anchor& anchor, Outcome& outcome) const {
  static_assert(sizeof(T) == sizeof(std::uint16_t));
  if (narrow_sines_.empty() || t1 - t0 < kShortestRun) return false;
  const std::int64_t position = positions_.at(b, t0), count = t1 - t0;
  if (position < 0) return false;
  for (std::int64_t t = t0; t < t1; ++t) {
    if (positions_.at(b, t) != position + (t - t0)) return false;
  }
  Anchor::Narrow& narrow = anchor.narrow;
  const std::size_t size = padded_;
  for (auto* centre : {&narrow.sine, &narrow.cosine}) centre->resize(size);
  for (auto* row : {&narrow.spare, &narrow.before, &narrow.after}) row->resize(size);
  const auto set_narrow_centre = [&](std::int64_t group) {
    set_centre(anchor, group);
    for (std::size_t c = 0; c < size; ++c) {
      narrow.sine[c] = static_cast<float>(anchor.centre_sine[c]);
      narrow.cosine[c] = static_cast<float>(anchor.centre_cosine[c]);
    }
  };
  const auto make_pair = [&](std::int64_t n, std::int64_t before, std::int64_t after) {
    const bool both = after < count;
    T* const before_row = rows + before * row_stride;
    T* const after_row = rows + after * row_stride;
    const std::int64_t entry = n * padded_;
    const NarrowRowPair pair{narrow.sine.data(),
                             narrow.cosine.data(),
                             narrow_cosines_.data() + entry,
                             narrow_sines_.data() + entry,
                             padded_,
                             static_cast<float>(kNarrowError * std::fabs(waves_.scale)),
                             reinterpret_cast<std::uint16_t*>(before_row),
                             both ? reinterpret_cast<std::uint16_t*>(after_row) : narrow.spare.data(),
                             row_stride};
    const NarrowDoubts doubts{anchor.doubtful.data(), narrow.before.data(), narrow.after.data()};
    const std::int64_t listed = narrow_row_pair(pair, doubts, T{});
    for (std::int64_t i = 0; i < listed; ++i) {
      const std::int64_t first = anchor.doubtful[i];
      for (std::int64_t c0 = first; c0 < first + kPieceColumns; c0 += kLanesOfAWord) {
        if ((word_at(doubts.before + c0) | word_at(doubts.after + c0)) == 0) continue;  // nine of ten
        for (std::int64_t c = c0; c < std::min(c0 + kLanesOfAWord, width()); ++c) {
          const auto at = static_cast<std::size_t>(c), in_table = static_cast<std::size_t>(entry + c);
          const double p = anchor.centre_sine[at] * cosines_[in_table],
                       q = anchor.centre_cosine[at] * sines_[in_table];
          if (doubts.before[c] != 0) remake_16_bits(c, position + before, p - q, before_row[c], outcome);
          if (both && doubts.after[c] != 0) remake_16_bits(c, position + after, p + q, after_row[c], outcome);
        }
      }
    }
  };
  each_row_pair(
      position, count, groups_, anchor.half_position, [&](std::int64_t at) { set_anchor(anchor, at); },
      set_narrow_centre, make_pair);
  return true;
}
template bool WaveRows::make_16_bits(std::int64_t, std::int64_t, std::int64_t, BFloat16*, std::int64_t, Anchor&,
                                     Outcome&) const;
template bool WaveRows::make_16_bits(std::int64_t, std::int64_t, std::int64_t, Half*, std::int64_t, Anchor&,
                                     Outcome&) const;

// Decided as in make_run, in double, and by integers if that is not enough.
template <class T>
void WaveRows::remake_16_bits(std::int64_t c, std::int64_t position, double larger, T& out, Outcome& outcome) const {
  const double value = larger * (1 - kLarger), error = kWaveError * std::fabs(waves_.scale);
  const T low = numerics::narrow<T>(value - error), high = numerics::narrow<T>(value + error);
  if (low == high) {
    out = low;
    return;
  }
  const WaveColumn& column = waves_.columns[c];
  const numerics::Angle angle{waves_.waves[column.wave].frequency, static_cast<std::uint64_t>(position)};
  if (!numerics::round_wave_by_integers(out, angle, column.quarter, waves_.scale)) outcome = {false, position, c};
}

void WaveRows::enlarge(const WaveRowPair& pair) const {
  for (float* row : {pair.before, pair.after}) {
    for (std::int64_t c = 0; c < pair.columns; ++c) row[c] *= power_;
  }
}

void WaveRows::remake(std::int64_t c0, std::int64_t position, float* row, Outcome& outcome) const {
  for (std::int64_t c = c0; c < std::min(c0 + kPieceColumns, width()); ++c) {
    const WaveColumn& column = waves_.columns[c];
    if (position == 0) {  // every sine would be in doubt there, though all are exact
      const double cosine = (column.quarter & 2) != 0 ? -waves_.scale : waves_.scale;
      row[c] = (column.quarter & 1) != 0 ? numerics::narrow<float>(cosine) : 0.0f;
      continue;
    }
    const numerics::Angle angle{waves_.waves[column.wave].frequency, static_cast<std::uint64_t>(position)};
    if (!numerics::round_wave(row[c], angle, numerics::reduce(angle), column.quarter, waves_.scale)) {
      outcome = {false, position, c};
    }
  }
}

}  // namespace posenc::kernels::cpu
