// The definition of rotate, as plain as possible: one pair at a time, every sine and cosine by integers.

#include <map>

#include "kernels/rotation_element.h"

namespace posenc::kernels::reference {
namespace {

// Cosine and sine of one pair at one token, in the type of the arithmetic.
template <class W> struct CosSin { W cosine, sine; };

// Cosines and sines of the waves of a mixture, [cosines | sines], in double.
std::vector<double> mixed_waves(const RotateJob& job, const Waves& waves, std::int64_t b, std::int64_t t,
                                Outcome& outcome) {
  std::vector<double> made(waves.columns.size());
  for (std::size_t c = 0; c < made.size(); ++c) {
    const WaveColumn& column = waves.columns[c];
    const numerics::Angle angle = angle_of(waves, column.wave, job.positions, b, t);
    if (!numerics::round_wave_by_integers(made[c], angle, column.quarter, waves.scale)) {
      outcome = {false, job.positions.at(b, t), column.wave};
    }
  }
  return made;
}

// `pair` is counted across heads.
template <class W> CosSin<W> cos_sin_of(const RotateJob& job, const Waves& waves, std::int64_t b, std::int64_t t,
                                        std::int64_t pair, bool keys, Outcome& outcome) {
  const Rotation& form = *job.form;
  CosSin<W> by{};
  if (waves.waves.empty()) {
    by.cosine = table_entry<W>(table_of(form).cosines, job.positions, b, t, pair);
    by.sine = table_entry<W>(table_of(form).sines, job.positions, b, t, pair);
    if (form.sign < 0) by.sine = -by.sine;
  } else if (!has_growth(form)) {
    const numerics::Angle angle = angle_of(waves, pair, job.positions, b, t);
    const unsigned quarter = form.sign < 0 ? 2 : 0;
    if (!numerics::round_wave_by_integers(by.cosine, angle, 1, waves.scale) ||
        !numerics::round_wave_by_integers(by.sine, angle, quarter, waves.scale)) {
      outcome = {false, job.positions.at(b, t), pair};
    }
    by.cosine *= static_cast<W>(late_magnitude(form));
    by.sine *= static_cast<W>(late_magnitude(form));
  } else {
    const double length = form.magnitude * growth_at(pair_waves_of(form).growth, pair,
                                                     job.positions.at(b, t, waves.waves[pair].axis), keys);
    const auto unit = numerics::sine_cosine(numerics::reduce(angle_of(waves, pair, job.positions, b, t)));
    by = {static_cast<W>(length * unit.cosine), static_cast<W>(length * form.sign * unit.sine)};
  }
  const DataType type = table_type(form, data_type_of<W>());
  return {rounded_to(type, by.cosine), rounded_to(type, by.sine)};
}

// [heads, pairs] at one token, if heads have their own; else [pairs].
template <class W> std::vector<CosSin<W>> cos_sins_of(const RotateJob& job, const Waves& waves, std::int64_t b,
                                                      std::int64_t t, bool keys, Outcome& outcome) {
  const Rotation& form = *job.form;
  const std::int64_t pairs = pairs_of(form);
  std::vector<CosSin<W>> all;
  const auto* const mixture = std::get_if<Mixture>(&form.source);
  if (mixture == nullptr) {
    for (std::int64_t i = 0; i < heads_of(form) * pairs; ++i) {
      all.push_back(cos_sin_of<W>(job, waves, b, t, i, keys, outcome));
    }
    return all;
  }
  const std::vector<double> made = mixed_waves(job, waves, b, t, outcome);
  std::vector<W> cosines(pairs), sines(cosines.size());
  std::vector<double> sums(2 * cosines.size());
  const DataType type = table_type(form, data_type_of<W>());
  for (std::int64_t head = 0; head < mixture->heads; ++head) {
    mix_waves(form, *mixture, head, made.data(), cosines.data(), sines.data(), sums);
    for (std::size_t i = 0; i < cosines.size(); ++i) {
      all.push_back({rounded_to(type, cosines[i]), rounded_to(type, sines[i])});
    }
  }
  return all;
}

// All sequences of a batch have the same positions, so their angles are computed once. A table has a row for each
// token instead.
template <class W> struct KnownAngles {
  static constexpr std::size_t kMost = 1024;
  std::map<std::vector<std::int64_t>, std::vector<CosSin<W>>> by_position = {};

  const std::vector<CosSin<W>>& at(const RotateJob& job, const Waves& waves, std::int64_t b, std::int64_t t,
                                   bool keys, Outcome& outcome) {
    std::vector<std::int64_t> position;
    for (int axis = 0; axis < job.positions.axes; ++axis) position.push_back(job.positions.at(b, t, axis));
    if (waves.waves.empty() || by_position.size() >= kMost) by_position.clear();
    const auto [entry, is_new] = by_position.try_emplace(std::move(position));
    if (is_new) entry->second = cos_sins_of<W>(job, waves, b, t, keys, outcome);
    return entry->second;
  }
};

template <class W>
void rotate_part(const RotateJob& job, const RotateJob::Part& part, const Waves& waves, Outcome& outcome) {
  const Rotation& form = *job.form;
  const std::int64_t pairs = pairs_of(form), in_block = pairs / form.blocks;
  const PairPlacement places = placement_of(form.layout, in_block);
  const DataType rounding = arithmetic_type(form, part.x.type);
  const auto round = [&](W value) { return rounded_to(rounding, value); };
  const auto& x = part.x;
  std::vector<double> given(x.features);
  std::vector<W> row(given.size()), rotated;
  KnownAngles<W> known;
  for (std::int64_t b = 0; b < x.batch; ++b) {
    for (std::int64_t t = 0; t < x.sequence; ++t) {
      const std::int64_t slot = part.slots == nullptr ? 0 : part.slot(b, t);
      if (slot < 0) continue;
      const std::vector<CosSin<W>>& angles = known.at(job, waves, b, t, part.keys, outcome);
      for (std::int64_t h = 0; h < x.heads; ++h) {
        with_type(x.type, [&](auto kind) {
          const auto* from = x.template row<decltype(kind)>(b, h, t);
          for (std::size_t f = 0; f < given.size(); ++f) {
            given[f] = numerics::widen(from[static_cast<std::int64_t>(f) * x.feature_stride]);
            row[f] = static_cast<W>(given[f]);
          }
        });
        rotated = row;
        for (std::int64_t i = 0; i < pairs; ++i) {
          const std::int64_t start = part.first + i / in_block * 2 * in_block, pair = i % in_block;
          const auto at = [&](const PairPlaces& place, int second) {
            return static_cast<std::size_t>(start + pair * place.step + second * place.apart);
          };
          const CosSin<W> by = angles[heads_of(form) > 1 ? h * pairs + i : i];
          const W u = row[at(places.read, 0)], v = row[at(places.read, 1)];
          rotated[at(places.write, 0)] = round(round(u * by.cosine) - round(v * by.sine));
          rotated[at(places.write, 1)] = round(round(v * by.cosine) + round(u * by.sine));
        }
        for (std::int64_t f = part.first; f < part.first + 2 * pairs; ++f) {
          given[f] = static_cast<double>(rotated[f]);
        }
        with_type(part.out.type, [&](auto kind) {
          auto* to = part.slots == nullptr ? part.out.template row<decltype(kind)>(b, h, t)
                                           : part.out.template row<decltype(kind)>(slot / part.out.sequence, h,
                                                                                   slot % part.out.sequence);
          for (std::size_t f = 0; f < given.size(); ++f) {
            to[static_cast<std::int64_t>(f) * part.out.feature_stride] = numerics::narrow<decltype(kind)>(given[f]);
          }
        });
      }
    }
  }
}

}  // namespace

Outcome rotate(const RotateJob& job) {
  const Waves waves = waves_of(*job.form);
  Outcome outcome;
  for (int p = 0; p < job.count; ++p) {
    const RotateJob::Part& part = job.parts[p];
    const bool wide = arithmetic_type(*job.form, part.x.type) == DataType::kF64;
    wide ? rotate_part<double>(job, part, waves, outcome) : rotate_part<float>(job, part, waves, outcome);
  }
  return outcome;
}

}  // namespace posenc::kernels::reference
