#pragma once

#include <cstdint>
#include <string>

namespace posenc::cli {

struct Rgb {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Rgb&) const = default;
};

/// "#0072b2".
std::string hex(Rgb colour);

/// How a series is told from the others: by colour for most, by dashes and markers for those who print in grey.
struct LineStyle {
  Rgb colour;
  const char* dashes;  // gnuplot's dash pattern
  int marker;          // gnuplot's number of it
};
/// Okabe and Ito's colours, which people who see few colours tell apart. Styles repeat after the last;
/// −1 is grey, for what only holds the rest together.
LineStyle line_style(int index);

inline constexpr Rgb kInk = {0x26, 0x26, 0x26};
inline constexpr Rgb kSoftInk = {0x6b, 0x6b, 0x6b};
inline constexpr Rgb kGridColour = {0xe4, 0xe4, 0xe4};
inline constexpr Rgb kBandColour = {0xee, 0xea, 0xe2};
inline constexpr Rgb kUndrawable = {0xbd, 0xbd, 0xbd};  // a cell without a value
inline constexpr Rgb kPaper = {0xff, 0xff, 0xff};

/// The colour of a value between least and most. Where zero lies between them: dark blue below it, white at it,
/// orange above. The two ends differ in darkness too, so that signs are told apart in grey. Where it does not: white
/// at the end nearer to zero, dark blue at the other.
Rgb heat_colour(double value, double least, double most);

}  // namespace posenc::cli
