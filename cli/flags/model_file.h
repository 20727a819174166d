#pragma once

#include <string>
#include <string_view>

#include "cli/flags/command.h"
#include "cli/flags/scheme_flags.h"
#include "posenc/model.h"

namespace posenc::cli {

/// Reads how a model encodes position from a config.json, a folder that has one, or a .gguf file.
/// Throws: Failure "FILE: WHAT" for anything else.
Model model_from(const std::string& path);

/// The position tensors of a folder's checkpoint, with their shapes: those listed in model.safetensors.index.json, or
/// all of model.safetensors. None if the folder has neither; those of a missing shard have no shape.
std::vector<PositionTable> tables_from(const std::string& folder);
bool is_directory(const std::string& path);

/// --model and --layer-type, for verbs that take a scheme from a model's files.
struct ModelFlags {
  std::string path, layer_type;
  std::string part = {};  // "vision" …; empty: the one that generates text
};
void add_model_flags(Command verb, ModelFlags& flags);

/// The selected layers; sets the request's scheme to theirs, with every field given. What else the model does with
/// position, and anything odd in its files, goes to stderr, unless quiet.
/// Throws: Failure if a scheme was chosen too, if layers differ and none is selected, and for a scheme that this
/// build does not have.
LayerGroup take_model(const ModelFlags& flags, SchemeRequest& request, std::string_view verb, bool is_quiet);

}  // namespace posenc::cli
