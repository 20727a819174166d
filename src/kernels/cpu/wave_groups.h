#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/job.h"

namespace posenc::kernels::cpu {

// How rows of waves are derived from a few that are computed exactly, by the addition theorem, in groups around a
// centre:
//
//   anchor ──rotate──▶ centre of a group ──step──▶ each row
//
// Centres lie halfway between two rows, so that rows come in pairs, centre ± 1/2, ± 3/2 …; half a position is one
// position at half the frequency.

/// Rows of a group, and how many of them are on either side of its centre.
inline constexpr std::int64_t kGroupRows = 32, kReach = kGroupRows / 2;

/// Groups per anchor. An anchor costs as much as the table's entry for a group, so the total is least when there are as many
/// of both.
inline std::int64_t groups_per_anchor(std::int64_t rows) {
  const double groups = static_cast<double>(rows) / kGroupRows;
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(std::sqrt(groups))), 1, 64);
}

/// Calls run(first token, count) for the tokens t0 … t1 − 1 of sequence b; a run has consecutive positions.
template <class Run>
void each_run(const TokenPositions& positions, std::int64_t b, std::int64_t t0, std::int64_t t1, const Run& run) {
  for (std::int64_t t = t0, end = t0; t < t1; t = end) {
    const std::int64_t position = positions.at(b, t);
    for (end = t + 1; end < t1 && positions.at(b, end) == position + (end - t);) ++end;
    run(t, end - t);
  }
}

/// Visits `count` rows from `position` on in pairs. Calls set_anchor(half positions) if the current anchor, at
/// anchor_at half positions, is out of reach; set_centre(group) once for each group, counted from the anchor; and
/// pair(n, before, after) for the rows at n + 1/2 from the centre. In the last group of a run, `after` may be an
/// unneeded row: count or more.
template <class SetAnchor, class SetCentre, class Pair>
void each_row_pair(std::int64_t position, std::int64_t count, std::int64_t groups, std::int64_t& anchor_at,
                   const SetAnchor& set_anchor, const SetCentre& set_centre, const Pair& pair) {
  for (std::int64_t first = 0; first < count; first += kGroupRows) {
    const std::int64_t centre = 2 * (position + first + kReach) - 1;
    std::int64_t ahead = (centre - anchor_at) / 2;
    if (anchor_at < 0 || ahead < 0 || ahead % kGroupRows != 0 || ahead >= groups * kGroupRows) {
      set_anchor(centre);
      anchor_at = centre;
      ahead = 0;
    }
    set_centre(ahead / kGroupRows);
    for (std::int64_t n = 0; n < kReach; ++n) {
      const std::int64_t before = first + kReach - 1 - n;
      if (before < count) pair(n, before, first + kReach + n);
    }
  }
}

}  // namespace posenc::kernels::cpu
