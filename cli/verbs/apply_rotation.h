#pragma once

#include <cstdint>
#include <string>

#include "cli/arrays/input_array.h"
#include "cli/arrays/table_stream.h"
#include "cli/flags/command.h"
#include "cli/flags/positions_argument.h"
#include "cli/flags/scheme_flags.h"
#include "posenc/forms.h"

namespace posenc::cli {

/// The options of `apply` beside the scheme, if vectors are rotated.
struct RotationFlags {
  bool backward = false, inverse = false, keys = false;
  std::string table_type, arithmetic;
};
void add_rotation_flags(Command verb, RotationFlags& flags);
/// Throws: Failure for an unknown type.
Precision precision_of(const RotationFlags& flags);
/// The rotation in the requested direction. Throws: Failure for two directions at once.
Rotation directed(const Rotation& form, const RotationFlags& flags);
/// Throws: Failure for a flag that has no meaning for a scheme that does not rotate.
void refuse_rotation_flags(const RotationFlags& flags, std::string_view scheme);

/// Queries or keys in a file: [batch, heads, sequence, features], or with heads inside: [batch, sequence, heads,
/// features].
struct Heads {
  std::int64_t batch = 1, heads = 1, sequence = 0, features = 0;
  bool is_inside = true;
};

/// `axes`: bhsd, bshd, hsd, shd, bsd, sd, or empty if there are two.
/// Throws: Failure if the array has other axes, or is not floating-point.
Heads heads_of(const InputArray& input, const std::string& axes);

/// If dims is not given, it is all features from first_dim to the end of the head; heads are those of x.
void follow_heads(SchemeRequest& request, const Heads& x);
/// Throws: Failure if a head has fewer features than are rotated.
void check_heads(const Rotation& form, const Heads& x, const InputArray& input);

/// Reads x, rotates it, and writes the elements, in pieces. `positions` has one for each token of a sequence, or of
/// the whole batch.
void rotate_in_pieces(const InputArray& input, const Heads& x, const Rotation& form, const PositionList& positions,
                      const ByteSink& sink, bool with_progress);

}  // namespace posenc::cli
