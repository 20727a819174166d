// The verbs check every argument here, once, so that kernels need not.

#include "posenc/apply.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "kernels/checks.h"
#include "kernels/job.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using namespace kernels;

// Frequencies of the axes after the first, if every axis drives every wave.
void check_further(std::string_view verb, const Waves& waves, bool on_cuda) {
  if (waves.further.empty()) return;
  const std::size_t wanted = waves.waves.size() * static_cast<std::size_t>(waves.axes - 1);
  if (waves.further.size() != wanted || !waves.float32_angles.factors.empty()) {
    raise(fmt::format("{}: waves that {} axes drive need {} further frequencies but have {}", verb, waves.axes,
                      wanted, waves.further.size()));
  }
  if (on_cuda) raise(fmt::format("{}: on cuda there is no kernel for waves that several axes drive", verb));
}

void check_waves(std::string_view verb, const Waves& waves) {
  if (waves.axes < 1 || waves.axes > 255) raise(fmt::format("{}: the form has {} axes", verb, waves.axes));
  const auto count = static_cast<std::int64_t>(waves.waves.size());
  for (const WaveColumn& column : waves.columns) {
    if (column.wave < 0 || column.wave >= count) {
      raise(fmt::format("{}: the form names wave {} of {}", verb, column.wave, count));
    }
  }
  for (const Wave& wave : waves.waves) {
    if (wave.axis >= waves.axes) raise(fmt::format("{}: a wave has axis {} of {}", verb, wave.axis, waves.axes));
  }
}

template <class T> bool are_same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Checks the waves and numbers them. Each thread remembers its last ones: comparing takes half the time of checking
// thousands of columns one by one, and both take longer than launching a kernel.
std::uint64_t number_of_waves(std::string_view verb, const Waves& waves) {
  struct Known {
    std::vector<Wave> waves;
    std::vector<WaveColumn> columns;
    int axes = 0;
    std::uint64_t number = 0;
  };
  thread_local Known last;
  if (last.number != 0 && last.axes == waves.axes && are_same_bytes(last.columns, waves.columns) &&
      are_same_bytes(last.waves, waves.waves)) {
    return last.number;
  }
  last.number = 0;
  check_waves(verb, waves);
  static std::atomic<std::uint64_t> numbers = 0;
  last = {waves.waves, waves.columns, waves.axes, ++numbers};
  return last.number;
}

// Returns the number of its waves, if they are numbered.
std::uint64_t check_form(std::string_view verb, const Addition& form, bool is_numbered) {
  std::uint64_t number = 0;
  if (form.width < 1) raise(fmt::format("{}: the form must have a width of at least 1 but has {}", verb, form.width));
  const auto size_is = [&](std::size_t size, std::string_view what) {
    if (static_cast<std::int64_t>(size) == form.width) return;
    raise(fmt::format("{}: the form has width {} but {} {}", verb, form.width, size, what));
  };
  if (const auto* waves = std::get_if<Waves>(&form.source)) {
    size_is(waves->columns.size(), "columns");
    if (is_numbered) {
      number = number_of_waves(verb, *waves);
    } else {
      check_waves(verb, *waves);
    }
    check_further(verb, *waves, is_numbered);
    const std::size_t factors = waves->float32_angles.factors.size();
    if (factors != 0 && factors != waves->waves.size()) {
      raise(fmt::format("{}: the form has {} float32 factors for {} waves", verb, factors, waves->waves.size()));
    }
  } else if (const auto* rows = std::get_if<Rows>(&form.source)) {
    const TokenTensor<const void> table = tokens_of(verb, "the form's table", rows->table);
    if (rows->table.shape.rank != 2) raise(fmt::format("{}: the form's table must be [rows, width]", verb));
    size_is(table.width, "columns in its table");
    if (rows->offset < 0 || rows->offset > kPositionLimit) {
      raise(fmt::format("{}: the form's offset must be between 0 and 2^53 but is {}", verb, rows->offset));
    }
  } else {
    const auto& lines = std::get<Lines>(form.source);
    size_is(lines.start.size(), "starts");
    size_is(lines.step.size(), "steps");
  }
  return number;
}

