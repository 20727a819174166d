#pragma once

#include <span>
#include <string>
#include <string_view>

#include "posenc/json.h"

namespace posenc {

// Names that Hugging Face and the papers use. They work wherever ours do, in upper or lower case.

/// The scheme that a name refers to: "RoPE" and "rotary" are "rope". A name that is not an alias is returned unchanged.
std::string_view scheme_meant(std::string_view name);

/// The aliases of a field: for `base` theta, rope_theta …; for `original_length` original_max_position_embeddings.
std::span<const std::string_view> other_names(std::string_view field) noexcept;
/// The field that an alias refers to, or "".
std::string_view field_meant(std::string_view name);

/// The value that an alias of a choice refers to: "neox" is "halves". A name that is not an alias is returned unchanged.
std::string_view choice_meant(std::string_view name);

/// Translates a rope_scaling object of config.json to our names: {"rope_type":"yarn","factor":4,
/// "original_max_position_embeddings":4096} becomes {"type":"yarn","factor":4,"original_length":4096}. An object that
/// already uses our names is returned unchanged.
Json scaling_meant(const Json& json);

}  // namespace posenc
