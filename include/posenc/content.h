#pragma once

#include <span>
#include <string_view>

namespace posenc {

/// A file in content/: stories, questions and cards as data, compiled into the library.
struct ContentFile {
  std::string_view name;  ///< relative to content/, such as "stories/frank-and-alex.json"
  std::string_view text;
};

/// All files, sorted by name.
std::span<const ContentFile> content_files();

/// The text of one file. Throws: Error if there is no file of that name.
std::string_view content(std::string_view name);

}  // namespace posenc
