// What can be done with a rotation before any tensor is there: reverse it, join two.

#include <fmt/format.h>

#include <cmath>

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

void check_joinable(const Rotation& from, const Rotation& to) {
  if (has_table(from) || has_table(to)) raise("rerotate: a rotation by a table has no exact angles");
  if (!from.float32_angles.factors.empty() || !to.float32_angles.factors.empty()) {
    raise("rerotate: float32 angles do not add up; rotate back by inverse(from), then on by `to`");
  }
  if (from.frequencies.size() != to.frequencies.size() || from.first_dim != to.first_dim ||
      from.blocks != to.blocks) {
    raise(fmt::format(
        "rerotate: the two rotate different features: {} pairs from {} in {} blocks, and {} from {} in {}",
        from.frequencies.size(), from.first_dim, from.blocks, to.frequencies.size(), to.first_dim, to.blocks));
  }
  if (from.axes != to.axes || from.position_axes != to.position_axes) {
    raise("rerotate: the rotations are driven by different position axes");
  }
  if (from.growth.rates.size() != to.growth.rates.size() || from.growth.centre != to.growth.centre) {
    raise("rerotate: the rotations grow from different centres");
  }
}

void check_invertible(const Rotation& rotation) {
  if (has_table(rotation)) raise("inverse: a rotation by a table need not have an inverse");
  if (rotation.magnitude == 0 || !std::isfinite(rotation.magnitude)) {
    raise(fmt::format("inverse: a magnitude of {} cannot be undone", rotation.magnitude));
  }
}

void reverse(Growth& growth) {
  for (double& rate : growth.rates) rate = -rate;
}

}  // namespace

bool has_table(const Rotation& rotation) noexcept {
  return rotation.table.cosines.data != nullptr || rotation.table.sines.data != nullptr;
}

PairPlacement placement_of(PairLayout layout, std::int64_t pairs) noexcept {
  const PairPlaces halves{1, pairs}, interleaved{2, 1};
  return {reads_halves(layout) ? halves : interleaved, writes_halves(layout) ? halves : interleaved};
}

std::int64_t pairs_of(const Rotation& rotation) noexcept {
  if (!has_table(rotation)) return static_cast<std::int64_t>(rotation.frequencies.size());
  const Extents& shape = rotation.table.cosines.shape;
  return shape.rank > 0 && shape.rank <= Extents::kMax ? shape.back(0) : 0;
}

Waves waves_of(const Rotation& rotation) {
  Waves waves;
  set_waves(waves, rotation);
  return waves;
}

void set_waves(Waves& waves, const Rotation& rotation) {
  waves.waves.clear();
  waves.columns.clear();
  waves.scale = rotation.float32_angles.factors.empty() ? rotation.magnitude : 1.0;
  waves.axes = rotation.position_axes;
  waves.float32_angles = rotation.float32_angles;
  const auto pairs = static_cast<std::int32_t>(rotation.frequencies.size());
  for (std::int32_t i = 0; i < pairs; ++i) {
    const auto at = static_cast<std::size_t>(i);
    waves.waves.push_back({rotation.frequencies[at], rotation.axes.empty() ? std::uint8_t{0} : rotation.axes[at]});
    waves.columns.push_back({i, 1});
  }
  const auto sine = static_cast<std::uint8_t>(rotation.sign < 0 ? 2 : 0);  // −sin x = sin(x + half a turn)
  for (std::int32_t i = 0; i < pairs; ++i) waves.columns.push_back({i, sine});
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
  reverse(back.growth);
  return back;
}

Rotation for_keys(const Rotation& rotation) {
  Rotation keys = rotation;
  reverse(keys.growth);
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
  for (std::size_t i = 0; i < to.growth.rates.size(); ++i) joined.growth.rates[i] -= from.growth.rates[i];
  return joined;
}

}  // namespace posenc
