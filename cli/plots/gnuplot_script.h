#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/plots/figure.h"

namespace posenc::cli {

enum class PictureFormat : std::uint8_t { kSvg, kPng, kPdf };

/// A script with which gnuplot draws this figure, `width` by `height` pixels (PDF: points), to its standard output.
/// The texts of the figure are passed as data, never as commands. `scale` applies to text and lines; 0: derived from
/// the size.
std::string gnuplot_script(const Figure& figure, PictureFormat format, int width, int height, double scale = 0);

/// A text as gnuplot reads it: quoted, with every special character as an octal escape. Control characters and line
/// breaks become spaces.
std::string gnuplot_text(std::string_view text);

}  // namespace posenc::cli
