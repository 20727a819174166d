#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/plots/figure.h"

namespace posenc::cli {

enum class PictureFormat : std::uint8_t { kSvg, kPng, kPdf };

/// What makes gnuplot draw this figure, `width` by `height` pixels large (PDF: points), to its standard output.
/// The words of the figure are data to it and never commands. `scale` is that of text and lines; 0: it follows from the
/// size.
std::string gnuplot_script(const Figure& figure, PictureFormat format, int width, int height, double scale = 0);

/// A text as gnuplot reads it back: in quotes, everything that could mean something as an octal number. Control
/// characters and line breaks become spaces.
std::string gnuplot_text(std::string_view text);

}  // namespace posenc::cli
