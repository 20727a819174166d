#pragma once

#include <string>
#include <string_view>

#include "cli/flags/command.h"
#include "cli/flags/scheme_flags.h"
#include "posenc/model.h"

namespace posenc::cli {

/// Reads what a path says of position: a config.json, a folder that holds one, or a .gguf file.
/// Throws: Failure "FILE: WHAT" for anything else.
Model model_from(const std::string& path);

/// The tensors with positions of a folder's checkpoint, with their shapes: those that model.safetensors.index.json
/// names, or all of model.safetensors. None where the folder has neither; those of a shard that is missing have no
/// shape.
std::vector<PositionTable> tables_from(const std::string& folder);
bool is_directory(const std::string& path);

/// --model and --layer-type, of verbs that take a scheme from a model's files.
struct ModelFlags {
  std::string path, layer_type;
};
void add_model_flags(Command verb, ModelFlags& flags);

/// The layers that are meant, and the scheme of the request set to theirs, every field of it given. What else the
/// model does with position, and what is odd in its files, goes to stderr, unless it is to be quiet.
/// Throws: Failure where a scheme was chosen too, where layers differ and none is named, and for a scheme that this
/// build does not have.
LayerGroup take_model(const ModelFlags& flags, SchemeRequest& request, std::string_view verb, bool is_quiet);

}  // namespace posenc::cli
