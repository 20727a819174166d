// add and tabulate: position vectors are computed one block of rows at a time in scratch memory that stays in the
// cache, then added to (or written to) every sequence of the batch.

#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "kernels/cpu/double_rows.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_math.h"
#include "kernels/element.h"
#include "kernels/memory.h"

namespace posenc::kernels::cpu {
namespace {

// Sequences are visited one after another, and memory is prefetched this many visits ahead.
constexpr std::int64_t kVisitsAhead = 2;

/// The tokens t0 … t1 − 1 of sequence b.
struct Block {
  std::int64_t b, t0, t1;
};
/// Their position vectors in the working type, wherever they are stored.
template <class W> struct Vectors {
  const W* data;
  std::int64_t row_stride;
};

/// Computes the vectors of a block. `Scratch` is what a thread keeps from block to block.
template <class W> class VectorMaker {
 public:
  struct Scratch {
    AlignedVector<W> vectors;
    typename RowsOfWaves<W>::Anchor anchor;
    AlignedVector<std::uint16_t> narrow;  // rows of a 16-bit table that are not computed in place
  };

  explicit VectorMaker(const AddJob& job) : job_(job), row_stride_(job.out.width) {
    if (const auto* waves = std::get_if<Waves>(&job.form->source)) {
      wave_rows_.emplace(*waves, job.positions, job.out.sequence);
      // One more cache line: rows a power of two apart would compete for the same cache sets.
      row_stride_ = wave_rows_->padded() + 16;
      if constexpr (std::is_same_v<W, float>) {
        if (job.x == nullptr && job.out.type != DataType::kF32) wave_rows_->prepare_16_bits();
      }
    }
  }
  Scratch scratch() const {
    const std::int64_t rows = std::min(kBlockRows, job_.out.sequence);
    return {AlignedVector<W>(is_ready() ? 0 : static_cast<std::size_t>(rows * row_stride_)), {}, {}};
  }
  /// How many elements of a sequence to add to before going on to the next. Best on a Neoverse V1, in percent of a
  /// plain loop over eight sequences: for ready-made vectors, one page at a time (97; four pages 84); for vectors
  /// computed in between, four (71; one 68).
  std::int64_t visit() const { return is_ready() ? 1024 : 4096; }
  /// Whether a block of vectors takes long.
  bool is_slow() const { return wave_rows_ && std::is_same_v<W, double>; }
  /// Whether vectors can be computed directly in `out`, without scratch memory.
  bool makes_in_place() const {
    return wave_rows_ && job_.x == nullptr && job_.out.type == data_type_of<W>() && job_.out.column_stride == 1 &&
           job_.out.width == wave_rows_->padded();
  }
  void make_in_place(const Block& block, Scratch& scratch, Outcome& outcome) const {
    wave_rows_->make(block.b, block.t0, block.t1, job_.out.template token<W>(block.b, block.t0),
                     job_.out.token_stride, scratch.anchor, outcome);
  }
  /// Writes the block to `together` sequences of a 16-bit table without going through float32. If that is not
  /// possible, returns false and writes nothing.
  template <class T>
  bool write_16_bits(const Block& block, std::int64_t together, Scratch& scratch, Outcome& outcome) const {
    const auto& out = job_.out;
    if (!wave_rows_ || job_.x != nullptr) return false;
    if (together == 1 && out.column_stride == 1 && out.width == wave_rows_->padded()) {
      return wave_rows_->make_16_bits(block.b, block.t0, block.t1, out.template token<T>(block.b, block.t0),
                                      out.token_stride, scratch.anchor, outcome);
    }
    scratch.narrow.resize(kBlockRows * row_stride_);
    auto* const rows = reinterpret_cast<T*>(scratch.narrow.data());
    if (!wave_rows_->make_16_bits(block.b, block.t0, block.t1, rows, row_stride_, scratch.anchor, outcome)) {
      return false;
    }
    for (std::int64_t b = block.b; b < block.b + together; ++b) {
      for (std::int64_t t = block.t0; t < block.t1; ++t) {
        const T* const from = rows + (t - block.t0) * row_stride_;
        T* const to = out.template token<T>(b, t);
        for (std::int64_t c = 0; c < out.width; ++c) to[c * out.column_stride] = from[c];
      }
    }
    return true;
  }
  Vectors<W> make(const Block& block, Scratch& scratch, Outcome& outcome) const {
    return std::visit([&](const auto& source) { return from(source, block, scratch, outcome); }, job_.form->source);
  }

 private:
  // Whether the vectors are consecutive rows of the caller's own table.
  bool is_ready() const {
    const auto* rows = std::get_if<Rows>(&job_.form->source);
    return rows != nullptr && rows->table.type == data_type_of<W>() && rows->table.strides[1] == 1 &&
           !job_.positions.has_ids();
  }

  // Calls element(column, vector element, token) for each in turn.
  template <class Element> Vectors<W> fill(const Block& block, Scratch& scratch, const Element& element) const {
    for (std::int64_t t = block.t0; t < block.t1; ++t) {
      W* out = scratch.vectors.data() + (t - block.t0) * row_stride_;
      for (std::int64_t c = 0; c < job_.out.width; ++c) element(c, out[c], t);
    }
    return {scratch.vectors.data(), row_stride_};
  }

  Vectors<W> from(const Waves&, const Block& block, Scratch& scratch, Outcome& outcome) const {
    wave_rows_->make(block.b, block.t0, block.t1, scratch.vectors.data(), row_stride_, scratch.anchor, outcome);
    return {scratch.vectors.data(), row_stride_};
  }
  Vectors<W> from(const Rows& rows, const Block& block, Scratch& scratch, Outcome&) const {
    if (is_ready()) {
      const std::int64_t first = job_.positions.at(block.b, block.t0) + rows.offset, stride = rows.table.strides[0];
      return {static_cast<const W*>(rows.table.data) + first * stride, stride};
    }
    if constexpr (std::is_same_v<W, float>) {
      if (rows.table.strides[1] == 1 && rows.table.type == DataType::kBF16)
        return widen<BFloat16>(rows, block, scratch);
      if (rows.table.strides[1] == 1 && rows.table.type == DataType::kF16) return widen<Half>(rows, block, scratch);
    }
    return fill(block, scratch, [&](std::int64_t c, W& out, std::int64_t t) {
      out = table_element<W>(rows.table, job_.positions.at(block.b, t) + rows.offset, c);
    });
  }
  // Contiguous rows of a 16-bit table.
  template <class T> Vectors<float> widen(const Rows& rows, const Block& block, Scratch& scratch) const {
    for (std::int64_t t = block.t0; t < block.t1; ++t) {
      const std::int64_t row = job_.positions.at(block.b, t) + rows.offset;
      widen_row(scratch.vectors.data() + (t - block.t0) * row_stride_,
                static_cast<const T*>(rows.table.data) + row * rows.table.strides[0], job_.out.width);
    }
    return {scratch.vectors.data(), row_stride_};
  }
  Vectors<W> from(const Lines& lines, const Block& block, Scratch& scratch, Outcome&) const {
    return fill(block, scratch, [&](std::int64_t c, W& out, std::int64_t t) {
      out = numerics::narrow<W>(line_element(lines, c, job_.positions.at(block.b, t)));
    });
  }

  const AddJob& job_;
  std::int64_t row_stride_;
  std::optional<RowsOfWaves<W>> wave_rows_;
};

// x + vectors. `next`: where x will be needed soon.
template <class T, class W>
void add_block(const AddJob& job, const Block& block, const Vectors<W>& vectors, T* line, const T* next) {
  const std::int64_t width = job.out.width, rows = block.t1 - block.t0;
  const std::int64_t x_step = job.x->column_stride, out_step = job.out.column_stride;
  const T* x = job.x->token<T>(block.b, block.t0);
  T* out = job.out.token<T>(block.b, block.t0);
  if (x_step == 1 && out_step == 1) {
    add_rows(AddRows<T, W>{out, x, vectors.data, job.out.token_stride, job.x->token_stride, vectors.row_stride, rows,
                           width, next});
    return;
  }
  // Columns that are not contiguous are copied through a contiguous buffer.
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < width; ++c) line[c] = x[row * job.x->token_stride + c * x_step];
    add_rows(AddRows<T, W>{line, line, vectors.data + row * vectors.row_stride, 0, 0, 0, 1, width, line});
    for (std::int64_t c = 0; c < width; ++c) out[row * job.out.token_stride + c * out_step] = line[c];
  }
}

