// rotate and add of tensors on the host that are larger than a piece: each piece is a call of its own on the GPU.

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cuda/pieces.h"
#include "kernels/element.h"

namespace posenc::kernels::cuda {

Outcome add(const AddJob& job);
Outcome rotate(const RotateJob& job);

namespace {

// A dense tensor of one piece, on the GPU.
template <class To, class Void>
HeadTensor<To> piece_of(const HeadTensor<Void>& x, Address at, std::int64_t offset, std::int64_t count) {
  HeadTensor<To> piece;
  piece.data = reinterpret_cast<To*>(at + static_cast<Address>(offset));
  piece.type = x.type;
  piece.heads = x.heads, piece.sequence = count, piece.features = x.features;
  piece.token_stride = x.features, piece.head_stride = count * x.features;
  piece.batch_stride = x.heads * piece.head_stride;
  return piece;
}
template <class Void> std::int64_t bytes_of_token(const HeadTensor<Void>& x) {
  return x.heads * x.features * size_of(x.type);
}

// Of `tokens` tokens, at most so many that a piece is full.
std::int64_t tokens_of_piece(std::int64_t bytes_of_token, std::int64_t tokens) {
  return std::clamp<std::int64_t>(kPieceBytes / std::max<std::int64_t>(bytes_of_token, 1), 1, tokens);
}
// Rows of 16 bytes stay rows of 16 bytes.
std::int64_t aligned(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

bool rotate_in_pieces(const RotateJob& job) {
  const auto& first = job.parts[0].x;
  std::int64_t in = 0, out = 0;
  for (int n = 0; n < job.count; ++n) {
    in += bytes_of_token(job.parts[static_cast<std::size_t>(n)].x);
    out += bytes_of_token(job.parts[static_cast<std::size_t>(n)].out);
  }
  const std::int64_t widest = std::max(in, out);
  if (job.site.device != Device::kHost || widest * first.sequence * first.batch <= 2 * kPieceBytes) return false;
  if (has_table(*job.form)) return false;
  const std::int64_t tokens = tokens_of_piece(widest, first.sequence);
  const auto room = [&](std::int64_t of_token) { return static_cast<std::size_t>(aligned(of_token * tokens) + 256); };
  Pieces pieces(room(in), room(out));
  std::vector<std::int64_t> ids;
  for (std::int64_t b = 0; b < first.batch; ++b) {
    for (std::int64_t t = 0; t < first.sequence; t += tokens) {
      const std::int64_t count = std::min(tokens, first.sequence - t);
      Pieces::Place& place = pieces.next();
      RotateJob piece = job;
      piece.site = place.site();
      piece.positions = positions_of_piece(job.positions, b, t, count, ids);
      std::int64_t at_in = 0, at_out = 0, starts[2] = {0, 0};
      for (int n = 0; n < job.count; ++n) {
        const RotateJob::Part& from = job.parts[static_cast<std::size_t>(n)];
        RotateJob::Part& part = piece.parts[static_cast<std::size_t>(n)];
        gather(place.in + at_in, from.x, b, t, count);
        part.x = piece_of<const void>(from.x, place.gpu_in, at_in, count);
        part.out = piece_of<void>(from.out, place.gpu_out, at_out, count);
        starts[n] = at_out;
        at_in = aligned(at_in + bytes_of_token(from.x) * count);
        at_out = aligned(at_out + bytes_of_token(from.out) * count);
      }
      Pieces::send(place, static_cast<std::size_t>(at_in));
      rotate(piece);
      const std::int64_t second = starts[1];
      Pieces::fetch(place, static_cast<std::size_t>(at_out), [&job, b, t, count, second](const std::byte* made) {
        for (int n = 0; n < job.count; ++n) {
          scatter(job.parts[static_cast<std::size_t>(n)].out, made + (n == 0 ? 0 : second), b, t, count);
        }
      });
    }
  }
  pieces.finish();
  return true;
}

namespace {

// Tokens of one sequence as a head of their own.
template <class Void> HeadTensor<Void> as_heads(const TokenTensor<Void>& x, std::int64_t b) {
  HeadTensor<Void> heads;
  heads.type = x.type;
  heads.data = with_type(x.type, [&](auto kind) -> Void* { return x.template token<decltype(kind)>(b, 0); });
  heads.sequence = x.sequence, heads.features = x.width;
  heads.token_stride = x.token_stride, heads.feature_stride = x.column_stride;
  return heads;
}
template <class Void> TokenTensor<Void> tokens_at(Address at, DataType type, std::int64_t count, std::int64_t width) {
  TokenTensor<Void> tokens;
  tokens.data = reinterpret_cast<Void*>(at);
  tokens.type = type;
  tokens.sequence = count, tokens.width = width;
  tokens.token_stride = width;
  return tokens;
}

}  // namespace

bool add_in_pieces(const AddJob& job) {
  const std::int64_t of_token = job.out.width * size_of(job.out.type), sequence = job.out.sequence;
  if (job.site.device != Device::kHost || of_token * sequence * job.out.batch <= 2 * kPieceBytes) return false;
  if (std::holds_alternative<Rows>(job.form->source)) return false;  // its table is on the host
  const std::int64_t tokens = tokens_of_piece(of_token, sequence);
  const auto room = static_cast<std::size_t>(of_token * tokens);
  Pieces pieces(room, room);
  std::vector<std::int64_t> ids;
  for (std::int64_t b = 0; b < job.out.batch; ++b) {
    const HeadTensor<void> out = as_heads(job.out, b);
    for (std::int64_t t = 0; t < sequence; t += tokens) {
      const std::int64_t count = std::min(tokens, sequence - t);
      Pieces::Place& place = pieces.next();
      AddJob piece = job;
      piece.site = place.site();
      piece.positions = positions_of_piece(job.positions, b, t, count, ids);
      piece.out = tokens_at<void>(place.gpu_out, job.out.type, count, job.out.width);
      const TokenTensor<const void> x = tokens_at<const void>(place.gpu_in, job.out.type, count, job.out.width);
      if (job.x != nullptr) {
        gather(place.in, as_heads(*job.x, b), 0, t, count);
        Pieces::send(place, static_cast<std::size_t>(of_token * count));
        piece.x = &x;
      }
      add(piece);
      Pieces::fetch(place, static_cast<std::size_t>(of_token * count),
                    [out, t, count](const std::byte* made) { scatter(out, made, 0, t, count); });
    }
  }
  pieces.finish();
  return true;
}

}  // namespace posenc::kernels::cuda
