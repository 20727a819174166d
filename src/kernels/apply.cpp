// The verbs: every argument is checked here, once, so that kernels need not.

#include "posenc/apply.h"

#include <fmt/format.h>

#include "kernels/job.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using kernels::AddJob;
using kernels::TokenPositions;
using kernels::TokenTensor;

template <class Void>
TokenTensor<Void> tokens_of(std::string_view verb, std::string_view what, const BasicTensorView<Void>& view) {
  if (view.shape.rank < 2 || view.shape.rank > Extents::kMax) {
    raise(fmt::format("{}: {} must have 2 to {} axes, the last two sequence and width, but has {}", verb, what,
                      Extents::kMax, view.shape.rank));
  }
  if (view.strides.rank != view.shape.rank) {
    raise(fmt::format("{}: {} has {} axes but {} strides", verb, what, view.shape.rank, view.strides.rank));
  }
  const std::int64_t count = count_of(view.shape);
  if (count < 0) raise(fmt::format("{}: {} has an impossible shape {}", verb, what, to_string(view.shape)));
  if (count > 0 && view.data == nullptr) raise(fmt::format("{}: {} has no data", verb, what));
  if (view.type == DataType::kI64) raise(fmt::format("{}: {} must be f32, f64, f16 or bf16 but is i64", verb, what));

  TokenTensor<Void> tokens;
  tokens.data = view.data;
  tokens.type = view.type;
  for (int axis = 0; axis < view.shape.rank - 2; ++axis) {
    tokens.lead_shape.push_back(view.shape[axis]);
    tokens.lead_strides.push_back(view.strides[axis]);
    // An empty tensor may have extents whose product does not fit; nothing of it is walked.
    if (count > 0) tokens.batch *= view.shape[axis];
  }
  tokens.sequence = count > 0 ? view.shape.back(1) : 0;
  tokens.width = view.shape.back(0);
  tokens.token_stride = view.strides.back(1);
  tokens.column_stride = view.strides.back(0);
  return tokens;
}

void check_writable(std::string_view verb, std::string_view what, const TensorView& view) {
  if (count_of(view.shape) == 0) return;
  for (int axis = 0; axis < view.shape.rank; ++axis) {
    if (view.shape[axis] > 1 && view.strides[axis] == 0) {
      raise(fmt::format("{}: {} cannot be written: axis {} has stride 0", verb, what, axis));
    }
  }
}

