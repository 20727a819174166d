#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "posenc/tensor.h"

namespace posenc {

/// A tensor whose `bytes` are at `offset` of a file; `name` is for messages.
/// Throws: Error if they are not within the file, or if elements are not aligned to their size.
ConstTensorView view_within(std::span<const std::byte> file, std::int64_t offset, std::int64_t bytes,
                            const ConstTensorView& like, std::string_view name);

}  // namespace posenc
