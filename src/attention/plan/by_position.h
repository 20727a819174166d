#pragma once

#include <cstdint>
#include <optional>

#include "attention/plan/plan.h"
#include "attention/plan/segments.h"

namespace posenc::attend {

inline bool has_ids(const std::optional<Positions>& positions) {
  return positions && (!positions->ids.empty() || !positions->ids_i32.empty());
}

/// Whether a window or chunk is by position: if positions are ids, or both sides have some. One side's consecutive
/// positions do not change which tokens are near each other. Ids of several axes are places in a picture, and windows go by
/// token there.
bool is_by_position(const AttentionCall& call, const AttentionJob& job);

/// The positions by which windows and chunks go. A token that is both a query and a key has one position: where one side
/// has none given, it takes the other's. Keys before the queries are then at the positions that end before the queries',
/// so that it does not matter whether the cache still has its first tokens.
class SightPositions {
 public:
  SightPositions(const AttentionCall& call, const AttentionJob& job);
  /// Whether they differ from sequence to sequence of the batch.
  bool differ() const { return queries_.batch_stride != 0 || keys_.batch_stride != 0; }
  /// Of query i of a sequence.
  std::int64_t query(std::int64_t b, const Segment& segment, std::int64_t i) const;
  /// Of all keys of a sequence.
  void keys(std::int64_t b, const Segment& segment, std::int64_t* to) const;

 private:
  const AttentionCall& call_;
  TokenPositions queries_, keys_;
};

/// The keys of one row of the batch, with windows and chunks by position: sets plan.job.key_ranges, and what PositionLimits
/// need. `is_ragged` is set if those are needed, because a query does not attend to all keys of its range.
void plan_by_position(const AttentionCall& call, const SightPositions& positions, std::int64_t b, Plan& plan,
                      bool& is_ragged);

}  // namespace posenc::attend
