#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/figures.h"
#include "posenc/forms.h"

namespace posenc::figures {

/// A column of a scheme's table: one feature of an addition, or the cosine or sine of one pair of a rotation.
struct TableColumn {
  std::string name = {};
  std::int64_t feature = 0;
  double radians = 0;  // per position; 0: not a wave
  std::uint8_t quarter = 0;
};

/// The numbers of each position, as columns: the position vector of an addition, or the cosines and sines of a
/// rotation.
struct PositionTable {
  Addition form = {};
  std::vector<TableColumn> columns = {};
  bool is_rotation = false;
};

/// Throws: Error for a bias, for positions of several axes, and for xPos, whose lengths change with position.
PositionTable position_table(const PlottedScheme& scheme, const Request& request, std::int64_t length);

/// A table of these columns only. Throws: Error for a feature that does not exist.
PositionTable picked(const PositionTable& table, const std::vector<std::int64_t>& features);

/// [positions, columns], in double.
std::vector<double> values_at(const PositionTable& table, const std::vector<std::int64_t>& positions);
/// [count, columns], for consecutive positions.
std::vector<double> values_from(const PositionTable& table, std::int64_t first, std::int64_t count);

bool is_wave(const PositionTable& table);
/// Positions per turn; infinite if the column is not a wave.
double wavelength_of(const TableColumn& column);

/// A column against position. If its waves are too fast for the number of points, the area between their minimum and
/// maximum.
struct Curve {
  bool is_area = false;
  std::vector<double> x = {}, y = {}, high = {};
};
/// For a table with one column. In a short range, waves are also evaluated between integer positions.
Curve curve_of(const PositionTable& column, const Range& range, int points);

/// At most `count` of the indices 0 … `size` − 1, evenly spaced and including both ends.
std::vector<std::int64_t> evenly(std::int64_t size, std::int64_t count);

/// The requested head, or else at most `most` heads, evenly spaced. Throws: Error if the requested head does not
/// exist.
std::vector<std::int64_t> heads_shown(const Request& request, std::int64_t heads, std::int64_t most,
                                      std::string_view name);

/// "sinusoidal, width 16, base 10000": the fields that give its size, and those that differ from the defaults.
std::string described(const Scheme& scheme);
/// "; angles as hf-f32 makes them", or "" for exact angles.
std::string numerics_note(Numerics numerics);

/// The scheme's form for a sequence of request.length tokens, or of `length` tokens if that is 0.
Form form_of(const PlottedScheme& scheme, const Request& request, std::int64_t length);

/// The requested range, or else `usual`. Throws: Error if it has more than `most` positions.
Range range_of(const Request& request, Range usual, std::int64_t most, std::string_view kind);

}  // namespace posenc::figures
