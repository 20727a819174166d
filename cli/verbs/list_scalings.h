#pragma once

#include <string>

namespace posenc::cli {

/// Every scaling of rope with its formula and, for each field, its default and meaning.
std::string scalings_as_text();
std::string scalings_as_json();

}  // namespace posenc::cli
