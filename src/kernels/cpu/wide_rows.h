#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/cpu/wave_rows.h"
#include "kernels/cpu/wide_pair.h"
#include "kernels/job.h"
#include "kernels/memory.h"

namespace posenc::kernels::cpu {

/// Computes rows of waves in float64, correctly rounded, as WaveRows does in float32. Built once per call, shared by
/// its threads.
class WideRows {
 public:
  WideRows(const Waves& waves, const TokenPositions& positions, std::int64_t longest_run);

  /// Columns that each row must have room for: those of the form and a little padding.
  std::int64_t padded() const { return padded_; }

  /// Rows of columns in double-double.
  struct Columns {
    AlignedVector<double> high, low;
    void resize(std::size_t count);
    WideColumns row(std::int64_t n, std::int64_t width) const {
      return {high.data() + n * width, low.data() + n * width};
    }
  };

  /// The same, split as a row needs them.
  struct Cut {
    AlignedVector<double> upper, lower;
    void assign(const Columns& columns, double power);
    CutColumns row(std::int64_t n, std::int64_t width) const {
      return {upper.data() + n * width, lower.data() + n * width};
    }
  };

  /// What a thread keeps from block to block.
  struct Anchor {
    std::int64_t half_position = -1;  // where the sines and cosines below are, times two
    Columns sine, cosine, centre_sine, centre_cosine;
    Cut cut_sine, cut_cosine;            // of the centre
    AlignedVector<double> spare;         // for a row that is not needed
    std::vector<std::int32_t> doubtful;  // [pieces]
  };

  /// Rows of the tokens t0 … t1 − 1 (at most kBlockRows) of sequence b, `row_stride` doubles apart.
  void make(std::int64_t b, std::int64_t t0, std::int64_t t1, double* rows, std::int64_t row_stride, Anchor& anchor,
            Outcome& outcome) const;

 private:
  void set_angles(Columns& sines, Columns& cosines, std::int64_t n, std::int64_t half_positions) const;
  void set_anchor(Anchor& anchor, std::int64_t half_position) const;
  void make_run(std::int64_t position, std::int64_t count, double* rows, std::int64_t row_stride, Anchor& anchor,
                Outcome& outcome) const;
  void remake(std::int64_t first, std::int64_t position, double* row, Outcome& outcome) const;
  void make_directly(std::int64_t b, std::int64_t t, double* row, Outcome& outcome) const;
  std::int64_t width() const { return static_cast<std::int64_t>(waves_.columns.size()); }

  const Waves& waves_;
  const TokenPositions& positions_;
  std::int64_t padded_ = 0, groups_ = 0;
  std::vector<Frequency> halves_;        // [waves] half the frequencies; empty: every row is computed directly
  Cut sines_, cosines_;                  // [kReach][padded]: of ω/2, 3ω/2 …
  Columns group_sines_, group_cosines_;  // [groups][padded]: of n·kGroupRows·ω, n = 0 …
};

/// The class that computes rows of waves in the type of the arithmetic.
template <class W> using RowsOfWaves = std::conditional_t<std::is_same_v<W, double>, WideRows, WaveRows>;

}  // namespace posenc::kernels::cpu