// The bytes that a view may touch: [first, second).
struct Range {
  std::uintptr_t first, second;
};
Range range_of(const ConstTensorView& view) {
  std::int64_t low = 0, high = 0;
  for (int axis = 0; axis < view.shape.rank; ++axis) {
    const std::int64_t reach = (view.shape[axis] - 1) * view.strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const auto start = reinterpret_cast<std::uintptr_t>(view.data);
  const std::int64_t size = size_of(view.type);
  return {start + static_cast<std::uintptr_t>(low * size), start + static_cast<std::uintptr_t>((high + 1) * size)};
}

void check_same_or_apart(std::string_view verb, const TensorView& out, const ConstTensorView& x) {
  if (out.shape != x.shape) {
    raise(fmt::format("{}: out has shape {} but x {}", verb, to_string(out.shape), to_string(x.shape)));
  }
  if (out.type != x.type) raise(fmt::format("{}: out is {} but x {}", verb, name_of(out.type), name_of(x.type)));
  if (count_of(x.shape) == 0 || (out.data == x.data && out.strides == x.strides)) return;
  const Range a = range_of(out), b = range_of(x);
  if (a.first < b.second && b.first < a.second) raise(fmt::format("{}: out overlaps x without being x", verb));
}

// The rows a position may name, for forms that read a table.
struct RowLimit {
  std::int64_t rows = -1;  // none
  std::int64_t offset = 0;
};

void check_position(std::string_view verb, std::int64_t position, const RowLimit& limit) {
  if (position < 0 || position >= kPositionLimit) {
    raise(fmt::format("{}: position {} is outside 0 to 2^53 - 1", verb, position));
  }
  if (limit.rows < 0 || position + limit.offset < limit.rows) return;
  raise(fmt::format("{}: position {} is past the table: {} rows with offset {} end at position {}", verb, position,
                    limit.rows, limit.offset, limit.rows - limit.offset - 1));
}

template <class Void> TokenPositions positions_of(std::string_view verb, const Positions& positions, int axes,
                                                  const TokenTensor<Void>& x, const RowLimit& limit) {
  if (positions.axes != axes) {
    raise(fmt::format("{}: the form has {} position axes but the positions have {}", verb, axes, positions.axes));
  }
  TokenPositions checked;
  checked.axes = axes;
  if (positions.ids.empty()) {
    if (axes > 1 && x.batch * x.sequence > 0) raise(fmt::format("{}: {} position axes need ids", verb, axes));
    checked.first = positions.first;
    if (x.batch * x.sequence > 0) {
      check_position(verb, positions.first, limit);
      // first + sequence cannot overflow: both are below 2^62
      check_position(verb, positions.first + std::min(x.sequence, kPositionLimit) - 1, limit);
    }
    return checked;
  }
  const auto count = static_cast<std::int64_t>(positions.ids.size());
  const bool shared = count == axes * x.sequence;
  if (!shared && count != axes * x.batch * x.sequence) {
    raise(fmt::format("{}: {} position ids do not fit {} sequences of {} tokens and {} axes", verb, count, x.batch,
                      x.sequence, axes));
  }
  for (const std::int64_t id : positions.ids) check_position(verb, id, limit);
  checked.ids = positions.ids.data();
  checked.batch_stride = shared ? 0 : x.sequence;
  checked.axis_stride = count / axes;
  return checked;
}

void check_form(std::string_view verb, const Addition& form) {
  if (form.width < 1) raise(fmt::format("{}: the form must have a width of at least 1 but has {}", verb, form.width));
  const auto size_is = [&](std::size_t size, std::string_view what) {
    if (static_cast<std::int64_t>(size) == form.width) return;
    raise(fmt::format("{}: the form has width {} but {} {}", verb, form.width, size, what));
  };
  if (const auto* waves = std::get_if<Waves>(&form.source)) {
    size_is(waves->columns.size(), "columns");
    if (waves->axes < 1 || waves->axes > 255) raise(fmt::format("{}: the form has {} axes", verb, waves->axes));
    const auto count = static_cast<std::int64_t>(waves->waves.size());
    for (const WaveColumn& column : waves->columns) {
      if (column.wave < 0 || column.wave >= count) {
        raise(fmt::format("{}: the form names wave {} of {}", verb, column.wave, count));
      }
    }
    for (const Wave& wave : waves->waves) {
      if (wave.axis >= waves->axes) raise(fmt::format("{}: a wave has axis {} of {}", verb, wave.axis, waves->axes));
    }
    const std::size_t factors = waves->float32_angles.factors.size();
    if (factors != 0 && factors != waves->waves.size()) {
      raise(fmt::format("{}: the form has {} float32 factors for {} waves", verb, factors, count));
    }
  } else if (const auto* rows = std::get_if<Rows>(&form.source)) {
    const TokenTensor<const void> table = tokens_of(verb, "the form's table", rows->table);
    if (rows->table.shape.rank != 2) raise(fmt::format("{}: the form's table must be [rows, width]", verb));
    size_is(static_cast<std::size_t>(table.width), "columns in its table");
    if (rows->offset < 0 || rows->offset > kPositionLimit) {
      raise(fmt::format("{}: the form's offset must be between 0 and 2^53 but is {}", verb, rows->offset));
    }
  } else {
    const auto& lines = std::get<Lines>(form.source);
    size_is(lines.start.size(), "starts");
    size_is(lines.step.size(), "steps");
  }
}

void run(std::string_view verb, const TensorView& out, const ConstTensorView* x, const Positions& positions,
         const Addition& form) {
  check_form(verb, form);
  AddJob job;
  job.form = &form;
  job.out = tokens_of(verb, x == nullptr ? "out" : "x", out);
  check_writable(verb, x == nullptr ? "out" : "x", out);
  TokenTensor<const void> input;
  if (x != nullptr) {
    input = tokens_of(verb, "x", *x);
    check_same_or_apart(verb, out, *x);
    job.x = &input;
  }
  if (job.out.width != form.width) {
    raise(fmt::format("{}: the form has width {} but the tensor {}", verb, form.width, job.out.width));
  }
  const auto* waves = std::get_if<Waves>(&form.source);
  const auto* rows = std::get_if<Rows>(&form.source);
  const RowLimit limit = rows != nullptr ? RowLimit{rows->table.shape[0], rows->offset} : RowLimit{};
  job.positions = positions_of(verb, positions, waves != nullptr ? waves->axes : 1, job.out, limit);
  if (job.out.batch * job.out.sequence == 0) return;
  const kernels::Outcome outcome = kernels::selected_backend().add(job);
  if (!outcome.decided) {
    raise(fmt::format("{}: the rounding of column {} at position {} cannot be decided with 128 bits", verb,
                      outcome.column, outcome.position));
  }
}

}  // namespace

void tabulate(TensorView out, const Positions& positions, const Addition& form) {
  run("tabulate", out, nullptr, positions, form);
}

void add(TensorView x, const Positions& positions, const Addition& form) {
  const ConstTensorView input = x;
  run("add", x, &input, positions, form);
}

void add(TensorView out, ConstTensorView x, const Positions& positions, const Addition& form) {
  run("add", out, &x, positions, form);
}

void add_backward(TensorView d_table, ConstTensorView d_out, const Positions& positions, std::int64_t offset) {
  constexpr std::string_view verb = "add_backward";
  kernels::AddBackwardJob job;
  job.table = tokens_of(verb, "d_table", d_table);
  job.gradient = tokens_of(verb, "d_out", d_out);
  check_writable(verb, "d_table", d_table);
  if (d_table.shape.rank != 2) raise(fmt::format("{}: d_table must be [rows, width]", verb));
  if (job.table.width != job.gradient.width) {
    raise(fmt::format("{}: d_table has width {} but d_out {}", verb, job.table.width, job.gradient.width));
  }
  if (offset < 0 || offset > kPositionLimit)
    raise(fmt::format("{}: offset must be between 0 and 2^53 but is {}", verb, offset));
  job.offset = offset;
  job.positions = positions_of(verb, positions, 1, job.gradient, RowLimit{job.table.sequence, offset});
  if (job.gradient.batch * job.gradient.sequence == 0) return;
  kernels::selected_backend().add_backward(job);
}

}  // namespace posenc
