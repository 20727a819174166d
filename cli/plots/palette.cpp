#include "cli/plots/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace posenc::cli {
namespace {

constexpr Rgb kBelow = {0x08, 0x30, 0x6b};
constexpr Rgb kHalfBelow = {0x4a, 0x8c, 0xc2};
constexpr Rgb kHalfAbove = {0xfd, 0xbe, 0x7a};
constexpr Rgb kAbove = {0xe0, 0x6c, 0x00};

std::uint8_t mixed(std::uint8_t from, std::uint8_t to, double share) {
  return static_cast<std::uint8_t>(std::lround(from + (to - from) * share));
}
Rgb mixed(Rgb from, Rgb to, double share) {
  return {mixed(from.red, to.red, share), mixed(from.green, to.green, share), mixed(from.blue, to.blue, share)};
}

// 0: white; ½: the middle colour; 1: the end colour.
Rgb towards(Rgb middle, Rgb end, double share) {
  return share < 0.5 ? mixed(kPaper, middle, share * 2) : mixed(middle, end, share * 2 - 1);
}

}  // namespace

std::string hex(Rgb colour) { return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue); }

LineStyle line_style(int index) {
  if (index < 0) return {{0xb4, 0xb4, 0xb4}, "solid", 7};
  static constexpr std::array<LineStyle, 8> kStyles = {{{{0x00, 0x72, 0xb2}, "solid", 7},
                                                        {{0xd5, 0x5e, 0x00}, "(12,5)", 5},
                                                        {{0x00, 0x9e, 0x73}, "(3,3)", 9},
                                                        {{0xcc, 0x79, 0xa7}, "(12,4,2,4)", 13},
                                                        {{0xe6, 0x9f, 0x00}, "solid", 6},
                                                        {{0x56, 0xb4, 0xe9}, "(6,4)", 4},
                                                        {{0x26, 0x26, 0x26}, "(2,5)", 8},
                                                        {{0x8c, 0x6d, 0x1f}, "(14,3,3,3,3,3)", 12}}};
  return kStyles[static_cast<std::size_t>(std::max(index, 0)) % kStyles.size()];
}

Rgb heat_colour(double value, double least, double most) {
  if (!std::isfinite(value)) return kUndrawable;
  const double held = std::clamp(value, least, most);
  if (least < 0 && most > 0) {
    const double end = std::max(-least, most);
    return held < 0 ? towards(kHalfBelow, kBelow, -held / end) : towards(kHalfAbove, kAbove, held / end);
  }
  if (most <= least) return kPaper;
  const double share = (held - least) / (most - least);
  return towards(kHalfBelow, kBelow, most <= 0 ? 1 - share : share);
}

}  // namespace posenc::cli
