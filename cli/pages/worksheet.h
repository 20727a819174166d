#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/pages/paper.h"
#include "cli/pages/practice_plan.h"
#include "posenc/walkthrough.h"

namespace posenc::cli {

/// The contents of a worksheet, in this order: rows to fill in, then questions and fill-ins.
struct Worksheet {
  std::string title;
  std::vector<Walkthrough> walkthroughs;
  std::vector<PracticeItem> items;  // no cards
  std::uint64_t seed = 0;           // orders the choices and draws the numbers
  std::string command;              // the command that prints the same sheet again
};

/// Questions and fill-ins with a tag, topic or id, drawn from a seed; all if the tag is empty.
/// Throws: Failure if nothing has the tag.
Worksheet worksheet_of(const std::string& tag, std::uint64_t seed, std::int64_t count);

/// A page to print: the sheet with room to write, then the answers on separate pages.
std::string worksheet_page(const Worksheet& sheet, const Paper& paper);

}  // namespace posenc::cli