// Whether a float32 lies exactly between two numbers of T: only then could rounding it to T give a different result
// from rounding the exact value.
template <class T> bool is_midpoint(float value) {
  if constexpr (std::is_same_v<T, BFloat16>) return (std::bit_cast<std::uint32_t>(value) & 0xFFFF) == 0x8000;
  const double size = std::fabs(static_cast<double>(value));
  if (size >= 0x1p-14) return (std::bit_cast<std::uint32_t>(value) & 0x1FFF) == 0x1000;
  const double steps = size * 0x1p24;  // f16 is evenly spaced below 2^-14
  return steps - std::floor(steps) == 0.5;
}

// Whether any of them might be, by a test that compilers vectorise; small f16 numbers always might.
template <class T> bool may_have_midpoint(const float* values, std::int64_t n) {
  std::uint32_t found = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    if constexpr (std::is_same_v<T, BFloat16>) {
      found |= (bits & 0xFFFF) == 0x8000 ? 1u : 0u;
    } else {
      found |= (bits & 0x1FFF) == 0x1000 || (bits & 0x7FFFFFFF) < 0x38800000 ? 1u : 0u;
    }
  }
  return found != 0;
}

// One element of a vector, rounded once to T from its exact value.
template <class T> bool exact_element(T& out, const AddJob& job, std::int64_t b, std::int64_t t, std::int64_t c) {
  if (const auto* waves = std::get_if<Waves>(&job.form->source)) {
    const WaveColumn column = waves->columns[c];
    const auto angle = angle_of(*waves, column.wave, job.positions, b, t);
    return numerics::round_wave_by_integers(out, angle, column.quarter, waves->scale);
  }
  const std::int64_t position = job.positions.at(b, t);
  if (const auto* lines = std::get_if<Lines>(&job.form->source)) {
    out = numerics::narrow<T>(line_element(*lines, c, position));
  } else {
    const auto& rows = std::get<Rows>(job.form->source);
    out = table_element<T>(rows.table, position + rows.offset, c);
  }
  return true;
}

