#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/figures.h"
#include "posenc/forms.h"

namespace posenc::figures {

/// One number of a position's vector. A rotation has two for each pair, the cosines and the sines of its angles.
struct TableColumn {
  std::string name = {};
  std::int64_t feature = 0;
  double radians = 0;  // per position; 0: no wave
  std::uint8_t quarter = 0;
};

/// What positions become, as columns of numbers, whatever the scheme's form.
struct PositionTable {
  Addition form = {};
  std::vector<TableColumn> columns = {};
  bool is_rotation = false;
};

/// Throws: Error where the scheme has no such numbers, positions of several axes, or lengths that change.
PositionTable position_table(const PlottedScheme& scheme, const Request& request, std::int64_t length);

/// These columns of it. Throws: Error for a feature that it does not have.
PositionTable picked(const PositionTable& table, const std::vector<std::int64_t>& features);

/// [positions, columns], in double.
std::vector<double> values_at(const PositionTable& table, const std::vector<std::int64_t>& positions);
/// The same from `first` on.
std::vector<double> values_from(const PositionTable& table, std::int64_t first, std::int64_t count);

bool is_wave(const PositionTable& table);
/// Positions per turn; infinite where there is no wave.
double wavelength_of(const TableColumn& column);

/// A column against position. Where there are not enough points to draw its waves, the area that they fill.
struct Curve {
  bool is_area = false;
  std::vector<double> x = {}, y = {}, high = {};
};
/// Of a table with one column. A wave goes on between positions, which shows in a short range.
Curve curve_of(const PositionTable& column, const Range& range, int points);

/// `count` indices from 0 to `size` − 1, evenly spaced, both ends included; all where they are not more.
std::vector<std::int64_t> evenly(std::int64_t size, std::int64_t count);

/// The heads to draw: the one that is asked for, or at most `most` of them. Throws: Error where there is no such head.
std::vector<std::int64_t> heads_shown(const Request& request, std::int64_t heads, std::int64_t most,
                                      std::string_view name);

/// "sinusoidal, width 16, base 10000": the fields that say how large it is, and those that are not as usual.
std::string described(const Scheme& scheme);
/// "angles as hf-f32 makes them" or "".
std::string numerics_note(Numerics numerics);

/// The form of a scheme of the figure in a sequence of this length, or of the length that the request says.
Form form_of(const PlottedScheme& scheme, const Request& request, std::int64_t length);

/// The range that is asked for, or the usual one. Throws: Error where it is longer than `most`.
Range range_of(const Request& request, Range usual, std::int64_t most, std::string_view kind);

}  // namespace posenc::figures
