#include "posenc/gguf.h"

#include "target.h"

// Everything that can be asked of a file is asked.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  return outcome_of(data, size, [=](std::span<const std::byte> file) {
    const GgufHead head = read_gguf_head(file);
    for (const GgufEntry& entry : head.metadata) {
      require(head.find(entry.key) == &entry.value);
      gguf_integer(entry.value);
      gguf_number(entry.value);
      if (const auto* const array = entry.value.as<GgufArray>()) {
        require(static_cast<std::int64_t>(gguf_elements(*array).size()) == array->count);
      }
    }
    for (const GgufTensor& tensor : head.tensors) {
      require(tensor.offset + tensor.bytes <= static_cast<std::int64_t>(file.size()));
      outcome_of(data, size, [&](std::span<const std::byte> again) { gguf_view(again, tensor); });
    }
  });
}
