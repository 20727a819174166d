#include "cli/flags/colour_flag.h"

#include <fmt/format.h>

#include "cli/system/failure.h"
#include "cli/system/terminal.h"

namespace posenc::cli {

void take_colour(std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size();) {
    const std::string name = arguments[i].substr(0, arguments[i].find('='));
    if (name != "--color" && name != "--colour") {
      ++i;
      continue;
    }
    const auto at = arguments.begin() + static_cast<std::ptrdiff_t>(i);
    const bool has_value = arguments[i].size() > name.size();
    if (!has_value && i + 1 == arguments.size()) refuse("--color: auto, always or never is missing");
    const std::string when = has_value ? arguments[i].substr(name.size() + 1) : arguments[i + 1];
    if (when == "auto") {
      set_colour(Colour::kAuto);
    } else if (when == "always") {
      set_colour(Colour::kAlways);
    } else if (when == "never") {
      set_colour(Colour::kNever);
    } else {
      refuse(fmt::format("--color: '{}' is not one of auto, always, never", when));
    }
    arguments.erase(at, at + (has_value ? 1 : 2));
  }
}

}  // namespace posenc::cli
