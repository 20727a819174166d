// Operations on a rotation that need no tensor: reversing one, joining two.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "forms/checks.h"
#include "posenc/error.h"
#include "posenc/forms.h"

namespace posenc {
namespace {

bool reads_halves(PairLayout layout) {
  return layout == PairLayout::kHalves || layout == PairLayout::kHalvesToInterleaved;
}
bool writes_halves(PairLayout layout) {
  return layout == PairLayout::kHalves || layout == PairLayout::kInterleavedToHalves;
}
PairLayout layout_from(bool halves_in, bool halves_out) {
  if (halves_in) return halves_out ? PairLayout::kHalves : PairLayout::kHalvesToInterleaved;
  return halves_out ? PairLayout::kInterleavedToHalves : PairLayout::kInterleaved;
}

bool is_mixed(const Rotation& rotation) { return std::holds_alternative<Mixture>(rotation.source); }

void check_joinable(const Rotation& from, const Rotation& to) {
  const auto is_either = [&](auto is_so) { return is_so(from) || is_so(to); };
  if (is_either(has_table)) raise("rerotate: a rotation by a table has no exact angles");
  if (is_either(is_mixed)) raise("rerotate: a mixture of waves has no angles");
  if (is_either(has_float32_angles)) {
    raise("rerotate: float32 angles do not add up; rotate back by inverse(from), then on by `to`");
  }
  if (heads_of(from) != heads_of(to) || from.source.index() != to.source.index()) {
    raise("rerotate: one of the two rotates heads, or sums axes, in another way than the other");
  }
  if (from.frequencies.size() != to.frequencies.size() || from.first_dim != to.first_dim ||
      from.blocks != to.blocks) {
    raise(fmt::format(
        "rerotate: the two rotate different features: {} pairs from {} in {} blocks, and {} from {} in {}",
        from.frequencies.size(), from.first_dim, from.blocks, to.frequencies.size(), to.first_dim, to.blocks));
  }
  const PairWaves &before = pair_waves_of(from), &after = pair_waves_of(to);
  if (before.axes != after.axes || from.position_axes != to.position_axes) {
    raise("rerotate: the rotations are driven by different position axes");
  }
  if (before.growth.rates.size() != after.growth.rates.size() || before.growth.centre != after.growth.centre) {
    raise("rerotate: the rotations grow from different centres");
  }
}

void check_invertible(const Rotation& rotation) {
  if (has_table(rotation)) raise("inverse: a rotation by a table need not have an inverse");
  if (is_mixed(rotation)) raise("inverse: a mixture of waves need not have an inverse");
  if (rotation.magnitude == 0 || !std::isfinite(rotation.magnitude)) {
    raise(fmt::format("inverse: a magnitude of {} cannot be undone", rotation.magnitude));
  }
}

// How many frequencies a wave has, and how many heads have waves of their own.
struct WaveShape {
  std::size_t axes = 1, heads = 1;
};
WaveShape wave_shape_of(const Rotation& rotation) noexcept {
  const auto* const own = std::get_if<HeadWaves>(&rotation.source);
  if (own == nullptr) return {};
  return {static_cast<std::size_t>(std::max(rotation.position_axes, 1)),
          static_cast<std::size_t>(std::max<std::int64_t>(own->heads, 1))};
}

void reverse_growth(Rotation& rotation) {
  auto* const waves = std::get_if<PairWaves>(&rotation.source);
  if (waves == nullptr) return;
  for (double& rate : waves->growth.rates) rate = -rate;
}

template <class Kind> const Kind& kind_or_empty(const Rotation& rotation) noexcept {
  static const Kind none{};
  const auto* const kind = std::get_if<Kind>(&rotation.source);
  return kind == nullptr ? none : *kind;
}

}  // namespace

bool has_table(const Rotation& rotation) noexcept { return std::holds_alternative<RotationTable>(rotation.source); }
const RotationTable& table_of(const Rotation& rotation) noexcept { return kind_or_empty<RotationTable>(rotation); }
const PairWaves& pair_waves_of(const Rotation& rotation) noexcept { return kind_or_empty<PairWaves>(rotation); }
bool has_growth(const Rotation& rotation) noexcept { return !pair_waves_of(rotation).growth.rates.empty(); }
bool has_float32_angles(const Rotation& rotation) noexcept {
  return !pair_waves_of(rotation).float32_angles.factors.empty();
}

PairPlacement placement_of(PairLayout layout, std::int64_t pairs) noexcept {
  const PairPlaces halves{1, pairs}, interleaved{2, 1};
  return {reads_halves(layout) ? halves : interleaved, writes_halves(layout) ? halves : interleaved};
}

std::int64_t pairs_of(const Rotation& rotation) noexcept {
  if (const auto* const mixture = std::get_if<Mixture>(&rotation.source)) return mixture->pairs;
  if (const auto* const table = std::get_if<RotationTable>(&rotation.source)) {
    const Extents& shape = table->cosines.shape;
    return shape.rank > 0 && shape.rank <= Extents::kMax ? shape.back(0) : 0;
  }
  const WaveShape shape = wave_shape_of(rotation);
  return static_cast<std::int64_t>(rotation.frequencies.size() / shape.axes / shape.heads);
}

std::int64_t heads_of(const Rotation& rotation) noexcept {
  if (const auto* const mixture = std::get_if<Mixture>(&rotation.source)) return mixture->heads;
  const auto* const own = std::get_if<HeadWaves>(&rotation.source);
  return own == nullptr ? 1 : own->heads;
}

std::size_t axis_of(const Rotation& rotation, std::size_t pair) noexcept {
  const std::vector<std::uint8_t>& axes = pair_waves_of(rotation).axes;
  return axes.empty() ? 0 : axes[pair];
}

bool is_plain(const Rotation& rotation) noexcept {
  return std::holds_alternative<PairWaves>(rotation.source) || has_table(rotation);
}

Rotation head_of(const Rotation& rotation, std::int64_t head) {
  const std::int64_t heads = heads_of(rotation);
  if (head < 0 || head >= heads) raise(fmt::format("head_of: head {} of a rotation of {}", head, heads));
  return slice_heads(rotation, head, 1);
}

Rotation slice_heads(const Rotation& rotation, std::int64_t first, std::int64_t count) {
  const std::int64_t heads = heads_of(rotation);
  check_head_slice(first, count, heads == 1 ? 0 : heads);
  if (heads == 1) return rotation;
  Rotation some = rotation;
  const auto keep_heads = [&](auto& all) {
    const auto size = static_cast<std::ptrdiff_t>(all.size()) / heads;
    all = {all.begin() + first * size, all.begin() + (first + count) * size};
  };
  if (auto* const mixture = std::get_if<Mixture>(&some.source)) {
    mixture->heads = count;
    keep_heads(mixture->cosines);
    keep_heads(mixture->sines);
  } else {
    some.source = HeadWaves{count};
    keep_heads(some.frequencies);
  }
  return some;
}

Waves waves_of(const Rotation& rotation) {
  Waves waves;
  set_waves(waves, rotation);
  return waves;
}

void set_waves(Waves& waves, const Rotation& rotation) {
  waves.waves.clear();
  waves.columns.clear();
  waves.further.clear();
  waves.scale = has_float32_angles(rotation) || is_mixed(rotation) ? 1.0 : rotation.magnitude;
  waves.axes = rotation.position_axes;
  waves.float32_angles = pair_waves_of(rotation).float32_angles;
  const auto [axes, heads] = wave_shape_of(rotation);
  const std::size_t count = rotation.frequencies.size() / axes, pairs = count / heads;
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = rotation.frequencies.begin() + static_cast<std::ptrdiff_t>(i * axes);
    waves.waves.push_back({*first, static_cast<std::uint8_t>(axis_of(rotation, i))});
    waves.further.insert(waves.further.end(), first + 1, first + static_cast<std::ptrdiff_t>(axes));
  }
  const auto sine =
      static_cast<std::uint8_t>(rotation.sign < 0 && !is_mixed(rotation) ? 2 : 0);  // −sin x = sin(x + half a turn)
  for (std::size_t head = 0; head < heads; ++head) {
    for (const std::uint8_t quarter : {std::uint8_t{1}, sine}) {
      for (std::size_t i = head * pairs; i < (head + 1) * pairs; ++i) {
        waves.columns.push_back({static_cast<std::int32_t>(i), quarter});
      }
    }
  }
}

