// rotate and add for tensors on the host that are larger than a piece: each piece is a separate call on the GPU.

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/cuda/call.h"
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

// The number of tokens, out of `tokens`, that fill a piece.
std::int64_t tokens_of_piece(std::int64_t bytes_of_token, std::int64_t tokens) {
  return std::clamp<std::int64_t>(kPieceBytes / std::max<std::int64_t>(bytes_of_token, 1), 1, tokens);
}
// The tables of a form on the host, copied to the GPU for the duration of the call. They are far smaller than the
// tensors they are applied to, and must fit.
class TableCopies {
 public:
  ConstTensorView on_gpu(const ConstTensorView& table) {
    if (table.data == nullptr || table.device != Device::kHost) return table;
    if (!call_) call_.emplace(Site{});
    ConstTensorView copy = table;
    copy.data = call_->table(table).data;
    copy.device = Device::kCuda;
    check(driver().cuStreamSynchronize(nullptr), "copying to the GPU");
    return copy;
  }

 private:
  std::optional<Call> call_;
};
// Rows first … of sequence b, if the table has rows for tokens.
ConstTensorView rows_from(ConstTensorView table, std::int64_t b, std::int64_t first, std::int64_t count) {
  if (table.shape.rank != 3) return table;
  const std::int64_t offset = (b * table.strides[0] + first * table.strides[1]) * size_of(table.type);
  table.data = static_cast<const std::byte*>(table.data) + offset;
  table.shape[0] = 1, table.shape[1] = count;
  return table;
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
  TableCopies copies;
  Rotation form = *job.form;
  const RotationTable table{copies.on_gpu(form.table.cosines), copies.on_gpu(form.table.sines)};
  const std::int64_t tokens = tokens_of_piece(widest, first.sequence);
  const auto room = [&](std::int64_t of_token) { return static_cast<std::size_t>(aligned(of_token * tokens) + 256); };
  Pieces pieces(room(in), room(out));
  std::vector<std::int64_t> ids;
  for (std::int64_t b = 0; b < first.batch; ++b) {
    for (std::int64_t t = 0; t < first.sequence; t += tokens) {
      const std::int64_t count = std::min(tokens, first.sequence - t);
      Pieces::Place& place = pieces.next();
      RotateJob piece = job;
      form.table = {rows_from(table.cosines, b, t, count), rows_from(table.sines, b, t, count)};
      piece.form = &form;
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

// Tokens of one sequence as a separate head.
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
  TableCopies copies;
  Addition form = *job.form;
  if (auto* const rows = std::get_if<Rows>(&form.source)) rows->table = copies.on_gpu(rows->table);
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
      piece.form = &form;
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
