#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "posenc/json.h"

namespace posenc::models {

/// The values that a configuration class uses for keys missing from a config.json, as far as position needs them, in
/// the form of a config.json. Five kinds of members are more than values:
///   "names"     {"hidden_size": "n_embd"}: the family's own name of a common key;
///   parts       {"vision_config": {"model_type": "clip_vision_model", …}}: the class of a part, and the model's own
///               changes to that class's defaults, which apply if the file lacks the part, or with "merged" wherever
///               it lacks the key; with "own" whatever model_type the file gives that part;
///   "flat"      true: a file without text_config has the keys of the text at the top;
///   "note"      what the whole model does with position in addition to its parts, which is left to the caller;
///   "first_position"  that of the text's first token, where the whole model does not count from its part's.
/// A type of the form "=ClassName" is a class without model_type, which only parts have.
struct ConfigClass {
  std::string_view type;
  std::string_view defaults;  ///< JSON
};

/// The rows of content/models, compiled in by cmake/models.cmake: those of transformers, which read_classes.py writes, then
/// those of code that is published elsewhere.
std::span<const ConfigClass> config_classes() noexcept;

/// nullptr if no class of this type is known.
const ConfigClass* class_of(std::string_view type) noexcept;
std::vector<std::string_view> class_types();

}  // namespace posenc::models
