#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posenc/frequency.h"
#include "posenc/tensor.h"

namespace posenc {

/// The positions of tokens: either consecutive from `first`, or one id per token (and axis).
///
///   {.first = 4096}                    4096, 4097, … for every sequence of the batch
///   {.ids = ids}                       ids [sequence], the same for every sequence of the batch
///   {.ids = ids}                       ids [batch, sequence], different for each sequence
///   {.ids = ids, .axes = 3}            ids [3, sequence] or [3, batch, sequence]: time, height, width
///   {.first = 4096}                    also for a rotation of several axes: text, where all axes agree (M-RoPE)
///
///   {.ids = ids, .device = Device::kCuda}   ids in GPU memory
///
/// Range: 0 ≤ position < 2^53. On the host, waves, rotations and biases by distance also accept negative positions above
/// −2^53 (a position before the first token, or on a grid from −1 to 1: see PrepareOptions::denominators). The ids remain the
/// caller's and must outlive the call; ids in GPU memory must outlive the work it enqueues. Ids on a GPU are checked there:
/// one that is out of range counts as 0, and the next synchronize throws an Error.
struct Positions {
  std::int64_t first = 0;
  std::span<const std::int64_t> ids = {};
  int axes = 1;
  Device device = Device::kHost;               ///< where the ids are; ids on a GPU require tensors on a GPU
  std::span<const std::int32_t> ids_i32 = {};  ///< 32-bit ids instead of ids; for tensors on the host
};

/// The positions of packed sequences: lengths {3, 2} → 0 1 2 0 1.
/// Throws: Error for a negative length.
std::vector<std::int64_t> packed_positions(std::span<const std::int64_t> lengths);

/// How a padding mask becomes positions, for each row of a mask [batch, sequence] (nonzero: a token).
enum class MaskRule : std::uint8_t {
  kCumulative,  ///< cumsum(mask) − 1; padding gets `padding`: left-padded decoders (0 or 1 there)
  kRoberta,     ///< cumsum(mask)·mask + padding: the first token is padding + 1, padding stays `padding`
};
struct MaskOptions {
  std::int64_t batch = 1;
  MaskRule rule = MaskRule::kCumulative;
  std::int64_t padding = 1;  ///< position of padding tokens
};
/// Throws: Error if the mask's size is not a multiple of the batch.
std::vector<std::int64_t> positions_from_mask(std::span<const std::int64_t> mask, const MaskOptions& options = {});

/// The positions of a grid in row-major order, one id per axis: extents {2, 3} → rows 0 0 0 1 1 1, columns 0 1 2 0 1 2.
/// The result is [axes, product of extents], ready for {.ids = …, .axes = …}.
/// Throws: Error for a negative extent or a product past 2^53.
std::vector<std::int64_t> grid_positions(std::span<const std::int64_t> extents);

/// The centres of a grid's cells in [−1, 1], as in DINOv3, in row-major order: coordinate i of an axis with n cells is
/// (2i + 1 − n) / n. The ids are the numerators: for PatchRope, which has the extents as a field, or with
/// {.denominators = extents} for schemes that take fractions.
/// Throws: as grid_positions.
std::vector<std::int64_t> centred_positions(std::span<const std::int64_t> extents);

/// `count` distinct positions drawn uniformly from 0 to longest − 1, in ascending order. Trained on such positions, a model
/// sees every position up to `longest` (Ruoss et al., 2023, "Randomized Positional Encodings Boost Length Generalization
/// of Transformers"; google-deepmind/randomized_positional_encodings 57bc5d01, noisy_fixed_positional_encodings). The
/// same seed gives the same positions on every machine.
/// Throws: Error for a negative count, and for `longest` below count or above 2^53.
std::vector<std::int64_t> randomised_positions(std::int64_t count, std::int64_t longest, std::uint64_t seed);

/// Numbers as exact fractions over a common denominator, a power of two: {0.5, −0.25} → {2, −1} / 4.
struct Fractions {
  std::vector<std::int64_t> numerators = {};
  std::int64_t denominator = 1;
};
/// Throws: Error if a numerator would reach 2^53 or the denominator 2^62, and for NaN and infinity.
Fractions fractions_of(std::span<const double> numbers);

}  // namespace posenc
