#pragma once

#include <string>

#include "posenc/story.h"

namespace posenc::cli {

/// A story for a terminal with the given number of columns.
std::string story_text(const Story& story, int columns, bool colour);
/// A cell with its products, one per line.
std::string cell_text(const CellExpansion& cell, int columns, bool colour);
/// A matrix and its caption; columns for which there is no room follow below. The cells in `marked` get a star.
std::string matrix_text(const StoryMatrix& matrix, const std::vector<Misprint>& marked, int columns, bool colour);
std::string facts_text(const StoryFacts& facts, int columns);

}  // namespace posenc::cli
