#include "kernels/cpu/wave_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cpu/row_math.h"
#include "kernels/element.h"

// From an exactly computed anchor, rows follow by the addition theorem, in groups around a centre:
//
//   anchor ──turn──▶ centre of a group ──step──▶ each row
//
// Centres lie halfway between two rows, so that rows come in pairs, centre ± 1/2, ± 3/2 …; half a position is one
// position of half the frequency.
//
// Error of a value, in units of 2^-52 and of |scale|. Sines and cosines of the anchor and of every angle that is
// added are off by at most 1 each (numerics/wave.h), √2 as a vector. A turn or step adds those √2 and the rounding
// of two products and a sum in each component, at most 1.1 as a vector: 2.5. The anchor and two of these:
// √2 + 2 · 2.5 = 6.5, and the factor scale adds 0.5: 7 < 8 = kWaveError.

namespace posenc::kernels::cpu {
namespace {

constexpr std::int64_t kGroupRows = 32, kReach = kGroupRows / 2;
constexpr std::int64_t kTurns = 16;  // groups that one anchor serves
// Below this many consecutive rows, computing each directly is cheaper than preparing the tables.
constexpr std::int64_t kShortestRun = 32;
static_assert(kWaveError == 8 * 0x1p-52);

std::uint16_t small_bits(double size) {
  // The upper half of a float's bits, rounded up so that nothing smaller passes; the sign's place is shifted out.
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(kSmall * size));
  return static_cast<std::uint16_t>(((bits >> 16) + 1) << 1);
}

// Half of a frequency as a fraction in [0, 1).
Frequency half_of(const Frequency& frequency) {
  Frequency half;
  for (std::size_t i = 0; i < 4; ++i) {
    half.words[i] = frequency.words[i] >> 1 | (i < 3 ? frequency.words[i + 1] << 63 : 0);
  }
  return half;
}

}  // namespace

WaveRows::WaveRows(const Waves& waves, const TokenPositions& positions, std::int64_t longest_run)
    : waves_(waves), positions_(positions) {
  alternates_ = waves.columns.size() == 2 * waves.waves.size();
  for (std::size_t c = 0; c < waves.columns.size(); ++c) {
    const WaveColumn in_turn{static_cast<std::int32_t>(c / 2), static_cast<std::uint8_t>(c % 2)};
    alternates_ = alternates_ && waves.columns[c] == in_turn;
  }
  if (waves.float32_angles.factors.empty()) {
    for (const Wave& wave : waves.waves) {
      high_.push_back(wave.frequency.words[3]);
      low_.push_back(wave.frequency.words[2]);
    }
  }
  padded_ = (width() + kPieceColumns - 1) / kPieceColumns * kPieceColumns;
  const bool direct =
      waves.axes > 1 || waves.scale == 0 || !waves.float32_angles.factors.empty() || longest_run < kShortestRun;
  if (direct) return;
  reach_.resize(static_cast<std::size_t>(padded_));
  for (std::size_t c = 0; c < waves.columns.size(); ++c) {
    // |sin(a) − sin(b)| ≤ |a − b|, and rows are at most kReach steps from the centre. Twice kSmall leaves room for
    // every rounding.
    const Frequency& frequency = waves.waves[static_cast<std::size_t>(waves.columns[c].wave)].frequency;
    const double turns = std::fabs(static_cast<double>(static_cast<std::int64_t>(frequency.words[3]))) * 0x1p-64;
    reach_[c] = (kReach * 6.2832 * turns + 2 * kSmall) * std::fabs(waves.scale);
  }
  const auto fill = [&](std::vector<double>& sines, std::vector<double>& cosines, std::int64_t count,
                        std::int64_t first, std::int64_t step) {
    sines.resize(static_cast<std::size_t>(count * padded_));
    cosines.resize(sines.size());
    for (std::int64_t n = 0; n < count; ++n) {
      fill_steps(sines.data() + n * padded_, cosines.data() + n * padded_,
                 static_cast<std::uint64_t>(first + n * step));
    }
  };
  fill(sines_, cosines_, kReach, 1, 2);
  fill(turn_sines_, turn_cosines_, std::min(kTurns, longest_run / kGroupRows + 1), 0, 2 * kGroupRows);
}

