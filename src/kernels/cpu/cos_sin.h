#pragma once

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "kernels/cpu/double_rows.h"
#include "kernels/cpu/fetch.h"
#include "kernels/cpu/mixed_rows.h"
#include "kernels/cpu/rotate_rows.h"
#include "kernels/cpu/row_math.h"
#include "kernels/rotation_element.h"

namespace posenc::kernels::cpu {

/// The tokens t0 … t1 − 1 of sequence b.
struct Block {
  std::int64_t b, t0, t1;
};
/// Their cosines and sines, wherever they are stored.
template <class W> struct CosSinRows {
  const W* cosines = nullptr;
  const W* sines = nullptr;
  std::int64_t stride = 0;
  std::int64_t head_stride = 0;  // 0: all heads share them
};

/// waves_of(form), in memory that this thread kept from the last one returned, so that a decoding step allocates
/// nothing.
Waves kept_waves_of(const Rotation& form);
void keep_waves(Waves&& waves) noexcept;

/// Computes the cosines and sines of a block, [cosines | sines] in each row, for each head if heads have their own.
template <class W> class CosSinMaker {
 public:
  struct Scratch {
    AlignedVector<W> rows, doubled;
    typename RowsOfWaves<W>::Anchor anchor;
    typename MixedRows<W>::Scratch mixed;
  };

  CosSinMaker(const RotateJob& job, bool keys)
      : job_(job), form_(*job.form), table_(table_of(form_)), keys_(keys), waves_(kept_waves_of(form_)) {
    pairs_ = pairs_of(form_);
    heads_ = heads_of(form_);
    doubled_ = wants_doubled(placement_of(form_.layout, pairs_));
    stride_ = heads_ * 2 * pairs_;
    is_ready_ = has_plain_rows() && any_nan_will_do() && (!job.positions.has_ids() || job.parts[0].x.sequence == 1);
    if (const auto* const mixture = std::get_if<Mixture>(&form_.source)) {
      mixed_rows_.emplace(form_, *mixture, waves_, job.positions, job.parts[0].x.batch * job.parts[0].x.sequence);
    } else if (!waves_.waves.empty() && !has_growth(form_)) {
      wave_rows_.emplace(waves_, job.positions, job.parts[0].x.sequence);
      stride_ = wave_rows_->padded();
    }
  }
  ~CosSinMaker() { keep_waves(std::move(waves_)); }
  CosSinMaker(const CosSinMaker&) = delete;
  CosSinMaker& operator=(const CosSinMaker&) = delete;

  /// How many tokens to process at a time: as many as keep their rows in the L1 cache; more if none are computed, and
  /// more if a head's tokens are adjacent, because finding the next head in memory is slow.
  std::int64_t block_rows() const {
    const auto& x = job_.parts[0].x;
    if (heads_ > 1) return kBlockRows;  // a row per head takes enough memory
    const bool tokens_together = x.heads > 1 && std::abs(x.head_stride) > std::abs(x.token_stride);
    return is_ready_ && !doubled_ ? 8 * kBlockRows : tokens_together ? 4 * kBlockRows : kBlockRows;
  }
  /// Whether the rows of a block take long.
  bool is_slow() const { return mixed_rows_ || (wave_rows_ && std::is_same_v<W, double>); }
  Scratch scratch() const {
    const std::int64_t rows = std::min(block_rows(), job_.parts[0].x.sequence);
    Scratch scratch;
    if (!is_ready_) scratch.rows.resize(rows * stride_);
    if (doubled_) scratch.doubled.resize(rows * heads_ * 4 * pairs_);
    if (mixed_rows_) mixed_rows_->resize(scratch.mixed);
    return scratch;
  }
  /// Prefetches what make() will read first: scattered rows of a large table are far apart.
  void fetch_rows(const Block& block) const {
    if (!is_ready_ || !job_.positions.has_ids()) return;
    const CosSinRows<W> row = ready_row(block.b, block.t0);
    fetch_ahead(row.cosines, pairs_, 0);
    fetch_ahead(row.sines, pairs_, 0);
  }
  CosSinRows<W> make(const Block& block, Scratch& scratch, Outcome& outcome) const {
    const CosSinRows<W> cos_sin = is_ready_ ? ready_row(block.b, block.t0) : made_rows(block, scratch, outcome);
    if (!doubled_) return cos_sin;
    W* doubled = scratch.doubled.data();
    for (std::int64_t n = 0; n < block.t1 - block.t0; ++n) {
      for (std::int64_t h = 0; h < heads_; ++h) {
        const std::int64_t from = n * cos_sin.stride + h * cos_sin.head_stride;
        double_cos_sin(cos_sin.cosines + from, cos_sin.sines + from, pairs_, doubled + (n * heads_ + h) * 4 * pairs_);
      }
    }
    return {doubled, doubled + 2 * pairs_, heads_ * 4 * pairs_, heads_ > 1 ? 4 * pairs_ : 0};
  }

 private:
  CosSinRows<W> made_rows(const Block& block, Scratch& scratch, Outcome& outcome) const {
    W* rows = scratch.rows.data();
    const std::int64_t count = block.t1 - block.t0;
    if (wave_rows_) {
      Outcome here;
      for (std::int64_t t = block.t0; t < block.t1; t += kBlockRows) {
        wave_rows_->make(block.b, t, std::min(t + kBlockRows, block.t1), rows + (t - block.t0) * stride_, stride_,
                         scratch.anchor, here);
      }
      if (!here.decided) outcome = {false, here.position, here.column % pairs_};
    } else if (mixed_rows_) {
      for (std::int64_t n = 0; n < count; ++n) {
        mixed_rows_->make(block.b, block.t0 + n, rows + n * stride_, scratch.mixed, outcome);
      }
    } else {
      const bool copies = has_plain_rows();
      for (std::int64_t n = 0; n < count; ++n) {
        W* const row = rows + n * stride_;
        copies ? copy_row(row, ready_row(block.b, block.t0 + n)) : fill_row(row, block.b, block.t0 + n);
      }
    }
    if (late_magnitude(form_) != 1.0f) {
      for (std::int64_t n = 0; n < count; ++n) {
        for (std::int64_t c = 0; c < heads_ * 2 * pairs_; ++c) {
          rows[n * stride_ + c] *= static_cast<W>(late_magnitude(form_));
        }
      }
    }
    const DataType type = table_type(form_, data_type_of<W>());
    if (type != data_type_of<W>()) {
      for (std::int64_t n = 0; n < count; ++n) {
        for (std::int64_t c = 0; c < heads_ * 2 * pairs_; ++c) {
          rows[n * stride_ + c] = rounded_to(type, rows[n * stride_ + c]);
        }
      }
    }
    return {rows, rows + pairs_, stride_, heads_ > 1 ? 2 * pairs_ : 0};
  }
  // Whether the caller's own tables have rows in the required form.
  bool has_plain_rows() const {
    const auto& [cosines, sines] = table_;
    return has_table(form_) && form_.sign > 0 && table_type(form_, data_type_of<W>()) == data_type_of<W>() &&
           cosines.type == data_type_of<W>() && sines.type == cosines.type && cosines.strides == sines.strides &&
           cosines.strides.back(0) == 1;
  }
  // Rounding to bf16 by additions relies on tables whose NaNs have no payload.
  bool any_nan_will_do() const {
    if (rotates_any_nan_to_bf16()) return true;
    const auto is_bf16 = [](const RotateJob::Part& part) { return part.x.type == DataType::kBF16; };
    return std::none_of(job_.parts.begin(), job_.parts.begin() + job_.count, is_bf16);
  }
  CosSinRows<W> ready_row(std::int64_t b, std::int64_t t) const {
    const Extents& strides = table_.cosines.strides;
    const std::int64_t start =
        strides.rank == 2 ? job_.positions.at(b, t) * strides[0] : b * strides[0] + t * strides[1];
    return {static_cast<const W*>(table_.cosines.data) + start, static_cast<const W*>(table_.sines.data) + start,
            strides.back(1)};
  }
  void copy_row(W* row, const CosSinRows<W>& from) const {
    if constexpr (std::is_same_v<W, float>) {
      copy_without_payload(row, from.cosines, pairs_);
      copy_without_payload(row + pairs_, from.sines, pairs_);
    } else {
      std::copy_n(from.cosines, pairs_, row);
      std::copy_n(from.sines, pairs_, row + pairs_);
    }
  }

  void fill_row(W* row, std::int64_t b, std::int64_t t) const {
    for (std::int64_t pair = 0; pair < pairs_; ++pair) {
      W &cosine = row[pair], &sine = row[pairs_ + pair];
      if (waves_.waves.empty()) {
        cosine = rounded_to(data_type_of<W>(), table_entry<W>(table_.cosines, job_.positions, b, t, pair));
        sine = rounded_to(data_type_of<W>(), table_entry<W>(table_.sines, job_.positions, b, t, pair));
        if (form_.sign < 0) sine = -sine;
        continue;
      }
      const numerics::Angle angle = angle_of(waves_, pair, job_.positions, b, t);
      const std::int64_t position = job_.positions.at(b, t, waves_.waves[pair].axis);
      const double length = form_.magnitude * growth_at(pair_waves_of(form_).growth, pair, position, keys_);
      const auto unit = numerics::sine_cosine(numerics::reduce(angle));
      cosine = static_cast<W>(length * unit.cosine);
      sine = static_cast<W>(length * form_.sign * unit.sine);
    }
  }

  const RotateJob& job_;
  const Rotation& form_;
  const RotationTable& table_;
  const bool keys_;
  bool doubled_ = false;
  bool is_ready_ =
      false;  // the rows of a block lie one after the other in the caller's own tables, as they are wanted
  Waves waves_;
  std::int64_t pairs_ = 0, stride_ = 0, heads_ = 1;
  std::optional<RowsOfWaves<W>> wave_rows_;
  std::optional<MixedRows<W>> mixed_rows_;
};

}  // namespace posenc::kernels::cpu
