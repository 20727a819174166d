#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "explorer/wasm/call.h"
#include "posenc/npy.h"
#include "posenc/tensor.h"

// The module of the npm package (packaging/npm). Files, tensors and positions are pieces of the question's bytes; the
// field that names one is {"at": OFFSET, "size": BYTES, …}.

namespace posenc::page {

/// The bytes of a piece. Throws: Error for one that is missing or outside the bytes.
std::span<const std::byte> piece(const Question& question, std::string_view name);
bool has_piece(const Question& question, std::string_view name);

/// A tensor, {"dtype", "shape"}, which refers to the bytes of the question, or a .npy file, {"npy": true}, which `kept`
/// holds. Throws: Error that begins with `verb`, for a shape that does not fit the bytes and for types other than floats.
ConstTensorView tensor(const Question& question, std::string_view verb, std::string_view name, NpyArray& kept);

/// Positions of one or several axes, [axes, count]: float64 numbers, because JavaScript has no others.
struct Ids {
  std::vector<std::int64_t> values = {};
  int axes = 1;
  std::int64_t count() const { return static_cast<std::int64_t>(values.size()) / axes; }
};
/// {"axes": N}. Throws: Error that begins with `verb`, for a number that is not an integer, or 2^53 or more.
Ids ids(const Question& question, std::string_view verb, std::string_view name);

Answer check_tensors(const Question& question);
Answer diagnose_tensors(const Question& question);
Answer tabulate_scheme(const Question& question);
Answer make_positions(const Question& question);

}  // namespace posenc::page
