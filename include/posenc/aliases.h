#pragma once

#include <span>
#include <string>
#include <string_view>

#include "posenc/json.h"

namespace posenc {

// Names that Hugging Face and the papers use for ours. They work wherever ours do, in any case.

/// The scheme that a name means: "RoPE" and "rotary" are "rope". The name itself where it is no other name of any.
std::string_view scheme_meant(std::string_view name);

/// Other names of a field: of `base` theta, rope_theta …; of `original_length` original_max_position_embeddings.
std::span<const std::string_view> other_names(std::string_view field) noexcept;
/// The field that one of its other names means; "" where it is none.
std::string_view field_meant(std::string_view name);

/// The value that another name of a choice means: "neox" is "halves". The name itself where it is none.
std::string_view choice_meant(std::string_view name);

/// The scaling that an object of config.json means, in our names: {"rope_type":"yarn","factor":4,
/// "original_max_position_embeddings":4096} becomes {"type":"yarn","factor":4,"original_length":4096}. An object in
/// our names stays as it is.
Json scaling_meant(const Json& json);

}  // namespace posenc