void WaveRows::fill_steps(double* sines, double* cosines, std::uint64_t half_positions) const {
  numerics::SineCosine step;
  std::int32_t wave = -1;  // whose step that is
  for (std::size_t c = 0; c < waves_.columns.size(); ++c) {
    if (waves_.columns[c].wave != wave) {
      wave = waves_.columns[c].wave;
      step = numerics::sine_cosine(
          numerics::reduce({half_of(waves_.waves[static_cast<std::size_t>(wave)].frequency), half_positions}));
    }
    sines[c] = step.sine;
    cosines[c] = step.cosine;
  }
  std::fill(cosines + width(), cosines + padded_, 1.0);
}

void WaveRows::make(std::int64_t b, std::int64_t t0, std::int64_t t1, float* rows, std::int64_t row_stride,
                    Anchor& anchor, Outcome& outcome) const {
  const bool tables = !sines_.empty();
  for (std::int64_t t = t0; t < t1;) {
    float* row = rows + (t - t0) * row_stride;
    const std::int64_t position = positions_.at(b, t);
    std::int64_t end = t + 1;
    if (tables) {
      while (end < t1 && positions_.at(b, end) == position + (end - t)) ++end;
    }
    if (end - t < kShortestRun) {
      make_directly(b, t, row, anchor, outcome);
      ++t;
      continue;
    }
    make_run(position, end - t, row, row_stride, anchor, outcome);
    t = end;
  }
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
  // Runs of waves with the same quarter are copied.
  const auto count = static_cast<std::size_t>(width());
  for (std::size_t c = 0; c < count;) {
    const WaveColumn first = waves_.columns[c];
    std::size_t end = c + 1;
    while (end < count && waves_.columns[end].quarter == first.quarter &&
           waves_.columns[end].wave == first.wave + static_cast<std::int32_t>(end - c)) {
      ++end;
    }
    const float* from = ((first.quarter & 1) != 0 ? cosines : sines) + first.wave;
    const float sign = (first.quarter & 2) != 0 ? -1.0f : 1.0f;
    for (std::size_t i = 0; i < end - c; ++i) row[c + i] = from[i] == 0.0f ? from[i] : sign * from[i];
    c = end;
  }
}

