#pragma once

#include <string>
#include <string_view>

namespace posenc::cli {

/// A page on one scheme: formula, papers, fields, users, pitfalls, further reading. Throws: Error if there is no
/// scheme of this name.
std::string scheme_page_as_text(std::string_view scheme);
std::string scheme_page_as_json(std::string_view scheme);

/// Every model_type that inspect supports, by how it encodes position.
std::string families_as_text();
std::string families_as_json();

}  // namespace posenc::cli
