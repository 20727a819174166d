// The definition of add and tabulate, as plain as possible: one element at a time, every wave by integers.

#include "kernels/element.h"

namespace posenc::kernels::reference {
namespace {

// The vector of one token, each element rounded once to V.
template <class V> struct VectorAt {
  const AddJob& job;
  Outcome& outcome;
  std::int64_t b, t;

  void operator()(const Waves& waves, V* out) const {
    for (std::size_t c = 0; c < waves.columns.size(); ++c) {
      const WaveColumn column = waves.columns[c];
      const numerics::Angle angle = angle_of(waves, column.wave, job.positions, b, t);
      if (!numerics::round_wave_by_integers(out[c], angle, column.quarter, waves.scale)) {
        outcome = {false, job.positions.at(b, t, 0), static_cast<std::int64_t>(c)};
      }
    }
  }
  void operator()(const Rows& rows, V* out) const {
    const std::int64_t row = job.positions.at(b, t) + rows.offset;
    for (std::int64_t c = 0; c < job.out.width; ++c) out[c] = table_element<V>(rows.table, row, c);
  }
  void operator()(const Lines& lines, V* out) const {
    for (std::size_t c = 0; c < lines.start.size(); ++c) {
      out[c] = numerics::narrow<V>(line_element(lines, c, job.positions.at(b, t)));
    }
  }
};

template <class T> void write_tokens(const AddJob& job, Outcome& outcome) {
  using W = Working<T>;
  std::vector<T> vector(job.out.width);
  std::vector<W> addend(vector.size());
  for (std::int64_t b = 0; b < job.out.batch; ++b) {
    for (std::int64_t t = 0; t < job.out.sequence; ++t) {
      T* out = job.out.token<T>(b, t);
      if (job.x == nullptr) {
        std::visit(
            [&](const auto& source) {
              VectorAt<T>{job, outcome, b, t}(source, vector.data());
            },
            job.form->source);
        for (std::int64_t c = 0; c < job.out.width; ++c) {
          out[c * job.out.column_stride] = vector[c];
        }
        continue;
      }
      std::visit(
          [&](const auto& source) {
            VectorAt<W>{job, outcome, b, t}(source, addend.data());
          },
          job.form->source);
      const T* x = job.x->token<T>(b, t);
      for (std::int64_t c = 0; c < job.out.width; ++c) {
        const auto term = static_cast<W>(numerics::widen(x[c * job.x->column_stride]));
        const W sum = term + addend[c];
        out[c * job.out.column_stride] = numerics::narrow<T>(static_cast<double>(sum));
      }
    }
  }
}

}  // namespace

Outcome add(const AddJob& job) {
  Outcome outcome;
  with_type(job.out.type, [&](auto kind) { write_tokens<decltype(kind)>(job, outcome); });
  return outcome;
}

}  // namespace posenc::kernels::reference
