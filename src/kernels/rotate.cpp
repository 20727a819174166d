// rotate and related verbs check every argument here, once, so that kernels need not.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/checks.h"
#include "kernels/job.h"
#include "kernels/rotation_element.h"
#include "kernels/slots.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using namespace kernels;

// What check_form asks of each kind of source. Each returns the rows that it has for positions.
RowLimit check_source(std::string_view verb, const Rotation& form, const PairWaves& waves) {
  const std::int64_t pairs = pairs_of(form);
  if (form.position_axes < 1 || form.position_axes > 255) {
    raise(fmt::format("{}: the form has {} position axes", verb, form.position_axes));
  }
  const auto count_is = [&](std::size_t count, std::string_view what) {
    if (count == 0 || static_cast<std::int64_t>(count) == pairs) return;
    raise(fmt::format("{}: the form has {} pairs but {} {}", verb, pairs, count, what));
  };
  count_is(waves.axes.size(), "axes");
  count_is(waves.float32_angles.factors.size(), "float32 factors");
  count_is(waves.float32_angles.blends.size(), "float32 blends");
  count_is(waves.growth.rates.size(), "rates of growth");
  for (const std::uint8_t axis : waves.axes) {
    if (axis >= form.position_axes) {
      raise(fmt::format("{}: a pair has axis {} of {}", verb, axis, form.position_axes));
    }
  }
  return {.is_signed = true};
}

RowLimit check_source(std::string_view verb, const Rotation& form, const HeadWaves& waves) {
  const std::int64_t count = std::ssize(form.frequencies);
  if (count != waves.heads * pairs_of(form) * form.position_axes) {
    raise(fmt::format("{}: the form's {} frequencies do not divide among {} heads and {} axes", verb, count,
                      waves.heads, form.position_axes));
  }
  return {.is_signed = true};
}

RowLimit check_source(std::string_view verb, const Rotation& form, const Mixture& mixture) {
  const std::int64_t count = std::ssize(form.frequencies), weights = mixture.heads * count * mixture.mixed;
  const auto has = [](const std::vector<double>& values, std::int64_t size) { return std::ssize(values) == size; };
  const auto fits = [&](const std::vector<double>& offsets) {
    return offsets.empty() || has(offsets, mixture.pairs);
  };
  const bool is_whole = mixture.mixed >= 0 && mixture.mixed <= mixture.pairs && has(mixture.cosines, weights) &&
                        has(mixture.sines, weights) && fits(mixture.cosine_offsets) && fits(mixture.sine_offsets);
  if (!is_whole || form.position_axes != 1) {
    raise(fmt::format("{}: the form's mixture must have {} weights for {} heads and {} waves, on one axis", verb,
                      weights, mixture.heads, count));
  }
  return {.is_signed = true};
}

RowLimit check_source(std::string_view verb, const Rotation& form, const RotationTable& table) {
  if (!form.frequencies.empty()) raise(fmt::format("{}: the form has both frequencies and a table", verb));
  if (form.magnitude != 1) raise(fmt::format("{}: a table holds its own magnitude", verb));
  const auto& [cosines, sines] = table;
  constexpr std::string_view kAxes = "2 axes, rows and pairs, or 3, batch, sequence and pairs";
  check_tensor(verb, "the table of cosines", cosines, 2, 3, kAxes);
  check_tensor(verb, "the table of sines", sines, 2, 3, kAxes);
  if (cosines.shape != sines.shape) {
    raise(fmt::format("{}: the table of cosines has shape {} but that of sines has {}", verb,
                      to_string(cosines.shape), to_string(sines.shape)));
  }
  if (pairs_of(form) < 1) raise(fmt::format("{}: the table has no pairs", verb));
  return cosines.shape.rank == 2 ? RowLimit{cosines.shape[0], 0} : RowLimit{.is_signed = true};
}

