#include "formats/view_within.h"

#include <fmt/format.h>

#include "formats/excerpt.h"
#include "posenc/error.h"

namespace posenc {

ConstTensorView view_within(std::span<const std::byte> file, std::int64_t offset, std::int64_t bytes,
                            const ConstTensorView& like, std::string_view name) {
  const auto size = static_cast<std::int64_t>(file.size());
  if (offset < 0 || bytes < 0 || offset > size || bytes > size - offset) {
    raise(fmt::format("tensor {}: {} bytes from byte {} on are not within the {} that were given", quoted(name),
                      bytes, offset, size));
  }
  const std::byte* const data = file.data() + offset;
  if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(size_of(like.type)) != 0) {
    raise(fmt::format("tensor {}: the data at byte {} is not aligned for {} (copy it first)", quoted(name), offset,
                      name_of(like.type)));
  }
  return {data, like.type, like.shape};
}

}  // namespace posenc