// One token of a table: the vector itself, rounded once to T.
template <class T, class W>
void write_token(const AddJob& job, std::int64_t b, std::int64_t t, const W* vector, T* line, Outcome& outcome) {
  const std::int64_t width = job.out.width, step = job.out.column_stride;
  T* out = job.out.token<T>(b, t);
  T* target = step == 1 ? out : line;
  if constexpr (std::is_same_v<T, W>) {
    std::memcpy(target, vector, width * sizeof(T));
  } else {
    narrow_row(target, vector, width);
    const std::int64_t suspects = may_have_midpoint<T>(vector, width) ? width : 0;
    for (std::int64_t c = 0; c < suspects; ++c) {
      if (is_midpoint<T>(vector[c]) && !exact_element(target[c], job, b, t, c)) {
        outcome = {false, job.positions.at(b, t), c};
      }
    }
  }
  if (step != 1) {
    for (std::int64_t c = 0; c < width; ++c) out[c * step] = line[c];
  }
}

template <class T> Outcome run(const AddJob& job) {
  using W = Working<T>;
  const VectorMaker<W> maker(job);
  const std::int64_t blocks = (job.out.sequence + kBlockRows - 1) / kBlockRows;
  // Sequences with the same positions share a block's vectors, unless that would leave threads idle.
  const bool shared = job.positions.batch_stride == 0 && (blocks >= 8 || job.out.batch == 1);
  const std::int64_t together = shared ? job.out.batch : 1;
  const std::int64_t groups = job.out.batch / together;
  const std::int64_t worth = maker.is_slow() ? 1 : 65536;  // elements that are worth a thread
  const std::int64_t grain = std::max<std::int64_t>(1, worth / (kBlockRows * job.out.width * together));

  Outcome outcome;
  std::mutex outcome_lock;
  parallel_for(blocks * groups, grain, [&](std::int64_t begin, std::int64_t end) {
    auto scratch = maker.scratch();
    std::vector<T> line(job.out.width);
    Outcome here;
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t first = item / blocks * together, t0 = item % blocks * kBlockRows;
      const Block block{first, t0, std::min(t0 + kBlockRows, job.out.sequence)};
      if (together == 1 && maker.makes_in_place()) {
        maker.make_in_place(block, scratch, here);
        continue;
      }
      if constexpr (sizeof(T) == sizeof(std::uint16_t)) {
        if (maker.template write_16_bits<T>(block, together, scratch, here)) continue;
      }
      const Vectors<W> vectors = maker.make(block, scratch, here);
      if (job.x != nullptr) {
        const std::int64_t step = std::max<std::int64_t>(1, maker.visit() / job.out.width);
        for (std::int64_t t = t0; t < block.t1; t += step) {
          for (std::int64_t n = 0; n < together; ++n) {
            const std::int64_t soon = n + kVisitsAhead;
            add_block<T, W>(job, {first + n, t, std::min(t + step, block.t1)},
                            {vectors.data + (t - t0) * vectors.row_stride, vectors.row_stride}, line.data(),
                            job.x->template token<T>(first + soon % together, t + soon / together * step));
          }
        }
        continue;
      }
      for (std::int64_t b = first; b < first + together; ++b) {
        for (std::int64_t t = t0; t < block.t1; ++t) {
          write_token<T, W>(job, b, t, vectors.data + (t - t0) * vectors.row_stride, line.data(), here);
        }
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

Outcome add(const AddJob& job) {
  return with_type(job.out.type, [&](auto kind) { return run<decltype(kind)>(job); });
}

}  // namespace posenc::kernels::cpu
