// If positions are consecutive, the biases of a query are a slice of one line of values by distance: each head's line
// is computed once, and rows are copied from it.

#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/element.h"
#include "terms/all.h"

namespace posenc::kernels::cpu {
namespace {

using namespace terms;

constexpr std::int64_t kGrain = 65536;  // minimum number of elements per thread

std::int64_t rows_worth(std::int64_t row_elements) { return std::max<std::int64_t>(1, kGrain / row_elements); }

template <class T> void write_row(const BiasJob& job, T* out, const T* values) {
  const std::int64_t keys = job.out.features, step = job.out.feature_stride;
  if (step == 1) {
    std::memcpy(out, values, keys * sizeof(T));
    return;
  }
  for (std::int64_t j = 0; j < keys; ++j) out[j * step] = values[j];
}

/// The columns of a table, one per head, in out's type.
template <class T> std::vector<T> columns_of(const DistanceTable& source, std::int64_t heads) {
  const ConstTensorView table = table_of(source, heads);
  const std::int64_t rows = table.shape[0];
  std::vector<T> columns(rows * heads);
  parallel_for(heads, rows_worth(rows), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t h = begin; h < end; ++h) {
      for (std::int64_t row = 0; row < rows; ++row) {
        columns[h * rows + row] = table_element<T>(table, row, h);
      }
    }
  });
  return columns;
}

// Calls row(b, h, i, out) for every row of the output.
template <class T, class Row> void for_each_row(const BiasJob& job, const Row& row) {
  const std::int64_t heads = job.out.heads, queries = job.out.sequence;
  parallel_for(job.out.batch * heads * queries, rows_worth(job.out.features),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t item = begin; item < end; ++item) {
                   const std::int64_t b = item / (heads * queries), h = item / queries % heads, i = item % queries;
                   row(b, h, i, job.out.row<T>(b, h, i));
                 }
               });
}

/// Consecutive queries and keys: one line of values by distance per head.
template <class T, class Value> void write_lines(const BiasJob& job, const Value& value_at) {
  const std::int64_t heads = job.out.heads, queries = job.out.sequence, length = queries + job.out.features - 1;
  const std::int64_t first = job.keys.first - (job.queries.first + queries - 1);  // the line's first distance
  std::vector<T> lines(heads * length);
  parallel_for(heads, rows_worth(length), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t h = begin; h < end; ++h) {
      T* const line = lines.data() + h * length;
      for (std::int64_t d = 0; d < length; ++d) line[d] = numerics::narrow<T>(value_at(h, first + d));
    }
  });
  for_each_row<T>(job, [&](std::int64_t, std::int64_t h, std::int64_t i, T* out) {
    write_row(job, out, lines.data() + h * length + (queries - 1 - i));
  });
}

/// Any kind of bias, one score at a time.
template <class T, class Kind> void write_scores(const BiasJob& job, const Tokens& tokens, const Kind& source) {
  for_each_row<T>(job, [&](std::int64_t b, std::int64_t h, std::int64_t i, T* out) {
    for (std::int64_t j = 0; j < job.out.features; ++j) {
      const double value = Term<Kind>::element(source, job.form->heads, {tokens, b, h, i, j});
      out[j * job.out.feature_stride] = numerics::narrow<T>(value);
    }
  });
}

// Calls row(b, i, scratch) for every query; all heads share the result.
template <class Scratch, class Row> void for_each_query(const BiasJob& job, const Scratch& scratch, const Row& row) {
  const std::int64_t queries = job.out.sequence;
  parallel_for(job.out.batch * queries, rows_worth(job.out.features * job.out.heads),
               [&](std::int64_t begin, std::int64_t end) {
                 Scratch mine = scratch;
                 for (std::int64_t item = begin; item < end; ++item) row(item / queries, item % queries, mine);
               });
}

// The rows of a table are the same for all heads.
template <class T> void write_scores(const BiasJob& job, const Tokens& tokens, const DistanceTable& source) {
  const std::vector<T> columns = columns_of<T>(source, job.form->heads);
  const std::int64_t table_rows = table_of(source, job.form->heads).shape[0];
  const std::vector<std::int64_t> scratch(job.out.features);
  for_each_query(job, scratch, [&](std::int64_t b, std::int64_t i, std::vector<std::int64_t>& rows) {
    for (std::int64_t j = 0; j < job.out.features; ++j) {
      rows[j] = row_of(source, {tokens, b, 0, i, j});
    }
    for (std::int64_t h = 0; h < job.out.heads; ++h) {
      const T* const column = columns.data() + h * table_rows;
      T* const out = job.out.row<T>(b, h, i);
      for (std::int64_t j = 0; j < job.out.features; ++j) {
        out[j * job.out.feature_stride] = column[rows[j]];
      }
    }
  });
}

// So are hidden units.
template <class T> void write_scores(const BiasJob& job, const Tokens& tokens, const DistanceRatios& source) {
  const std::vector<double> scratch(source.hidden_weights.size());
  for_each_query(job, scratch, [&](std::int64_t b, std::int64_t i, std::vector<double>& hidden) {
    for (std::int64_t j = 0; j < job.out.features; ++j) {
      const double ratio = ratio_of(source, {tokens, b, 0, i, j});
      for (std::size_t unit = 0; unit < hidden.size(); ++unit) hidden[unit] = hidden_unit(source, unit, ratio);
      for (std::int64_t h = 0; h < job.out.heads; ++h) {
        const double value = output_of(source, h, [&](std::size_t unit) { return hidden[unit]; });
        job.out.row<T>(b, h, i)[j * job.out.feature_stride] = numerics::narrow<T>(value);
      }
    }
  });
}

}  // namespace

void bias(const BiasJob& job) {
  const bool is_consecutive = !job.queries.has_ids() && !job.keys.has_ids();
  const terms::TokenPlaces places{job.queries, job.keys, false};
  const Tokens tokens{places};
  terms::with_term(*job.form, [&](const auto& source, auto term) {
    with_type(job.out.type, [&](auto kind) {
      using T = decltype(kind);
      if constexpr (requires { term.value_at(source, 0, 0, 0); }) {
        if (is_consecutive && term.is_of_distance(source)) {
          return write_lines<T>(job, [&](std::int64_t h, std::int64_t distance) {
            return term.value_at(source, job.form->heads, h, distance);
          });
        }
      }
      write_scores<T>(job, tokens, source);
    });
  });
}

}  // namespace posenc::kernels::cpu
