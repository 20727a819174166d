#pragma once

#include "models/config.h"
#include "models/families.h"
#include "posenc/model.h"

namespace posenc::models {

/// Adds the indexer of sparse attention as a part: it rotates the first dimensions of heads of its own, not always in the
/// pairs of the attention that it serves.
void add_indexer(const Config& config, const Family& family, Model& model);

}  // namespace posenc::models
