#pragma once

#include "models/config.h"
#include "models/families.h"
#include "models/model_groups.h"

namespace posenc::models {

/// The options of layers beside their scheme: window, scale, cap, whether they are causal.
void set_attention_options(LayerGroup& group, const Layer& layer, const Config& config, const Family& family);

/// What only this family does, for a group whose attention is set.
void adjust(LayerGroup& group, const Layer& layer, const Config& config, const Family& family);

/// The length of layers that do not encode position, if nothing else gave one.
void keep_length(const Config& config, const Family& family, PartReading& reading);

/// One group for all layers, which are alike.
LayerGroup group_of_all(const Config& config, const Family& family);
/// `group` as that of one layer, with its type and options; its scheme, and what only the family does, are for the caller.
LayerGroup group_of_layer(const Layer& layer, std::int64_t number, const Config& config, const Family& family,
                          LayerGroup group = {});
/// Describes a scheme that is not computed.
void set_formula(LayerGroup& group, std::string_view name, std::string_view formula);

/// Adds the groups of one row of a family to those of its part. Throws: Error with key, value and rule.
void add_groups(const Config& config, const Family& family, PartReading& reading, Remarks& remarks);

/// The same for rows whose attention has vectors by distance, except DeBERTa's and the plain ones of Shaw.
void add_relative_groups(const Config& config, const Family& family, PartReading& reading, Remarks& remarks);

/// The same for rows of parts that see images.
void add_image_groups(const Config& config, const Family& family, PartReading& reading, Remarks& remarks);

/// The same for rows that rotate.
void add_rope_groups(const Config& config, const Family& family, PartReading& reading, Remarks& remarks);

}  // namespace posenc::models