// Checks the form by itself; returns the rows that its table has for positions, if any.
RowLimit check_form(std::string_view verb, const Rotation& form) {
  const std::int64_t pairs = pairs_of(form);
  if (form.blocks < 1 || pairs % form.blocks != 0) {
    raise(fmt::format("{}: the form's {} pairs do not divide into {} blocks", verb, pairs, form.blocks));
  }
  if (form.sign != 1 && form.sign != -1) {
    raise(fmt::format("{}: the form's sign must be 1 or -1 but is {}", verb, form.sign));
  }
  if (!(std::fabs(form.magnitude) <= 32768.0)) {  // larger values would exceed the range of f16
    raise(fmt::format("{}: the form's magnitude must be between -32768 and 32768 but is {}", verb, form.magnitude));
  }
  for (const auto& type : {form.precision.table, form.precision.arithmetic}) {
    if (type && *type > DataType::kBF16)
      raise(fmt::format("{}: a rotation cannot be done in {}", verb, name_of(*type)));
  }
  if (heads_of(form) < 1) raise(fmt::format("{}: the form has {} heads", verb, heads_of(form)));
  if (pairs < 1 && !has_table(form)) raise(fmt::format("{}: the form has no frequencies", verb));
  return std::visit([&](const auto& source) { return check_source(verb, form, source); }, form.source);
}

std::int64_t first_feature(std::string_view verb, std::string_view what, const Rotation& form,
                           std::int64_t features) {
  const std::int64_t dims = 2 * pairs_of(form);
  const std::int64_t first = form.first_dim < 0 ? features + form.first_dim : form.first_dim;
  if (first >= 0 && dims <= features - first) return first;
  raise(fmt::format("{}: {} has {} features, but the form rotates {} from feature {}", verb, what, features, dims,
                    form.first_dim));
}

void check_own_heads(std::string_view verb, std::string_view what, const Rotation& form, std::int64_t heads) {
  const std::int64_t own = heads_of(form);
  if (own == 1 || heads == own) return;
  raise(fmt::format("{}: {} has {} heads, but the form has a separate rotation for each of {}", verb, what, heads,
                    own));
}

void check_growth(std::string_view verb, const Rotation& form, const TokenPositions& positions,
                  const Tokens& tokens) {
  if (!has_growth(form) || tokens.batch * tokens.sequence == 0) return;
  const Growth& growth = pair_waves_of(form).growth;
  for (const double rate : growth.rates) {
    if (!std::isfinite(rate)) raise(fmt::format("{}: a rate of growth is not finite", verb));
  }
  const double range = range_of(growth);
  const auto check = [&](std::int64_t position) {
    const double distance = std::fabs(static_cast<double>(position - growth.centre));
    if (distance <= range) return;
    raise(fmt::format("{}: position {} is too far from the centre {}: growth allows a distance of {}", verb, position,
                      growth.centre, static_cast<std::int64_t>(range)));
  };
  if (!positions.has_ids()) {
    check(positions.first);
    check(positions.first + tokens.sequence - 1);
    return;
  }
  if (positions.on_device) return;  // they have not been checked
  const std::int64_t count =
      positions.axes * (positions.batch_stride == 0 ? tokens.sequence : tokens.batch * tokens.sequence);
  for (std::int64_t i = 0; i < count; ++i) {
    check(positions.ids != nullptr ? positions.ids[i] : positions.narrow_ids[i]);
  }
}

RotateJob::Part part_of(std::string_view verb, std::string_view what, const TensorView& out, const ConstTensorView& x,
                        const Rotation& form) {
  RotateJob::Part part;
  part.x = heads_of(verb, what, x);
  part.out = heads_of(verb, "out", out);
  check_writable(verb, what, out);
  check_same_shape(verb, out, x);
  check_same_or_apart(verb, out, x);
  part.first = first_feature(verb, what, form, part.x.features);
  check_own_heads(verb, what, form, part.x.heads);
  return part;
}

// A table with a row for each token must have as many rows as tokens.
void check_own_rows(std::string_view verb, const Rotation& form, const Tokens& x) {
  const Extents& shape = table_of(form).cosines.shape;
  if (shape.rank != 3 || (shape[0] == x.batch && shape[1] == x.sequence)) return;
  raise(fmt::format("{}: the table has shape {}, but there are {} sequences of {} tokens", verb, to_string(shape),
                    x.batch, x.sequence));
}

