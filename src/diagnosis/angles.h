#pragma once

#include <cstdint>
#include <span>

#include "posenc/diagnosis.h"
#include "posenc/forms.h"

namespace posenc::diagnosis {

/// The arithmetic that a kind of angle starts from.
Numerics numerics_of(AngleKind kind) noexcept;
/// Rounds the frequencies of a form that was prepared with numerics_of(kind), if the kind does so.
void round_frequencies(AngleKind kind, Rotation& form);
/// The position that such an implementation uses instead of `position`.
std::int64_t rounded_position(AngleKind kind, std::int64_t position);

/// Cosines and sines, [tokens, pairs], with the angles of this kind: magnitude and sign included, growth too where the
/// product of position and frequency is not rounded. `ids` is [axes of the form, tokens], not negative.
void tabulate_as(AngleKind kind, const Rotation& form, std::span<const std::int64_t> ids, std::span<double> cosines,
                 std::span<double> sines);

}  // namespace posenc::diagnosis
