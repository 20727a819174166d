#include "kernels/cpu/wave_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cpu/row_math.h"
#include "kernels/element.h"

// From an exactly computed anchor every kAnchorBlocks blocks, rows follow by the addition theorem:
//
//   anchor ──turn──▶ centre of a block's first group ──3 turns──▶ of its last group ──step──▶ each row
//
// Error of a value, in units of 2^-52 and of |scale|. Sines and cosines of the anchor and of every angle that is
// added are off by at most 1 each (numerics/wave.h), √2 as a vector. A turn or step adds those √2 and the rounding
// of two products and a sum in each component, at most 1.1 as a vector: 2.5. The anchor and at most five of these:
// √2 + 5 · 2.5 = 13.9, and the factor scale adds 0.5: 14.4 < 24 = kWaveError.

namespace posenc::kernels::cpu {
namespace {

// Below this many consecutive rows, computing each directly is cheaper than preparing the tables.
constexpr std::int64_t kShortestRun = 32;
constexpr std::int64_t kAnchorBlocks = 8;
static_assert(kBlockRows == kMostGroups * kGroupRows && kMostGroups - 1 <= 3 && kWaveError == 24 * 0x1p-52);

std::uint16_t small_bits(double size) {
  // The upper half of a float's bits, rounded up so that nothing smaller passes; the sign's place is shifted out.
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(kSmall * size));
  return static_cast<std::uint16_t>(((bits >> 16) + 1) << 1);
}

}  // namespace

WaveRows::WaveRows(const Waves& waves, const TokenPositions& positions, std::int64_t longest_run)
    : waves_(waves), positions_(positions) {
  padded_ = (width() + kColumnPadding - 1) / kColumnPadding * kColumnPadding;
  table_stride_ = padded_ + 128;
  const bool direct = waves.axes > 1 || waves.scale == 0 || !waves.float32_angles.factors.empty() ||
                      longest_run < kShortestRun;
  if (direct) return;
  reach_.resize(static_cast<std::size_t>(padded_));
  for (std::size_t c = 0; c < waves.columns.size(); ++c) {
    // |sin(a) − sin(b)| ≤ |a − b|, and rows are less than kBlockRows steps from the first centre. Twice kSmall leaves
    // room for every rounding.
    const double step = std::fabs(radians_of(waves.waves[static_cast<std::size_t>(waves.columns[c].wave)].frequency));
    reach_[c] = (kBlockRows * step + 2 * kSmall) * std::fabs(waves.scale);
  }
  sines_.resize(static_cast<std::size_t>((kGroupReach + 1) * table_stride_));
  cosines_.resize(sines_.size());
  for (int n = 0; n <= kGroupReach; ++n) {
    const int step = n < kGroupReach ? n + 1 : kGroupRows;
    fill_steps(sines_.data() + n * table_stride_, cosines_.data() + n * table_stride_,
               static_cast<std::uint64_t>(step));
  }
  if (longest_run <= kBlockRows) return;
  block_sines_.resize(static_cast<std::size_t>(kAnchorBlocks * table_stride_));
  block_cosines_.resize(block_sines_.size());
  for (std::int64_t n = 0; n < kAnchorBlocks; ++n) {
    fill_steps(block_sines_.data() + n * table_stride_, block_cosines_.data() + n * table_stride_,
               static_cast<std::uint64_t>(n * kBlockRows));
  }
}

void WaveRows::fill_steps(double* sines, double* cosines, std::uint64_t positions) const {
  std::vector<numerics::SineCosine> steps(waves_.waves.size());
  for (std::size_t w = 0; w < steps.size(); ++w) {
    steps[w] = numerics::sine_cosine(numerics::reduce({waves_.waves[w].frequency, positions}));
  }
  for (std::size_t c = 0; c < waves_.columns.size(); ++c) {
    const numerics::SineCosine& step = steps[static_cast<std::size_t>(waves_.columns[c].wave)];
    sines[c] = step.sine;
    cosines[c] = step.cosine;
  }
  std::fill(cosines + waves_.columns.size(), cosines + padded_, 1.0);
}

void WaveRows::make(std::int64_t b, std::int64_t t0, std::int64_t t1, float* rows, Anchor& anchor,
                    Outcome& outcome) const {
  const bool tables = !sines_.empty();
  for (std::int64_t t = t0; t < t1;) {
    float* row = rows + (t - t0) * row_stride();
    const std::int64_t position = positions_.at(b, t);
    std::int64_t end = t + 1;
    if (tables) {
      while (end < t1 && positions_.at(b, end) == position + (end - t)) ++end;
    }
    if (end - t < kShortestRun) {
      make_directly(b, t, row, outcome);
      ++t;
      continue;
    }
    make_run(position, end - t, row, anchor, outcome);
    t = end;
  }
}

