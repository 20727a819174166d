#pragma once

#include <array>

#include "models/families.h"

// Makers of rows, for facts that many families share.

namespace posenc::models {

/// Two rows in one, of the encoder and of the decoder. The keys of layers and lengths are then a word for each; those of
/// layers are encoder_layers and decoder_layers if none are given.
inline constexpr std::string_view kEncoderDecoder = "encoder and decoder";

/// A table by image patch.
constexpr Family patches(std::string_view types, PatchTable table, std::string_view note = "") {
  return {.types = types, .encoding = Encoding::kPatches, .patches = table, .note = note};
}

/// A scheme that is not computed.
constexpr Family named(std::string_view types, std::string_view name, std::string_view formula,
                       std::string_view note = "") {
  return {.types = types, .encoding = Encoding::kNotComputed, .name = name, .formula = formula, .note = note};
}

/// No position.
constexpr Family without(std::string_view types, std::string_view note = "") {
  return {.types = types, .encoding = Encoding::kNone, .note = note};
}

/// The first or the second of two words; the only one if there is no second.
constexpr std::string_view word_of_two(std::string_view words, bool is_second) {
  const std::size_t space = words.find(' ');
  if (space == std::string_view::npos) return words;
  return is_second ? words.substr(space + 1) : words.substr(0, space);
}

constexpr Family half_of(Family row, bool is_decoder) {
  if (row.layers_key.empty()) row.layers_key = "encoder_layers decoder_layers";
  row.part = is_decoder ? "decoder" : "encoder";
  row.layers_key = word_of_two(row.layers_key, is_decoder);
  row.length_key = word_of_two(row.length_key, is_decoder);
  return row;
}

template <std::size_t N> constexpr std::size_t count_of_rows(const std::array<Family, N>& rows) {
  std::size_t count = 0;
  for (const Family& row : rows) count += row.part == kEncoderDecoder ? 2 : 1;
  return count;
}

/// A table with the rows of encoders and decoders apart, and a mask in each row: an encoder's or a decoder's own, else
/// `mask`.
template <std::size_t Count, std::size_t N>
constexpr std::array<Family, Count> table_of(const std::array<Family, N>& rows, Mask mask) {
  std::array<Family, Count> table;
  std::size_t at = 0;
  for (const Family& row : rows) {
    const bool is_pair = row.part == kEncoderDecoder;
    table[at++] = is_pair ? half_of(row, false) : row;
    if (is_pair) table[at++] = half_of(row, true);
  }
  for (Family& row : table) {
    if (row.mask != Mask::kOfTable) continue;
    row.mask = row.part == "encoder" ? Mask::kBidirectional : row.part == "decoder" ? Mask::kCausal : mask;
  }
  return table;
}

}  // namespace posenc::models