void check_outcome(std::string_view verb, const Outcome& outcome) {
  if (outcome.decided) return;
  raise(fmt::format("{}: the rounding of pair {} at position {} cannot be decided with 128 bits", verb,
                    outcome.column, outcome.position));
}

// With positions that were read before.
void run_checked(std::string_view verb, const Backend& backend, RotateJob& job, const TokenPositions& positions,
                 const Rotation& form) {
  const RowLimit limit = check_form(verb, form);
  job.form = &form;
  job.positions = positions;
  const Tokens tokens{job.parts[0].x.batch, job.parts[0].x.sequence};
  check_own_rows(verb, form, tokens);
  for (std::int64_t b = 0; limit.rows >= 0 && b < tokens.batch; ++b) {
    for (std::int64_t t = 0; t < tokens.sequence; ++t) check_position(verb, positions.at(b, t), limit);
  }
  check_growth(verb, form, positions, tokens);
  if (tokens.batch * tokens.sequence > 0) check_outcome(verb, backend.rotate(job));
}

TokenPositions positions_along(std::string_view verb, const Positions& positions, const Rotation& form,
                               const Tokens& tokens, const RowLimit& limit) {
  const int axes = position_axes_of(form);
  const bool is_text =
      positions.ids.empty() && positions.ids_i32.empty() && axes > 1;  // the same position on every axis
  TokenPositions checked = positions_of(verb, positions, is_text ? positions.axes : axes, tokens, limit);
  checked.axes = axes;
  return checked;
}

void apply(std::string_view verb, RotateJob& job, const Positions& positions, const Rotation& form,
           const RowLimit& limit) {
  job.form = &form;
  const auto& x = job.parts[0].x;
  const Tokens tokens{x.batch, x.sequence};
  check_own_rows(verb, form, tokens);
  if (table_of(form).cosines.shape.rank != 3) {
    job.positions = positions_along(verb, positions, form, tokens, limit);
    check_growth(verb, form, job.positions, tokens);
  }
  if (tokens.batch * tokens.sequence == 0) return;
  check_outcome(verb, backend_for(verb, job.site.device).rotate(job));
}

void apply_to_one(std::string_view verb, const TensorView& out, const ConstTensorView& x, const Positions& positions,
                  const Rotation& form, const Run& run) {
  const CallThreads threads_of_call(verb, run);
  const RowLimit limit = check_form(verb, form);
  RotateJob job;
  job.parts[0] = part_of(verb, "x", out, x, form);
  job.site = site_of(verb, {out, x, table_of(form).cosines, table_of(form).sines}, positions, run);
  apply(verb, job, positions, form, limit);
}

// One quarter of a rotation's waves as columns to tabulate.
Addition columns_of(const Rotation& form, std::uint8_t quarter) {
  Waves waves = waves_of(form);
  waves.columns.resize(waves.waves.size());
  for (WaveColumn& column : waves.columns) column.quarter = quarter;
  return {pairs_of(form), std::move(waves)};
}

// Rotating (1, 0) gives (cosine, sine).
template <class W> void tabulate_by_rotating(const TensorView& cosines, const TensorView& sines,
                                             const Positions& positions, Rotation form, const Run& run) {
  const auto out = heads_of("tabulate", "out", cosines);  // sequences of a batch take the place of heads
  const std::int64_t pairs = pairs_of(form);
  if (out.features != pairs) {
    raise(fmt::format("tabulate: the form has {} pairs but the tensor has {}", pairs, out.features));
  }
  form.layout = PairLayout::kHalves;
  form.first_dim = 0;
  form.blocks = 1;
  const Extents shape = {out.heads, 1, out.sequence, 2 * pairs};
  std::vector<W> units(count_of(shape));
  for (std::size_t i = 0; i < units.size(); ++i)
    units[i] = static_cast<std::int64_t>(i) / pairs % 2 == 0 ? W(1) : W(0);
  rotate(view(units.data(), shape), positions, form, run);
  const auto write = [&](const TensorView& to, std::int64_t first) {
    const auto target = heads_of("tabulate", "out", to);
    with_type(to.type, [&](auto kind) {
      using T = decltype(kind);
      for (std::int64_t row = 0; row < target.heads * target.sequence; ++row) {
        T* to_row = target.template row<T>(0, row / target.sequence, row % target.sequence);
        for (std::int64_t i = 0; i < pairs; ++i) {
          const W value = units[row * 2 * pairs + first + i];
          to_row[i * target.feature_stride] = numerics::narrow<T>(static_cast<double>(value));
        }
      }
    });
  };
  write(cosines, 0);
  write(sines, pairs);
}

}  // namespace

