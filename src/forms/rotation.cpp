// Operations on a rotation that need no tensor: reversing one, joining two.

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

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
  if (from.mixture.pairs > 0 || to.mixture.pairs > 0) raise("rerotate: a mixture of waves has no angles");
  if (!from.float32_angles.factors.empty() || !to.float32_angles.factors.empty()) {
    raise("rerotate: float32 angles do not add up; rotate back by inverse(from), then on by `to`");
  }
  if (from.heads != to.heads || from.sums_axes != to.sums_axes) {
    raise("rerotate: one of the two rotates heads, or sums axes, in another way than the other");
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
  if (rotation.mixture.pairs > 0) raise("inverse: a mixture of waves need not have an inverse");
  if (rotation.magnitude == 0 || !std::isfinite(rotation.magnitude)) {
    raise(fmt::format("inverse: a magnitude of {} cannot be undone", rotation.magnitude));
  }
}

// How many frequencies a wave has.
std::size_t driving_axes(const Rotation& rotation) noexcept {
  return rotation.sums_axes && rotation.position_axes > 0 ? static_cast<std::size_t>(rotation.position_axes) : 1;
}
// The waves that heads have of their own; those of a mixture are shared.
std::size_t heads_with_waves(const Rotation& rotation) noexcept {
  return rotation.mixture.pairs == 0 && rotation.heads > 0 ? static_cast<std::size_t>(rotation.heads) : 1;
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
  if (rotation.mixture.pairs > 0) return rotation.mixture.pairs;
  if (!has_table(rotation)) {
    return static_cast<std::int64_t>(rotation.frequencies.size() / driving_axes(rotation) /
                                     heads_with_waves(rotation));
  }
  const Extents& shape = rotation.table.cosines.shape;
  return shape.rank > 0 && shape.rank <= Extents::kMax ? shape.back(0) : 0;
}

bool is_plain(const Rotation& rotation) noexcept {
  return rotation.heads == 1 && !rotation.sums_axes && rotation.mixture.pairs == 0;
}

Rotation head_of(const Rotation& rotation, std::int64_t head) {
  if (head < 0 || head >= rotation.heads) {
    raise(fmt::format("head_of: head {} of a rotation of {}", head, rotation.heads));
  }
  if (rotation.heads == 1) return rotation;
  const auto part_of = [&](const auto& all) {
    const auto size = static_cast<std::ptrdiff_t>(all.size()) / rotation.heads;
    return std::remove_cvref_t<decltype(all)>(all.begin() + head * size, all.begin() + (head + 1) * size);
  };
  Rotation one = rotation;
  one.heads = 1;
  if (rotation.mixture.pairs == 0) {
    one.frequencies = part_of(rotation.frequencies);
  } else {
    one.mixture.cosines = part_of(rotation.mixture.cosines);
    one.mixture.sines = part_of(rotation.mixture.sines);
  }
  return one;
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
  const bool is_mixed = rotation.mixture.pairs > 0;
  waves.scale = rotation.float32_angles.factors.empty() && !is_mixed ? rotation.magnitude : 1.0;
  waves.axes = rotation.position_axes;
  waves.float32_angles = rotation.float32_angles;
  const std::size_t axes = driving_axes(rotation), count = rotation.frequencies.size() / axes,
                    heads = heads_with_waves(rotation), pairs = count / heads;
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = rotation.frequencies.begin() + static_cast<std::ptrdiff_t>(i * axes);
    waves.waves.push_back({*first, rotation.axes.empty() ? std::uint8_t{0} : rotation.axes[i]});
    waves.further.insert(waves.further.end(), first + 1, first + static_cast<std::ptrdiff_t>(axes));
  }
  const auto sine =
      static_cast<std::uint8_t>(rotation.sign < 0 && !is_mixed ? 2 : 0);  // −sin x = sin(x + half a turn)
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
