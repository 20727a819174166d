#include "posenc/npz.h"

#include "target.h"

// Members do not overlap, so all of them together inflate to no more than DEFLATE can make of the file.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  return outcome_of(data, size, [=](std::span<const std::byte> file) {
    std::int64_t total = 0;
    for (const NpzMember& member : read_npz_directory(file)) {
      require(member.offset + member.stored_bytes <= static_cast<std::int64_t>(file.size()));
      total += member.bytes;
      outcome_of(data, size, [&](std::span<const std::byte> again) { read_npz(again, member); });
    }
    require(total <= 1032 * static_cast<std::int64_t>(file.size()));
  });
}