namespace kernels {

TokenPositions rotary_positions_of(std::string_view verb, const Positions& positions, const Rotation& form,
                                   const Tokens& tokens) {
  RowLimit limit = check_form(verb, form);
  limit.is_signed = false;  // a cache holds tokens, the first at 0
  const TokenPositions checked = positions_along(verb, positions, form, tokens, limit);
  check_growth(verb, form, checked, tokens);
  return checked;
}

std::int64_t first_rotated(std::string_view verb, std::string_view what, const Rotation& form,
                           const HeadTensor<const void>& x) {
  const std::int64_t first = first_feature(verb, what, form, x.features);
  check_own_heads(verb, what, form, x.heads);
  return first;
}

void check_no_rows_of_tokens(std::string_view verb, const Rotation& form) {
  if (table_of(form).cosines.shape.rank != 3) return;
  raise(fmt::format("{}: a table with one row per token is not supported; use rotate, then copy_into", verb));
}

TokenPositions rotated_positions_of(std::string_view verb, const Positions& positions, const Rotation& form,
                                    const HeadTensor<const void>& x) {
  const RowLimit limit = check_form(verb, form);
  first_rotated(verb, "x", form, x);
  return positions_along(verb, positions, form, {x.batch, x.sequence}, limit);
}

void rotate_for(std::string_view verb, const Backend& backend, const TensorView& out, const ConstTensorView& x,
                const TokenPositions& positions, const Rotation& form, const Site& site) {
  RotateJob job;
  job.parts[0] = part_of(verb, "x", out, x, form);
  job.site = site;
  run_checked(verb, backend, job, positions, form);
}

void rotate_to_slots(std::string_view verb, const HeadTensor<void>& cache, const Scales& scales,
                     std::span<const std::int64_t> slots, const HeadTensor<const void>& k,
                     const TokenPositions& positions, const Rotation& form) {
  RotateJob job;
  const Backend& backend = backend_for(verb, Device::kHost);
  const bool is_scaled = is_of_8_bits(cache.type);  // a scale comes before the rounding
  if (is_scaled || !backend.rotates_to_slots) {
    const DataType wide = k.type == DataType::kF64 ? DataType::kF64 : DataType::kF32;
    const DataType type = is_scaled ? wide : cache.type;
    const Extents shape = {k.batch, k.heads, k.sequence, k.features};
    AlignedVector<std::byte> memory(count_of(shape) * size_of(type));
    const HeadTensor<void> rotated = heads_of(verb, "k", TensorView(memory.data(), type, shape));
    job.parts[0] = {.out = rotated, .x = k, .first = first_rotated(verb, "k", form, k)};
    run_checked(verb, backend, job, positions, form);
    copy_to_slots(cache, scales, slots, read_only(rotated));
    return;
  }
  job.parts[0] = {.out = cache, .x = k, .first = first_rotated(verb, "k", form, k), .slots = slots.data()};
  run_checked(verb, backend, job, positions, form);
}

}  // namespace kernels

double range_of(const Growth& growth) noexcept {
  constexpr double kMost = 80;  // e^80 = 5.5e34; slightly larger values, and with them every score, overflow float32
  double steepest = 0;
  for (const double rate : growth.rates) steepest = std::max(steepest, std::fabs(rate));
  return steepest > 0 ? kMost / steepest : std::numeric_limits<double>::infinity();
}

