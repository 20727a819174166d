#include "cli/arrays/token_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "cli/flags/engine_flags.h"
#include "cli/system/failure.h"
#include "cli/system/progress.h"
#include "cli/system/signals.h"
#include "posenc/apply.h"

namespace posenc::cli {
namespace {

// Whole sequences if they are short, a part of one if they are long.
struct Piece {
  std::int64_t sequences = 1;
  std::int64_t tokens = 0;  // per sequence
};

Piece piece_at(std::int64_t token, const Tokens& x, std::int64_t tokens_at_once) {
  if (tokens_at_once < x.sequence) return {1, std::min(tokens_at_once, x.sequence - token % x.sequence)};
  const std::int64_t sequences_left = x.batch - token / x.sequence;
  return {std::min(tokens_at_once / x.sequence, sequences_left), x.sequence};
}

}  // namespace

Tokens tokens_of(const InputArray& input, const std::string& axes) {
  const Extents& shape = input.shape();
  if (!axes.empty() && axes != "sd" && axes != "bsd") {
    refuse(fmt::format("--axes: '{}' is not sd or bsd (addition has no heads)", axes));
  }
  const int rank = axes.empty() ? shape.rank : static_cast<int>(axes.size());
  if (rank != shape.rank || rank < 2 || rank > 3) {
    refuse(fmt::format(
        "{} has shape {}; it must be {}", input.path(), to_string(shape),
        axes.empty() ? "[sequence, width] or [batch, sequence, width]" : fmt::format("{}-D ({})", rank, axes)));
  }
  if (input.type() == DataType::kI64) {
    refuse(fmt::format("{} contains integers; it must be f32, f64, f16 or bf16", input.path()));
  }
  return {rank == 3 ? shape[0] : 1, shape.back(1), shape.back(0), shape.back(0) * size_of(input.type())};
}

void add_in_pieces(const InputArray& input, const Tokens& x, const Addition& form, const PositionList& positions,
                   const ByteSink& sink, bool with_progress) {
  const std::int64_t total = x.batch * x.sequence;
  if (total == 0) return;
  const bool is_own = positions.count != x.sequence;
  const std::int64_t at_once = std::clamp(block_bytes() / x.row_bytes, std::int64_t{1}, total);
  std::vector<std::byte> buffer(at_once * x.row_bytes);
  std::vector<std::int64_t> scratch;
  Progress progress(static_cast<double>(total) * static_cast<double>(x.row_bytes), with_progress);

  for (std::int64_t token = 0; token < total;) {
    stop_if_signalled();
    const Piece piece = piece_at(token, x, at_once);
    const std::int64_t tokens = piece.sequences * piece.tokens;
    const std::span bytes(buffer.data(), tokens * x.row_bytes);
    input.read(token * x.width, bytes);
    const TensorView view(buffer.data(), input.type(), {piece.sequences, piece.tokens, x.width});
    const Positions here = is_own ? slice(positions, token, tokens, scratch)
                                  : slice(positions, token % x.sequence, piece.tokens, scratch);
    add(view, here, form);
    sink({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    progress.advance(static_cast<double>(bytes.size()));
    token += tokens;
  }
}

void copy_in_pieces(const InputArray& input, const ByteSink& sink) {
  constexpr std::int64_t kPieceElements = std::int64_t{1} << 20;
  const std::int64_t count = count_of(input.shape());
  std::vector<std::byte> buffer;
  for (std::int64_t first = 0; first < count; first += kPieceElements) {
    stop_if_signalled();
    buffer.resize(std::min(kPieceElements, count - first) * size_of(input.type()));
    input.read(first, buffer);
    sink({reinterpret_cast<const char*>(buffer.data()), buffer.size()});
  }
}

}  // namespace posenc::cli
