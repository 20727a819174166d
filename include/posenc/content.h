#pragma once

#include <span>
#include <string_view>

namespace posenc {

/// A file of content/: stories, questions and cards as data, compiled into the library.
struct ContentFile {
  std::string_view name;  ///< below content/, such as "stories/frank-and-alex.json"
  std::string_view text;
};

/// All of them, sorted by name.
std::span<const ContentFile> content_files();

/// The text of one. Throws: Error where there is none of that name.
std::string_view content(std::string_view name);

}  // namespace posenc