void tabulate(TensorView cosines, TensorView sines, const Positions& positions, const Rotation& form,
              const Run& run) {
  constexpr std::string_view verb = "tabulate";
  check_form(verb, form);
  if (has_table(form)) raise("tabulate: the form is a table already");
  if (heads_of(form) > 1) {
    raise(fmt::format("tabulate: the form has a separate rotation for each of {} heads; select one with head_of",
                      heads_of(form)));
  }
  check_same_shape(verb, cosines, sines);
  if (!has_growth(form) && late_magnitude(form) == 1.0f && !std::holds_alternative<Mixture>(form.source)) {
    tabulate(cosines, positions, columns_of(form, 1), run);
    tabulate(sines, positions, columns_of(form, form.sign < 0 ? 2 : 0), run);
    return;
  }
  if (cosines.device != Device::kHost || sines.device != Device::kHost) {
    raise(
        "tabulate: a rotation with growth, a mixture or a magnitude applied last can be tabulated only on the host");
  }
  check_writable(verb, "cosines", cosines);
  check_writable(verb, "sines", sines);
  has_float32_angles(form) ? tabulate_by_rotating<float>(cosines, sines, positions, form, run)
                           : tabulate_by_rotating<double>(cosines, sines, positions, form, run);
}

void rotate(TensorView x, const Positions& positions, const Rotation& form, const Run& run) {
  apply_to_one("rotate", x, x, positions, form, run);
}

void rotate(TensorView out, ConstTensorView x, const Positions& positions, const Rotation& form, const Run& run) {
  apply_to_one("rotate", out, x, positions, form, run);
}

void rotate(TensorView x, Axes axes, const Positions& positions, const Rotation& form, const Run& run) {
  rotate(heads_first(x, axes), positions, form, run);
}

void rotate(const QueryKey<TensorView>& x, Axes axes, const Positions& positions, const Rotation& form,
            const Run& run) {
  rotate({heads_first(x.q, axes), heads_first(x.k, axes)}, positions, form, run);
}

void rotate_backward(TensorView d_out, Axes axes, const Positions& positions, const Rotation& form, const Run& run) {
  rotate_backward(heads_first(d_out, axes), positions, form, run);
}

void rotate(const QueryKey<TensorView>& x, const Positions& positions, const Rotation& form, const Run& run) {
  rotate(x, {x.q, x.k}, positions, form, run);
}

void rotate(const QueryKey<TensorView>& out, const QueryKey<ConstTensorView>& x, const Positions& positions,
            const Rotation& form, const Run& run) {
  constexpr std::string_view verb = "rotate";
  const CallThreads threads_of_call(verb, run);
  const RowLimit limit = check_form(verb, form);
  RotateJob job;
  job.count = 2;
  job.parts = {part_of(verb, "q", out.q, x.q, form), part_of(verb, "k", out.k, x.k, form)};
  job.parts[1].keys = true;
  const auto &q = job.parts[0].x, &k = job.parts[1].x;
  if (q.batch != k.batch || q.sequence != k.sequence) {
    raise(fmt::format("{}: q has {} sequences of {} tokens but k has {} of {}", verb, q.batch, q.sequence, k.batch,
                      k.sequence));
  }
  job.site = site_of(verb, {out.q, out.k, x.q, x.k, table_of(form).cosines, table_of(form).sines}, positions, run);
  apply(verb, job, positions, form, limit);
}

void rotate_backward(TensorView d_out, const Positions& positions, const Rotation& form, const Run& run) {
  apply_to_one("rotate_backward", d_out, d_out, positions, adjoint(form), run);
}

void rerotate(TensorView x, const Positions& positions, const Rotation& from, const Rotation& to, const Run& run) {
  if (!has_float32_angles(from) && !has_float32_angles(to)) {
    apply_to_one("rerotate", x, x, positions, between(from, to), run);
    return;
  }
  const Rotation back = inverse(from);
  const RowLimit limit = check_form("rerotate", to);  // before anything is written
  RotateJob job;
  job.parts[0] = part_of("rerotate", "x", x, x, to);
  job.site = site_of("rerotate", {x}, positions, run);
  apply_to_one("rerotate", x, x, positions, back, run);
  apply("rerotate", job, positions, to, limit);
}

}  // namespace posenc