void WaveRows::make_directly(std::int64_t b, std::int64_t t, float* row, Outcome& outcome) const {
  numerics::Angle angle;
  numerics::Reduced reduced;
  std::int32_t wave = -1;  // whose angle that is
  for (std::size_t c = 0; c < waves_.columns.size(); ++c) {
    const WaveColumn column = waves_.columns[c];
    if (column.wave != wave) {
      wave = column.wave;
      angle = angle_of(waves_, static_cast<std::size_t>(wave), positions_, b, t);
      reduced = numerics::reduce(angle);
    }
    if (!numerics::round_wave(row[c], angle, reduced, column.quarter, waves_.scale)) {
      outcome = {false, positions_.at(b, t), static_cast<std::int64_t>(c)};
    }
  }
}

void WaveRows::set_anchor(Anchor& anchor, std::int64_t position) const {
  const auto size = static_cast<std::size_t>(padded_);
  anchor.position = position;
  for (auto* buffer : {&anchor.sine, &anchor.cosine, &anchor.block_sine, &anchor.block_cosine}) buffer->resize(size);
  anchor.doubtful.resize(size * (kBlockRows / kGroupRows));
  std::vector<numerics::SineCosine> here(waves_.waves.size());
  for (std::size_t w = 0; w < here.size(); ++w) {
    here[w] =
        numerics::sine_cosine(numerics::reduce({waves_.waves[w].frequency, static_cast<std::uint64_t>(position)}));
  }
  for (std::size_t c = 0; c < waves_.columns.size(); ++c) {
    const auto [sine, cosine] = here[static_cast<std::size_t>(waves_.columns[c].wave)];
    const unsigned quarter = waves_.columns[c].quarter;
    const double value = quarter & 1 ? cosine : sine, slope = quarter & 1 ? -sine : cosine;
    anchor.sine[c] = (quarter & 2 ? -value : value) * waves_.scale;
    anchor.cosine[c] = (quarter & 2 ? -slope : slope) * waves_.scale;
  }
  // The padding stands still at a power of two, whose rounding is never in doubt.
  const double still = std::exp2(std::ceil(std::log2(std::fabs(waves_.scale))));
  std::fill(anchor.sine.begin() + width(), anchor.sine.end(), still);
}

void WaveRows::make_run(std::int64_t position, std::int64_t count, float* rows, Anchor& anchor,
                        Outcome& outcome) const {
  const std::int64_t centre = position + kGroupReach;
  std::int64_t ahead = centre - anchor.position;
  const bool reachable = anchor.position >= 0 && ahead >= 0 && ahead < kAnchorBlocks * kBlockRows &&
                         ahead % kBlockRows == 0 && (ahead == 0 || !block_sines_.empty());
  if (!reachable) {
    set_anchor(anchor, centre);
    ahead = 0;
  }
  const double *sine = anchor.sine.data(), *cosine = anchor.cosine.data();
  if (ahead > 0) {
    const std::int64_t entry = ahead / kBlockRows * table_stride_;
    turn_centre(sine, cosine, block_sines_.data() + entry, block_cosines_.data() + entry, anchor.block_sine.data(),
                anchor.block_cosine.data(), padded_);
    sine = anchor.block_sine.data(), cosine = anchor.block_cosine.data();
  }

  std::int64_t lanes = 0;
  const auto groups = static_cast<int>((count + kGroupRows - 1) / kGroupRows);
  const double size = std::fabs(waves_.scale);
  const std::int64_t doubts = wave_block({sine, cosine, reach_.data(), cosines_.data(), sines_.data(), table_stride_,
                                          padded_, kWaveError * size, small_bits(size), groups, rows, row_stride()},
                                         anchor.doubtful.data(), lanes);
  for (std::int64_t i = 0; i < doubts; ++i) {
    const DoubtfulTile& tile = anchor.doubtful[static_cast<std::size_t>(i)];
    const std::int64_t first = tile.group * kGroupRows;
    remake(tile.column, std::min(tile.column + lanes, width()), position + first,
           std::min<std::int64_t>(kGroupRows, count - first), rows + first * row_stride(), outcome);
  }
}

void WaveRows::remake(std::int64_t c0, std::int64_t c1, std::int64_t position, std::int64_t count, float* rows,
                      Outcome& outcome) const {
  for (std::int64_t c = c0; c < c1; ++c) {
    const WaveColumn& column = waves_.columns[static_cast<std::size_t>(c)];
    numerics::Angle angle{waves_.waves[static_cast<std::size_t>(column.wave)].frequency, 0};
    for (std::int64_t row = 0; row < count; ++row) {
      angle.count = static_cast<std::uint64_t>(position + row);
      float& value = rows[row * row_stride() + c];
      if (!numerics::round_wave(value, angle, numerics::reduce(angle), column.quarter, waves_.scale)) {
        outcome = {false, position + row, c};
      }
    }
  }
}

}  // namespace posenc::kernels::cpu
