#include "posenc/npy.h"

#include "target.h"

// What is read has the size that its shape says, and is read back from what we would write.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  return outcome_of(data, size, [](std::span<const std::byte> file) {
    const NpyArray array = read_npy(file, {.allow_trailing = true, .void2_is_bf16 = true});
    const auto bytes = static_cast<std::int64_t>(array.bytes.size());
    require(bytes == count_of(array.shape) * size_of(array.type));
    const std::string head = npy_head(array.type, array.shape);
    std::vector<std::byte> again(reinterpret_cast<const std::byte*>(head.data()),
                                 reinterpret_cast<const std::byte*>(head.data()) + head.size());
    again.insert(again.end(), array.bytes.begin(), array.bytes.end());
    require(read_npy(again, {.void2_is_bf16 = true}).bytes == array.bytes);
  });
}
