#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/positions_argument.h"
#include "posenc/tensor.h"

namespace posenc::cli {

enum class TableFormat { kNpy, kSafetensors, kCsv, kJson };

/// Where bytes go: a file or standard output.
using ByteSink = std::function<void(std::string_view)>;

/// Whether a file stores the elements as in memory, after a header.
constexpr bool is_binary(TableFormat format) { return format <= TableFormat::kSafetensors; }

/// Bytes of the data in a .npy or .safetensors of this shape and type, as a double because a request may be
/// arbitrarily large; for the text formats an upper bound.
double table_bytes(double rows, double width, DataType type, TableFormat format);

/// Positions in JSON: [0,1,2], or [[0,0,1],[0,1,0]] if there is more than one axis.
void write_positions(const PositionList& positions, const ByteSink& sink);

/// The start of the CSV header, "position" or "position,position1", and the start of a row's line.
std::string csv_positions_head(const PositionList& positions);
std::string csv_position(const PositionList& positions, std::int64_t row);

/// A table yet to be computed, as planes of rows: an addition has one plane, a rotation two (cosines and sines), a
/// bias one per head.
struct TableSource {
  DataType type = DataType::kF32;
  std::int64_t planes = 1, rows = 0, columns = 0;
  std::int64_t planes_at_once = 1;  // that `make` computes together, sharing a block's memory

  /// `rows` rows of a plane from `first` on, dense. Valid until the next call for other rows.
  std::function<const std::byte*(std::int64_t plane, std::int64_t first, std::int64_t rows)> make = {};

  std::function<std::string(TableFormat)> head = {};            // of .npy and .safetensors
  std::function<std::string(std::int64_t plane)> between = {};  // what precedes a plane in .safetensors

  std::string csv_head = {};
  std::function<std::string(std::int64_t plane, std::int64_t row)> csv_label = {};  // the start of a line
  bool is_side_by_side = false;  // CSV: the planes of a row share its line

  std::function<void(const ByteSink&)> json_head = {};  // the members before the values, without the last comma
  std::vector<std::string_view> json_lists = {};        // one per plane
  bool is_nested_in_json = false;                       // the first of them holds a list for each plane
};

/// Computes the table block by block, so that memory does not depend on its length, and writes it; shows progress and
/// stops on a signal.
void write_table(const TableSource& table, TableFormat format, const ByteSink& sink, bool with_progress);

}  // namespace posenc::cli