Rotation adjoint(const Rotation& rotation) {
  Rotation back = rotation;
  back.sign = -rotation.sign;
  back.layout = layout_from(writes_halves(rotation.layout), reads_halves(rotation.layout));
  return back;
}

Rotation inverse(const Rotation& rotation) {
  check_invertible(rotation);
  Rotation back = adjoint(rotation);
  back.magnitude = 1 / rotation.magnitude;
  reverse_growth(back);
  return back;
}

Rotation for_keys(const Rotation& rotation) {
  Rotation keys = rotation;
  reverse_growth(keys);
  return keys;
}

Rotation between(const Rotation& from, const Rotation& to) {
  check_joinable(from, to);
  check_invertible(from);
  Rotation joined = to;
  joined.sign = 1;
  joined.layout = layout_from(writes_halves(from.layout), writes_halves(to.layout));
  joined.magnitude = to.magnitude / from.magnitude;
  const Frequency none;
  for (std::size_t i = 0; i < to.frequencies.size(); ++i) {
    const auto with_sign = [&](const Rotation& rotation) {
      return rotation.sign < 0 ? difference_of(none, rotation.frequencies[i]) : rotation.frequencies[i];
    };
    joined.frequencies[i] = difference_of(with_sign(to), with_sign(from));
  }
  if (auto* const waves = std::get_if<PairWaves>(&joined.source)) {
    const std::vector<double>& rates = pair_waves_of(from).growth.rates;
    for (std::size_t i = 0; i < rates.size(); ++i) waves->growth.rates[i] -= rates[i];
  }
  return joined;
}

}  // namespace posenc
