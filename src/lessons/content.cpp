#include "posenc/content.h"

#include <fmt/format.h>

#include "posenc/error.h"

namespace posenc {

std::string_view content(std::string_view name) {
  for (const ContentFile& file : content_files()) {
    if (file.name == name) return file.text;
  }
  raise(fmt::format("content: there is no file '{}'", name));
}

}  // namespace posenc
