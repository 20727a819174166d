#pragma once

// What rotate and the writing of a cache have in common on the host.

#include <cstdint>

#include "kernels/cuda/call.h"

namespace posenc::kernels::cuda {

/// Heads that a lane of the whole-vector kernels has, and warps of a block.
constexpr std::int64_t kHeadsOfALane = 2, kWarps = 2;
/// So few teams that a GPU has room for all at once, and so few pairs that a warp computes them in two rounds.
constexpr std::int64_t kFewTeams = 2048, kFewPairs = 64;

/// Everything that the form and the positions determine, except for the types of the arithmetic.
/// Throws: Error for a form without a kernel.
RotateParams rotation_params(Call& call, const Rotation& form, const TokenPositions& positions, const Site& site);
/// The types of the arithmetic, which may differ between queries and keys.
void set_types(RotateParams& p, const Rotation& form, DataType type);

/// Whether rows start at multiples of 16 bytes and features are contiguous; `first` is a feature that must be at one.
bool has_whole_vectors(const HeadParams& x, std::int64_t first);
/// The strides of batch, heads and tokens in 32 bits. False if they do not fit.
bool narrow_strides(const HeadParams& x, std::int32_t* to);
/// Whether the whole-vector kernels take the form and the types of the arithmetic.
bool rotates_by_vectors(const RotateParams& p, const Rotation& form);

/// For everything else.
void rotate_any(const Call& call, RotateParams& p);

}  // namespace posenc::kernels::cuda
