#pragma once

// Tensors on the host that the GPU works on, in pieces: while it works on one, the host brings the next and takes the last
// one back. So they may be larger than the GPU's memory.

#include <functional>
#include <vector>

#include "kernels/cuda/driver.h"
#include "kernels/job.h"

namespace posenc::kernels::cuda {

/// Bytes of a piece; larger tensors are divided.
constexpr std::int64_t kPieceBytes = std::int64_t{16} << 20;

class Pieces {
 public:
  /// Room for pieces of so many bytes, there and back. One call of the process at a time; the memory is kept.
  Pieces(std::size_t bytes_in, std::size_t bytes_out);
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  /// Waits; what was not finished is lost.
  ~Pieces();

  struct Place {
    std::byte *in = nullptr, *out = nullptr;  // on the host, where the GPU's copies are quick
    Address gpu_in = 0, gpu_out = 0;
    Stream stream = nullptr;
    std::function<void(const std::byte*)> take_back;  // of the piece that is under way here; empty: none is
    Run run() const { return {.stream = stream}; }
    Site site() const { return {Device::kCuda, stream}; }
  };
  /// A place for the next piece; what was there before is done, and taken back.
  Place& next();
  /// Orders the first `bytes` of `in` to be copied to the GPU.
  static void send(const Place& place, std::size_t bytes);
  /// Orders the first `bytes` of gpu_out to be copied back, and then to be handed to `take_back`.
  static void fetch(Place& place, std::size_t bytes, std::function<void(const std::byte*)> take_back);
  /// Waits for all pieces. Throws: Error for what kernels found.
  void finish();

  static constexpr int kPlaces = 2;

 private:
  void settle(Place& place);
  Place* places_;
  int turn_ = 0;
};

/// Rows of one sequence to and from memory in which they follow each other: [heads, tokens, features].
void gather(std::byte* to, const HeadTensor<const void>& from, std::int64_t b, std::int64_t first,
            std::int64_t count);
void scatter(const HeadTensor<void>& to, const std::byte* from, std::int64_t b, std::int64_t first,
             std::int64_t count);

/// A verb on tensors of the host, in pieces; false where they are small, and nothing is done.
bool rotate_in_pieces(const RotateJob& job);
bool add_in_pieces(const AddJob& job);

/// The positions of tokens first … first + count − 1 of sequence b; `ids` is where they are kept.
TokenPositions positions_of_piece(const TokenPositions& all, std::int64_t b, std::int64_t first, std::int64_t count,
                                  std::vector<std::int64_t>& ids);

}  // namespace posenc::kernels::cuda
