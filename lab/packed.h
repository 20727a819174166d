#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lab/network.h"
#include "posenc/json.h"

namespace posenc::lab {

/// A trained model of a text in a byte per weight, as a page runs it.
struct PackedModel {
  Network<float> network;
  std::string alphabet;         ///< the byte of each symbol
  std::string text;             ///< what it was trained on
  Json scores = Json::Array{};  ///< to_json(Score) of each size, measured with all bits of the weights
};

/// A .safetensors file: matrices as I8, a row times its number in NAME.scales; vectors as F32; the rest as metadata.
/// A weight is off by at most 1/254 of the largest of its row.
std::string pack(const PackedModel& model);

/// Throws: Error that says what is missing or does not fit.
PackedModel unpack(std::span<const std::byte> bytes);

}  // namespace posenc::lab
