#pragma once

#include <string_view>

namespace posenc::cli {

/// A size of paper, as CSS names and measures it.
struct Paper {
  std::string_view name;  // of @page
  std::string_view width, height;
};
inline constexpr Paper kA4{"A4", "210mm", "297mm"};
inline constexpr Paper kLetter{"Letter", "8.5in", "11in"};

}  // namespace posenc::cli
