#include "posenc/safetensors.h"

#include "target.h"

// What is accepted covers the file from end to end, and what we write of it is read back as it was.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  return outcome_of(data, size, [=](std::span<const std::byte> file) {
    const SafetensorsHead head = read_safetensors_head(file);
    std::int64_t end = head.data_offset;
    for (const SafetensorsTensor& tensor : head.tensors) {
      require(tensor.offset == end);
      end += tensor.bytes;
      outcome_of(data, size, [&](std::span<const std::byte> again) { safetensors_view(again, tensor); });
    }
    require(end == static_cast<std::int64_t>(file.size()));
    SafetensorsHead again = head;
    std::string bytes = lay_out_safetensors(again);
    bytes.append(static_cast<std::size_t>(end - head.data_offset), '\0');
    const SafetensorsHead back = read_safetensors_head(std::as_bytes(std::span(bytes)));
    require(back.tensors.size() == head.tensors.size() && back.metadata == head.metadata);
    for (const SafetensorsTensor& tensor : head.tensors) {
      require(back.find(tensor.name) != nullptr && back.find(tensor.name)->shape == tensor.shape);
    }
  });
}
