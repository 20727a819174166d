#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// A table of trained vectors, one row per position, added to the token. A position past the last row is rejected, with a
/// message that names the position, the number of rows and the offset.
///
///   P(p) = table[p + offset]
///
/// OPT and BART have two unused rows at the start (offset 2). In RoBERTa the offset is part of the positions
/// (MaskRule::kRoberta), so 514 rows serve 512 tokens.
struct Learned {
  static constexpr std::string_view name = "learned";
  static constexpr std::string_view family = "addition";
  static constexpr std::string_view formula = "x + table[p + offset]";
  static constexpr std::string_view used_by = "GPT-2, BERT, RoBERTa, OPT, BART, Whisper's decoder";

  std::int64_t rows = 512;
  std::int64_t width = 512;
  std::int64_t offset = 0;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("rows", &Learned::rows, "rows of the table, one per position");
    visit("width", &Learned::width, "features per token (d_model)");
    visit("offset", &Learned::offset, "row of position 0 (OPT and BART: 2)");
  }
  TrainedTable trained_table() const;
  bool operator==(const Learned&) const = default;
};

/// The table itself is the caller's: prepare(Learned{…}, {.weights = view(table, {rows, width})}).
/// Range: rows and width at least 1, offset at least 0 and below rows.
Addition prepare(const Learned& scheme, const PrepareOptions& options = {});

}  // namespace posenc
