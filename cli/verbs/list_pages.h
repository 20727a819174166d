#pragma once

#include <string>
#include <string_view>

namespace posenc::cli {

/// A page on one scheme: formula, papers, fields, who uses it, pitfalls, where to read on. Throws: Error where there
/// is no scheme of this name.
std::string scheme_page_as_text(std::string_view scheme);
std::string scheme_page_as_json(std::string_view scheme);

/// Every model_type that inspect answers for, by what it does with position.
std::string families_as_text();
std::string families_as_json();

}  // namespace posenc::cli
