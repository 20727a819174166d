#pragma once

#include <string>

#include "posenc/story.h"

namespace posenc::cli {

/// A story as Markdown, with tables in the form that GitHub and Pandoc read.
std::string story_markdown(const Story& story);
std::string cell_markdown(const CellExpansion& cell);

}  // namespace posenc::cli
