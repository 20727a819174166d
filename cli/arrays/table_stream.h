#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cli/flags/positions_argument.h"
#include "posenc/forms.h"
#include "posenc/scheme.h"

namespace posenc::cli {

enum class TableFormat { kNpy, kSafetensors, kCsv, kJson };

/// A table [positions, width] that is still to be made.
struct TableJob {
  Scheme scheme;
  Addition form;
  PositionList positions;
  DataType type = DataType::kF32;
};

/// Where bytes go: a file or standard output.
using ByteSink = std::function<void(std::string_view)>;

/// Whether a file holds the elements as the machine does, after a head.
constexpr bool is_binary(TableFormat format) { return format <= TableFormat::kSafetensors; }
/// What goes before the elements of a binary format.
std::string table_head(const TableJob& job, TableFormat format);

/// Bytes of the data of a .npy or .safetensors of this shape and type, as a double because a request may be for
/// anything; for the text formats at most this many.
double table_bytes(double rows, double width, DataType type, TableFormat format);

/// How much of a table to make at once: text is several times longer than what it says.
std::int64_t bytes_at_once(TableFormat format);

/// Positions in JSON: [0,1,2], or [[0,0,1],[0,1,0]] where there is more than one axis.
void write_positions(const PositionList& positions, const ByteSink& sink);

/// Makes the table block by block, so that memory does not depend on its length, and writes it.
void write_table(const TableJob& job, TableFormat format, const ByteSink& sink, bool with_progress);

}  // namespace posenc::cli