void apply(std::string_view verb, const TensorView& out, const ConstTensorView* x, const Positions& positions,
           const Addition& form, const Run& run) {
  const CallThreads threads_of_call(verb, run);
  AddJob job;
  job.form = &form;
  const bool is_numbered = out.device != Device::kHost || selected_backend().name == "cuda";
  job.waves_number = check_form(verb, form, is_numbered);
  job.out = tokens_of(verb, x == nullptr ? "out" : "x", out);
  check_writable(verb, x == nullptr ? "out" : "x", out);
  TokenTensor<const void> input;
  if (x != nullptr) {
    input = tokens_of(verb, "x", *x);
    check_same_shape(verb, out, *x);
    if (out.type != x->type)
      raise(fmt::format("{}: out is {} but x is {}", verb, name_of(out.type), name_of(x->type)));
    check_same_or_apart(verb, out, *x);
    job.x = &input;
  }
  if (job.out.width != form.width) {
    raise(fmt::format("{}: the form has width {} but the tensor has {}", verb, form.width, job.out.width));
  }
  const auto* rows = std::get_if<Rows>(&form.source);
  job.site = site_of(verb, {out, x != nullptr ? *x : out, rows != nullptr ? rows->table : out}, positions, run);
  const RowLimit limit = rows != nullptr ? RowLimit{rows->table.shape[0], rows->offset} : RowLimit{.is_signed = true};
  job.positions = positions_of(verb, positions, position_axes_of(form), {job.out.batch, job.out.sequence}, limit);
  if (job.out.batch * job.out.sequence == 0) return;
  const Outcome outcome = backend_for(verb, job.site.device).add(job);
  if (!outcome.decided) {
    raise(fmt::format("{}: the rounding of column {} at position {} cannot be decided with 128 bits", verb,
                      outcome.column, outcome.position));
  }
}

}  // namespace

void tabulate(TensorView out, const Positions& positions, const Addition& form, const Run& run) {
  apply("tabulate", out, nullptr, positions, form, run);
}

void add(TensorView x, const Positions& positions, const Addition& form, const Run& run) {
  const ConstTensorView input = x;
  apply("add", x, &input, positions, form, run);
}

void add(TensorView out, ConstTensorView x, const Positions& positions, const Addition& form, const Run& run) {
  apply("add", out, &x, positions, form, run);
}

void add_backward(TensorView d_table, ConstTensorView d_out, const Positions& positions, std::int64_t offset,
                  const Run& run) {
  constexpr std::string_view verb = "add_backward";
  const CallThreads threads_of_call(verb, run);
  AddBackwardJob job;
  job.table = tokens_of(verb, "d_table", d_table);
  job.gradient = tokens_of(verb, "d_out", d_out);
  check_writable(verb, "d_table", d_table);
  if (d_table.shape.rank != 2) raise(fmt::format("{}: d_table must be [rows, width]", verb));
  if (job.table.width != job.gradient.width) {
    raise(fmt::format("{}: d_table has width {} but d_out has {}", verb, job.table.width, job.gradient.width));
  }
  if (offset < 0 || offset > kPositionLimit)
    raise(fmt::format("{}: offset must be between 0 and 2^53 but is {}", verb, offset));
  job.offset = offset;
  job.site = site_of(verb, {d_table, d_out}, positions, run);
  job.positions = positions_of(verb, positions, 1, {job.gradient.batch, job.gradient.sequence},
                               RowLimit{job.table.sequence, offset});
  if (job.gradient.batch * job.gradient.sequence == 0) return;
  backend_for(verb, job.site.device).add_backward(job);
}

}  // namespace posenc
