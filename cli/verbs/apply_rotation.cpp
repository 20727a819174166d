#include "cli/verbs/apply_rotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "cli/arrays/elements.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/type_flags.h"
#include "cli/system/failure.h"
#include "cli/system/progress.h"
#include "cli/system/signals.h"
#include "posenc/apply.h"

namespace posenc::cli {
namespace {

std::optional<DataType> type_from(const std::string& text, std::string_view flag) {
  if (text.empty()) return std::nullopt;
  return float_type_from(text, flag);
}

// Whole sequences if they are short, a part of one if they are long. With heads outside, a sequence is that of one
// head.
struct Piece {
  std::int64_t sequence = 0, first = 0;  // where it begins
  std::int64_t sequences = 1, tokens = 0;
};

struct Layout {
  std::int64_t sequences = 0;  // in the file, one after another
  std::int64_t row = 0;        // elements of one token in one of them
};

Layout layout_of(const Heads& x) {
  if (x.is_inside) return {x.batch, x.heads * x.features};
  return {x.batch * x.heads, x.features};
}

// `has_own`: each sequence of the batch has its own positions, which heads outside must not mix.
Piece piece_at(std::int64_t token, const Heads& x, std::int64_t tokens_at_once, bool has_own) {
  Piece piece;
  piece.sequence = token / x.sequence;
  piece.first = token % x.sequence;
  if (tokens_at_once < x.sequence) {
    piece.tokens = std::min(tokens_at_once, x.sequence - piece.first);
    return piece;
  }
  std::int64_t left = layout_of(x).sequences - piece.sequence;
  if (has_own && !x.is_inside) left = x.heads - piece.sequence % x.heads;
  piece.sequences = std::min(tokens_at_once / x.sequence, left);
  piece.tokens = x.sequence;
  return piece;
}

Positions positions_at(const Piece& piece, const Heads& x, const PositionList& list, bool has_own,
                       std::vector<std::int64_t>& scratch) {
  if (!has_own) return slice(list, piece.first, piece.tokens, scratch);
  const std::int64_t sequence = x.is_inside ? piece.sequence : piece.sequence / x.heads;
  const std::int64_t tokens = x.is_inside ? piece.sequences * piece.tokens : piece.tokens;
  return slice(list, sequence * x.sequence + piece.first, tokens, scratch);
}

// As the library takes it: [sequences, heads, tokens, features], or [heads, tokens, features].
TensorView view_of(std::vector<std::byte>& buffer, DataType type, const Piece& piece, const Heads& x) {
  if (!x.is_inside) return {buffer.data(), type, {piece.sequences, piece.tokens, x.features}};
  const TensorView rows(buffer.data(), type, {piece.sequences, piece.tokens, x.heads, x.features});
  return swap_axes(rows, 1, 2);
}

}  // namespace

void add_rotation_flags(Command verb, RotationFlags& flags) {
  verb.add_flag("--backward", flags.backward,
                "rotations: propagate gradients back (the adjoint, which keeps the magnitude)");
  verb.add_flag("--inverse", flags.inverse, "rotations: undo the rotation");
  verb.add_flag("--keys", flags.keys, "rotations: IN contains keys; only xpos rotates keys differently from queries");
  verb.add_option(
          "--table-type", flags.table_type,
          "rotations: round cosines and sines to this type first, as some engines do (default f32, f64 for f64)")
      .type_name("TYPE")
      .choices(float_type_names());
  verb.add_option("--arithmetic", flags.arithmetic,
                  "rotations: round every product and sum to this type (default f32, f64 for f64)")
      .type_name("TYPE")
      .choices(float_type_names());
}

Precision precision_of(const RotationFlags& flags) {
  return {type_from(flags.table_type, "--table-type"), type_from(flags.arithmetic, "--arithmetic")};
}

Rotation directed(const Rotation& form, const RotationFlags& flags) {
  if (flags.backward && flags.inverse) refuse("--backward and --inverse cannot be combined");
  const Rotation forward = flags.keys ? for_keys(form) : form;
  if (flags.backward) return adjoint(forward);
  return flags.inverse ? inverse(forward) : forward;
}

void refuse_rotation_flags(const RotationFlags& flags, std::string_view scheme) {
  const auto check = [&](bool is_given, std::string_view flag, std::string_view hint) {
    if (is_given) refuse(fmt::format("{}: applies only to rotations, and {} is not one{}", flag, scheme, hint));
  };
  check(flags.backward, "--backward", " (its gradient with respect to IN is the incoming gradient)");
  check(flags.inverse, "--inverse", "");
  check(flags.keys, "--keys", "");
  check(!flags.table_type.empty(), "--table-type", "");
  check(!flags.arithmetic.empty(), "--arithmetic", "");
}

Heads heads_of(const InputArray& input, const std::string& axes) {
  constexpr std::string_view kKnown[] = {"bhsd", "bshd", "hsd", "shd", "bsd", "sd"};
  const Extents& shape = input.shape();
  if (axes.empty() && shape.rank != 2) {
    const std::string_view ways = shape.rank == 4 ? "bhsd or bshd" : shape.rank == 3 ? "hsd, shd or bsd" : "";
    refuse(ways.empty() ? fmt::format("{} has shape {}; a rotation needs 2 to 4 axes", input.path(), to_string(shape))
                        : fmt::format("{} has shape {}; name its axes with --axes {} (b batch, h heads, s "
                                      "sequence, d features)",
                                      input.path(), to_string(shape), ways));
  }
  const std::string letters = axes.empty() ? "sd" : axes;
  if (std::find(std::begin(kKnown), std::end(kKnown), letters) == std::end(kKnown)) {
    refuse(fmt::format("--axes: '{}' is not one of {}", letters, fmt::join(kKnown, ", ")));
  }
  if (static_cast<int>(letters.size()) != shape.rank) {
    refuse(fmt::format("{} has shape {}, but --axes {} needs {} axes", input.path(), to_string(shape), letters,
                       letters.size()));
  }
  if (input.type() == DataType::kI64) {
    refuse(fmt::format("{} contains integers; it must be f32, f64, f16 or bf16", input.path()));
  }
  Heads x;
  for (int axis = 0; axis < shape.rank; ++axis) {
    const char letter = letters[axis];
    (letter == 'b' ? x.batch : letter == 'h' ? x.heads : letter == 's' ? x.sequence : x.features) = shape[axis];
  }
  x.is_inside = letters.find("hs") == std::string::npos;
  return x;
}

void follow_heads(SchemeRequest& request, const Heads& x) {
  const auto follow = [&](auto& scheme) {
    if constexpr (requires { scheme.heads + scheme.dims; }) {  // it rotates each head differently
      if (!is_given(request, "heads")) scheme.heads = x.heads;
      if (!is_given(request, "dims")) scheme.dims = x.features;
    }
  };
  std::visit(follow, request.scheme);
  auto* const rope = std::get_if<Rope>(&request.scheme);
  if (rope == nullptr || is_given(request, "dims")) return;
  rope->dims = rope->first_dim < 0 ? -rope->first_dim : x.features - rope->first_dim;
}

void check_heads(const Rotation& form, const Heads& x, const InputArray& input) {
  const std::int64_t dims = 2 * pairs_of(form);
  const std::int64_t first = form.first_dim < 0 ? x.features + form.first_dim : form.first_dim;
  const std::int64_t heads = heads_of(form);
  if (heads > 1 && heads != x.heads) {
    refuse(fmt::format("{} has {} heads, but the scheme has a separate rotation for each of {} (--heads, --axes)",
                       input.path(), x.heads, heads));
  }
  if (first >= 0 && dims <= x.features - first) return;
  refuse(fmt::format(
      "{}: a head has {} features, which cannot hold {} rotary dimensions from feature {} (--dims, --first-dim)",
      input.path(), x.features, dims, form.first_dim));
}

void rotate_in_pieces(const InputArray& input, const Heads& x, const Rotation& form, const PositionList& positions,
                      const ByteSink& sink, bool with_progress) {
  const Layout layout = layout_of(x);
  const std::int64_t total = layout.sequences * x.sequence;
  const std::int64_t row_bytes = layout.row * size_of(input.type());
  if (total * row_bytes == 0) return;
  const bool has_own = positions.count != x.sequence;
  // heads outside that differ are rotated one after another
  std::vector<Rotation> by_head;
  for (std::int64_t head = 0; head < heads_of(form) && heads_of(form) > 1 && !x.is_inside; ++head) {
    by_head.push_back(head_of(form, head));
  }
  const std::int64_t at_once = std::clamp(block_bytes() / row_bytes, std::int64_t{1}, total);
  std::vector<std::byte> buffer(at_once * row_bytes);
  std::vector<std::int64_t> scratch;
  Progress progress(static_cast<double>(total) * static_cast<double>(row_bytes), with_progress);

  for (std::int64_t token = 0; token < total;) {
    stop_if_signalled();
    Piece piece = piece_at(token, x, at_once, has_own);
    if (!by_head.empty()) piece.sequences = 1;
    const std::int64_t tokens = piece.sequences * piece.tokens;
    const std::span bytes(buffer.data(), tokens * row_bytes);
    input.read(token * layout.row, bytes);
    const Rotation& own = by_head.empty() ? form : by_head[piece.sequence % x.heads];
    rotate(view_of(buffer, input.type(), piece, x), positions_at(piece, x, positions, has_own, scratch), own);
    sink({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    progress.advance(static_cast<double>(bytes.size()));
    token += tokens;
  }
}

}  // namespace posenc::cli