// Lists the waves whose sine may not be good to 2^-50 relative, because too little of the angle remains; returns how
// many they are.
std::int64_t WaveRows::reduce_angles(std::int64_t b, std::int64_t t, Anchor& scratch) const {
  const std::size_t count = waves_.waves.size();
  ReducedAngles& angles = scratch.angles;
  std::int64_t doubts = 0;
  const auto reduce = [&](std::size_t i, numerics::uint128 phase, std::uint64_t turned) {
    const auto top = static_cast<std::uint64_t>(phase >> 64);
    const std::uint64_t quarter = (top + (std::uint64_t{1} << 61)) >> 62;
    const auto rest = static_cast<std::int64_t>(top - (quarter << 62));
    const auto magnitude = static_cast<std::uint64_t>(rest < 0 ? -rest : rest);
    angles.quarter[i] = static_cast<std::int64_t>(quarter);
    angles.rest[i] = rest;
    angles.below[i] = static_cast<std::uint64_t>(phase);
    angles.radians[i] =
        static_cast<std::int64_t>(static_cast<numerics::uint128>(magnitude) * numerics::kFixedTwoPi61 >> 64);
    if (magnitude <= (turned >> 11) + 1)
      scratch.doubtful_waves[static_cast<std::size_t>(doubts++)] = static_cast<std::int32_t>(i);
  };
  if (high_.empty()) {
    for (std::size_t i = 0; i < count; ++i) {
      const numerics::Angle angle = angle_of(waves_, i, positions_, b, t);
      reduce(i, numerics::times_short(angle.unit, angle.count), angle.count);
    }
    return doubts;
  }
  auto position = static_cast<std::uint64_t>(positions_.at(b, t));
  for (std::size_t i = 0; i < count; ++i) {
    if (waves_.axes > 1) position = static_cast<std::uint64_t>(positions_.at(b, t, waves_.waves[i].axis));
    reduce(i, (static_cast<numerics::uint128>(high_[i]) << 64 | low_[i]) * position, position);
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
    const auto i = static_cast<std::size_t>(scratch.doubtful_waves[static_cast<std::size_t>(n)]);
    if (waves_.waves[i].frequency == Frequency{} && waves_.float32_angles.factors.empty()) {  // stands still
      scratch.wave_sines[i] = 0.0f;
      scratch.wave_cosines[i] = numerics::narrow<float>(waves_.scale);
      continue;
    }
    const numerics::Angle angle = angle_of(waves_, i, positions_, b, t);
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
  const auto size = static_cast<std::size_t>(padded_);
  anchor.half_position = half_position;
  for (auto* buffer : {&anchor.sine, &anchor.cosine, &anchor.centre_sine, &anchor.centre_cosine})
    buffer->resize(size);
  anchor.spare.resize(size);
  anchor.doubtful.resize(size / kPieceColumns + 1);
  anchor.none_small.resize(size / kPieceColumns);
  numerics::SineCosine here;
  std::int32_t wave = -1;  // whose sine and cosine that is
  for (std::size_t c = 0; c < waves_.columns.size(); ++c) {
    if (waves_.columns[c].wave != wave) {
      wave = waves_.columns[c].wave;
      here = numerics::sine_cosine(numerics::reduce({half_of(waves_.waves[static_cast<std::size_t>(wave)].frequency),
                                                     static_cast<std::uint64_t>(half_position)}));
    }
    const unsigned quarter = waves_.columns[c].quarter;
    const double value = quarter & 1 ? here.cosine : here.sine, slope = quarter & 1 ? -here.sine : here.cosine;
    anchor.sine[c] = (quarter & 2 ? -value : value) * waves_.scale;
    anchor.cosine[c] = (quarter & 2 ? -slope : slope) * waves_.scale;
  }
  // The padding stands still at a power of two, whose rounding is never in doubt.
  const double still = std::exp2(std::ceil(std::log2(std::fabs(waves_.scale))));
  std::fill(anchor.sine.begin() + width(), anchor.sine.end(), still);
}

void WaveRows::make_run(std::int64_t position, std::int64_t count, float* rows, std::int64_t row_stride,
                        Anchor& anchor, Outcome& outcome) const {
  const double size = std::fabs(waves_.scale);
  const auto turns = static_cast<std::int64_t>(turn_sines_.size()) / padded_;
  for (std::int64_t first = 0; first < count; first += kGroupRows) {
    const std::int64_t centre = 2 * (position + first + kReach) - 1;  // in half positions
    std::int64_t ahead = (centre - anchor.half_position) / 2;
    if (anchor.half_position < 0 || ahead < 0 || ahead % kGroupRows != 0 || ahead >= turns * kGroupRows) {
      set_anchor(anchor, centre);
      ahead = 0;
    }
    const std::int64_t entry = ahead / kGroupRows * padded_;
    turn_centre(anchor.sine.data(), anchor.cosine.data(), turn_sines_.data() + entry, turn_cosines_.data() + entry,
                anchor.centre_sine.data(), anchor.centre_cosine.data(), padded_);
    find_none_small(anchor.centre_sine.data(), reach_.data(), anchor.none_small.data(), padded_);

    const auto row_at = [&](std::int64_t row) {  // the last group of a run may have rows that nobody asked for
      return first + row < count ? rows + (first + row) * row_stride : anchor.spare.data();
    };
    for (std::int64_t n = 0; n < kReach; ++n) {
      const std::int64_t before = kReach - 1 - n, after = kReach + n;
      if (first + before >= count) continue;
      const WaveRowPair pair{anchor.centre_sine.data(),
                             anchor.centre_cosine.data(),
                             cosines_.data() + n * padded_,
                             sines_.data() + n * padded_,
                             anchor.none_small.data(),
                             padded_,
                             kWaveError * size,
                             small_bits(size),
                             row_at(before),
                             row_at(after)};
      const std::int64_t doubts = wave_row_pair(pair, anchor.doubtful.data());
      for (std::int64_t i = 0; i < doubts; ++i) {
        const std::int64_t column = anchor.doubtful[static_cast<std::size_t>(i)];
        remake(column, position + first + before, pair.before, outcome);
        if (first + after < count) remake(column, position + first + after, pair.after, outcome);
      }
    }
  }
}

void WaveRows::remake(std::int64_t c0, std::int64_t position, float* row, Outcome& outcome) const {
  for (std::int64_t c = c0; c < std::min(c0 + kPieceColumns, width()); ++c) {
    const WaveColumn& column = waves_.columns[static_cast<std::size_t>(c)];
    const numerics::Angle angle{waves_.waves[static_cast<std::size_t>(column.wave)].frequency,
                                static_cast<std::uint64_t>(position)};
    if (!numerics::round_wave(row[c], angle, numerics::reduce(angle), column.quarter, waves_.scale)) {
      outcome = {false, position, c};
    }
  }
}

}  // namespace posenc::kernels::cpu
