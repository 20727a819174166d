#include "posenc/gguf.h"
#include "posenc/model.h"

#include "target.h"

// A config.json, or where it begins like one a .gguf file. A model that is accepted says what all of its layers do.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  return outcome_of(data, size, [=](std::span<const std::byte> file) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const Model model = text.starts_with("GGUF") ? read_model(read_gguf_head(file), file) : read_model(text);
    require(!model.model_type.empty() && !model.groups.empty());
    for (const LayerGroup& group : model.groups) {
      require(!group.scheme_name.empty());
      require(!group.scheme || name_of(*group.scheme) == group.scheme_name);
      const auto* const rope = group.scheme ? std::get_if<Rope>(&*group.scheme) : nullptr;
      if (rope != nullptr) require(prepare(*rope, {.length = 4096}).softmax_factor > 0);
      layer_ranges(group.layers);
    }
  });
}
