#include "posenc/json.h"

#include "target.h"

// What is accepted is written and read back as it was; with Python's numbers, which are written as null, it is read.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  outcome_of(data, size, [&](std::span<const std::byte>) { parse_json(text, kConfigJsonLimits); });
  return outcome_of(data, size, [&](std::span<const std::byte>) {
    const Json json = parse_json(text);
    require(parse_json(dump_json(json)) == json);
    require(parse_json(dump_json(json, 2)) == json);
  });
}
