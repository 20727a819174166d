// rotate: cosines and sines are computed one block of tokens at a time in scratch memory that stays in the cache,
// then used for every head of the queries and keys.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "kernels/cpu/cos_sin.h"
#include "kernels/cpu/fetch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rotate_rows.h"
#include "kernels/row_copy.h"

namespace posenc::kernels::cpu {
namespace {

/// Where the first token of a block goes. In a cache, which has pages in place of sequences, all of its tokens are in one.
struct Place {
  std::int64_t b, t;
};

/// One tensor and how its rows are rotated.
template <class Out, class In, class W> class RowRotator {
 public:
  RowRotator(const RotateJob& job, const RotateJob::Part& part) : part_(part) {
    const Rotation& form = *job.form;
    rounding_ = arithmetic_type(form, part.x.type);
    dims_ = 2 * pairs_of(form);
    pairs_ = dims_ / 2 / form.blocks;
    blocks_ = form.blocks;
    places_ = placement_of(form.layout, pairs_);
    in_place_ = static_cast<const void*>(part.out.data) == part.x.data;
    is_plain_ = std::is_same_v<Out, In> && part.x.feature_stride == 1 && part.out.feature_stride == 1 &&
                rounding_ == data_type_of<W>() && std::is_same_v<W, Working<In>>;
  }

  void rotate(const Block& block, const Place& to, const CosSinRows<W>& cos_sin) const {
    if constexpr (std::is_same_v<Out, In> && std::is_same_v<W, Working<In>>) {
      if (is_plain_) return rotate_plainly(block, to, cos_sin);
    }
    rotate_by_lines(block, to, cos_sin);
  }

 private:
  void rotate_plainly(const Block& block, const Place& to, const CosSinRows<W>& cos_sin) const {
    const auto& x = part_.x;
    const auto& out = part_.out;
    RotateRows<Out, W> rows;
    rows.out = out.template row<Out>(to.b, 0, to.t) + part_.first;
    rows.x = x.template row<Out>(block.b, 0, block.t0) + part_.first;
    rows.cosines = cos_sin.cosines;
    rows.sines = cos_sin.sines;
    rows.pairs = pairs_;
    rows.blocks = blocks_;
    rows.read = places_.read;
    rows.write = places_.write;
    const RotateLoop heads{x.heads, out.head_stride, x.head_stride, cos_sin.head_stride};
    const RotateLoop tokens{block.t1 - block.t0, out.token_stride, x.token_stride, cos_sin.stride};
    const bool heads_inside = x.heads == 1 || std::abs(x.head_stride) <= std::abs(x.token_stride);
    rows.outer = heads_inside ? tokens : heads;
    rows.inner = heads_inside ? heads : tokens;
    AlignedVector<Out> scratch(in_place_ && !(places_.read == places_.write) ? static_cast<std::size_t>(2 * pairs_)
                                                                             : 0);
    rows.scratch = scratch.empty() ? nullptr : scratch.data();
    const std::int64_t elements = x.batch * x.heads * x.sequence * x.features;
    rows.ahead = ahead_for(elements * static_cast<std::int64_t>(sizeof(In)));
    rotate_rows(rows);
    if (!in_place_) copy_the_rest(block, to);
  }

  // The features that are not rotated.
  void copy_the_rest(const Block& block, const Place& to) const {
    const auto& x = part_.x;
    const auto& out = part_.out;
    if (dims_ == x.features) return;
    const std::int64_t after = part_.first + dims_;
    const RowCopy<Out, In> before{part_.first, out.feature_stride, x.feature_stride, true};
    const RowCopy<Out, In> rest{x.features - after, out.feature_stride, x.feature_stride, true};
    for (std::int64_t h = 0; h < x.heads; ++h) {
      for (std::int64_t t = block.t0; t < block.t1; ++t) {
        const In* from = x.template row<In>(block.b, h, t);
        Out* const row = out.template row<Out>(to.b, h, to.t + t - block.t0);
        before(row, from);
        rest(row + after * out.feature_stride, from + after * x.feature_stride);
      }
    }
  }

  // For any strides, types and roundings: the heads of a token are converted to the type of the arithmetic in a buffer, and
  // from there after their rotation, unless they have that type.
  void rotate_by_lines(const Block& block, const Place& to, const CosSinRows<W>& cos_sin) const {
    const auto& x = part_.x;
    const auto& out = part_.out;
    const bool reads = std::is_same_v<In, W> && x.feature_stride == 1 && !in_place_;
    const bool writes = std::is_same_v<Out, W> && out.feature_stride == 1 && !in_place_;
    const auto size = static_cast<std::size_t>(x.heads * dims_);
    AlignedVector<W> lines(reads ? 0 : size), rotated(writes ? 0 : size);
    const RowCopy<W, In> load{dims_, 1, x.feature_stride, true};
    const RowCopy<Out, W> store{dims_, out.feature_stride, 1, true};
    for (std::int64_t t = block.t0; t < block.t1; ++t) {
      const In* const from = x.template row<In>(block.b, 0, t) + part_.first * x.feature_stride;
      Out* const row = out.template row<Out>(to.b, 0, to.t + t - block.t0) + part_.first * out.feature_stride;
      for (std::int64_t h = 0; h < x.heads && !reads; ++h) load(lines.data() + h * dims_, from + h * x.head_stride);
      Lines heads{rotated.data(), lines.data(), dims_, dims_};
      if constexpr (std::is_same_v<In, W>) {
        if (reads) heads.x = from, heads.x_stride = x.head_stride;
      }
      if constexpr (std::is_same_v<Out, W>) {
        if (writes) heads.out = row, heads.out_stride = out.head_stride;
      }
      rotate_lines(heads, cos_sin, (t - block.t0) * cos_sin.stride);
      for (std::int64_t h = 0; h < x.heads && !writes; ++h) {
        store(row + h * out.head_stride, rotated.data() + h * dims_);
      }
    }
    if (!in_place_) copy_the_rest(block, to);
  }
  // The heads of a token.
  struct Lines {
    W* out;
    const W* x;
    std::int64_t out_stride, x_stride;
  };
  // `row` is where its cosines begin.
  void rotate_lines(const Lines& heads, const CosSinRows<W>& cos_sin, std::int64_t row) const {
    if (rounding_ != data_type_of<W>()) {
      for (std::int64_t h = 0; h < part_.x.heads; ++h) {
        round_line(heads.x + h * heads.x_stride, heads.out + h * heads.out_stride, cos_sin,
                   row + h * cos_sin.head_stride);
      }
      return;
    }
    RotateRows<W, W> rows;
    rows.out = heads.out;
    rows.x = heads.x;
    rows.cosines = cos_sin.cosines + row;
    rows.sines = cos_sin.sines + row;
    rows.pairs = pairs_;
    rows.blocks = blocks_;
    rows.read = places_.read;
    rows.write = places_.write;
    rows.inner = {part_.x.heads, heads.out_stride, heads.x_stride, cos_sin.head_stride};
    rotate_rows(rows);
  }
  // Every result rounded to a narrower type.
  void round_line(const W* line, W* rotated, const CosSinRows<W>& cos_sin, std::int64_t row) const {
    const auto round = [&](W value) { return rounded_to(rounding_, value); };
    const std::int64_t step = wants_doubled(places_) ? 2 : 1;
    for (std::int64_t i = 0; i < pairs_ * blocks_; ++i) {
      const std::int64_t start = i / pairs_ * 2 * pairs_, pair = i % pairs_;
      const W* from = line + start + pair * places_.read.step;
      W* to = rotated + start + pair * places_.write.step;
      const std::int64_t at = row + step * i + (step - 1);
      const W c = cos_sin.cosines[at], s = cos_sin.sines[at];
      const W u = from[0], v = from[places_.read.apart];
      to[0] = round(round(u * c) - round(v * s));
      to[places_.write.apart] = round(round(v * c) + round(u * s));
    }
  }

  const RotateJob::Part& part_;
  DataType rounding_ = DataType::kF32;
  std::int64_t dims_ = 0, pairs_ = 0, blocks_ = 1;
  PairPlacement places_;
  bool in_place_ = false, is_plain_ = false;
};

// Rotates one block of a part.
template <class W> using PartRotator = void (*)(const RotateJob&, const RotateJob::Part&, const Block&, const Place&,
                                                const CosSinRows<W>&);

template <class W> PartRotator<W> rotator_of(const RotateJob::Part& part) {
  return with_type(part.out.type, [&](auto out) {
    return with_type(part.x.type, [&](auto in) -> PartRotator<W> {
      return [](const RotateJob& job, const RotateJob::Part& which, const Block& block, const Place& to,
                const CosSinRows<W>& cos_sin) {
        RowRotator<decltype(out), decltype(in), W>(job, which).rotate(block, to, cos_sin);
      };
    });
  });
}

// Calls rotate(tokens, to, cos_sin) for a block; in a cache, for each run of its tokens with consecutive slots in one page.
template <class W, class Rotate>
void each_run(const RotateJob::Part& part, const Block& block, const CosSinRows<W>& cos_sin, const Rotate& rotate) {
  if (part.slots == nullptr) return rotate(block, Place{block.b, block.t0}, cos_sin);
  const std::int64_t size = part.out.sequence;
  for (std::int64_t t = block.t0, end = t; t < block.t1; t = end) {
    const std::int64_t slot = part.slot(block.b, t);
    for (end = t + 1; slot >= 0 && end < block.t1; ++end) {
      const std::int64_t next = slot + (end - t);
      if (part.slot(block.b, end) != next || next % size == 0) break;
    }
    if (slot < 0) continue;
    CosSinRows<W> own = cos_sin;
    own.cosines += (t - block.t0) * own.stride;
    own.sines += (t - block.t0) * own.stride;
    rotate(Block{block.b, t, end}, Place{slot / size, slot % size}, own);
  }
}

Waves& spare_waves() {
  thread_local Waves spare;
  return spare;
}

// The parts from `begin` to `end`, which are computed in the same type, share their cosines and sines.
template <class W> Outcome run(const RotateJob& job, int begin, int end) {
  const CosSinMaker<W> maker(job, job.parts[static_cast<std::size_t>(begin)].keys);
  const auto& x = job.parts[static_cast<std::size_t>(begin)].x;
  std::int64_t row = 0;
  std::array<PartRotator<W>, 2> rotators = {};
  for (int p = begin; p < end; ++p) {
    const RotateJob::Part& part = job.parts[static_cast<std::size_t>(p)];
    row += part.x.heads * part.x.features;
    rotators[static_cast<std::size_t>(p)] = rotator_of<W>(part);
  }
  const std::int64_t rows = maker.block_rows(), blocks = (x.sequence + rows - 1) / rows;
  const std::int64_t block_size = std::min(rows, x.sequence) * row;
  const std::int64_t worth = maker.is_slow() ? 1 : 65536;  // elements that are worth a thread
  const std::int64_t grain = std::max<std::int64_t>(1, worth / std::max<std::int64_t>(1, block_size));
  Outcome outcome;
  std::mutex outcome_lock;
  parallel_for(blocks * x.batch, grain, [&](std::int64_t first, std::int64_t last) {
    auto scratch = maker.scratch();
    Outcome here;
    const auto block_at = [&](std::int64_t item) {
      const std::int64_t t0 = item % blocks * rows;
      return Block{item / blocks, t0, std::min(t0 + rows, x.sequence)};
    };
    for (std::int64_t item = first; item < last; ++item) {
      const Block block = block_at(item);
      if (item + 1 < last) maker.fetch_rows(block_at(item + 1));
      const CosSinRows<W> cos_sin = maker.make(block, scratch, here);
      for (int p = begin; p < end; ++p) {
        const RotateJob::Part& part = job.parts[static_cast<std::size_t>(p)];
        each_run(part, block, cos_sin, [&](const Block& some, const Place& to, const CosSinRows<W>& rows_of_it) {
          rotators[static_cast<std::size_t>(p)](job, part, some, to, rows_of_it);
        });
      }
    }
    if (!here.decided) {
      const std::lock_guard<std::mutex> hold(outcome_lock);
      outcome = here;
    }
  });
  return outcome;
}

}  // namespace

Waves kept_waves_of(const Rotation& form) {
  Waves waves = std::move(spare_waves());
  set_waves(waves, form);
  return waves;
}
void keep_waves(Waves&& waves) noexcept { spare_waves() = std::move(waves); }

Outcome rotate(const RotateJob& job) {
  const auto is_wide = [&](int p) {
    return arithmetic_type(*job.form, job.parts[static_cast<std::size_t>(p)].x.type) == DataType::kF64;
  };
  // Queries and keys are rotated together, unless they use different types or different growth.
  const bool together = job.count == 1 || (!has_growth(*job.form) && is_wide(0) == is_wide(1));
  Outcome outcome;
  for (int begin = 0; begin < job.count;) {
    const int end = together ? job.count : begin + 1;
    const Outcome here = is_wide(begin) ? run<double>(job, begin, end) : run<float>(job, begin, end);
    if (!here.decided) outcome = here;
    begin = end;
  }
  return outcome;
}

}  // namespace posenc::kernels::cpu
