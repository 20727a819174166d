#pragma once

#include <string>

#include "posenc/json.h"

namespace posenc::models {

/// The class in a config's `architectures`, and the known model_type that it is named after.
struct NamedClass {
  std::string name = {};
  std::string type = {};  ///< "" if there is no such class, or no type for it
};

/// LlamaForCausalLM is a class of llama, Gemma3ForCausalLM one of gemma3_text.
NamedClass class_in(const Json& config);

}  // namespace posenc::models
