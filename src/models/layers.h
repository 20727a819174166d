#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/rope_config.h"

namespace posenc::models {

/// One layer, as far as position goes.
struct Layer {
  std::string type = {};  ///< "full_attention", …; "" where the model has one kind alone
  bool turns = true;      ///< false: no position here
  double base = 0;        ///< where each layer has its own
};

/// What every layer of a model is: by layer_types or the family's own list, else by its rule.
/// Throws: Error for lists that do not fit the number of layers.
std::vector<Layer> layers_of(const Config& config, const Family& family, std::int64_t count, Remarks& remarks);

/// Whether a type of layer is attention, and not a state space, a convolution or a linear recurrence.
bool is_attention(std::string_view layer_type);

}  // namespace posenc::models
