#pragma once

#include <string>

#include "cli/arrays/two_tensors.h"
#include "cli/flags/model_file.h"
#include "posenc/check.h"

namespace posenc::cli {

/// What `check --dump` needs: the flags of check that apply to every tensor.
struct DumpFlags {
  std::string path;
  ModelFlags model;
  TwoTensorFlags tensors;
  CheckOptions options;  // tolerance and length
};
/// Checks every layer in a dump against the model, prints a verdict for each, and returns the exit status.
int check_dump(const DumpFlags& flags);

}  // namespace posenc::cli
