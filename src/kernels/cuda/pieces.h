#pragma once

// Processes tensors on the host in pieces on the GPU: while it works on one, the host copies the next in and the
// previous one back. So they may be larger than the GPU's memory.

#include <functional>
#include <vector>

#include "kernels/cuda/driver.h"
#include "kernels/job.h"

namespace posenc::kernels::cuda {

/// Bytes of a piece; larger tensors are split.
constexpr std::int64_t kPieceBytes = std::int64_t{16} << 20;

class Pieces {
 public:
  /// Room for pieces of the given number of bytes, in and out. One call per process at a time; the memory is kept.
  Pieces(std::size_t bytes_in, std::size_t bytes_out);
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  /// Waits; unfinished pieces are discarded.
  ~Pieces();

  struct Place {
    std::byte *in = nullptr, *out = nullptr;  // pinned memory on the host
    Address gpu_in = 0, gpu_out = 0;
    Stream stream = nullptr;
    std::function<void(const std::byte*)> take_back;  // for the piece in flight here; empty: none
    Run run() const { return {.stream = stream}; }
    Site site() const { return {Device::kCuda, stream}; }
  };
  /// A place for the next piece; the piece that was there before is finished and copied back.
  Place& next();
  /// Enqueues a copy of the first `bytes` of `in` to the GPU.
  static void send(const Place& place, std::size_t bytes);
  /// Enqueues a copy of the first `bytes` of gpu_out back to the host, to be passed to `take_back`.
  static void fetch(Place& place, std::size_t bytes, std::function<void(const std::byte*)> take_back);
  /// Waits for all pieces. Throws: Error for what kernels reported.
  void finish();

  static constexpr int kPlaces = 2;

 private:
  void settle(Place& place);
  Place* places_;
  int turn_ = 0;
};

/// Copies rows of one sequence to and from dense memory: [heads, tokens, features].
void gather(std::byte* to, const HeadTensor<const void>& from, std::int64_t b, std::int64_t first,
            std::int64_t count);
void scatter(const HeadTensor<void>& to, const std::byte* from, std::int64_t b, std::int64_t first,
             std::int64_t count);

/// Runs a verb on tensors on the host, in pieces. If they are small, returns false and does nothing.
bool rotate_in_pieces(const RotateJob& job);
bool add_in_pieces(const AddJob& job);

/// The positions of tokens first … first + count − 1 of sequence b; `ids` is their storage.
TokenPositions positions_of_piece(const TokenPositions& all, std::int64_t b, std::int64_t first, std::int64_t count,
                                  std::vector<std::int64_t>& ids);

}  // namespace posenc::kernels::cuda
