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

/// How a series is distinguished: by colour, and by dashes and markers for printing in grey.
struct LineStyle {
  Rgb colour;
  const char* dashes;  // gnuplot's dash pattern
  int marker;          // gnuplot's number
};
/// Okabe and Ito's colours, which people with colour vision deficiency can distinguish. Styles repeat after the last;
/// −1 is grey, for auxiliary lines.
LineStyle line_style(int index);

inline constexpr Rgb kInk = {0x26, 0x26, 0x26};
inline constexpr Rgb kSoftInk = {0x6b, 0x6b, 0x6b};
inline constexpr Rgb kGridColour = {0xe4, 0xe4, 0xe4};
inline constexpr Rgb kBandColour = {0xee, 0xea, 0xe2};
inline constexpr Rgb kUndrawable = {0xbd, 0xbd, 0xbd};  // a cell without a value
inline constexpr Rgb kPaper = {0xff, 0xff, 0xff};

/// The colour of a value between least and most. If zero is between them: dark blue below, white at zero, orange
/// above. The two ends differ in lightness too, so that signs are distinguishable in grey. Otherwise: white at the
/// end closer to zero, dark blue at the other.
Rgb heat_colour(double value, double least, double most);

}  // namespace posenc::cli
