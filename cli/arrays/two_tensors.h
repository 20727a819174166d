#pragma once

#include <string>
#include <vector>

#include "cli/flags/command.h"
#include "posenc/diagnosis.h"
#include "posenc/json.h"
#include "posenc/npy.h"

namespace posenc::cli {

/// The flags of verbs that compare a tensor before and after.
struct TwoTensorFlags {
  std::string before, after, positions, axes, dtype;
  std::vector<std::string> paths;  // positional: before, after
  bool json = false;
};
void add_two_tensor_flags(Command verb, TwoTensorFlags& flags);
/// The two paths, from either place. Throws: Failure if one is given twice or there are more.
void place_paths(TwoTensorFlags& flags, std::string_view verb);

/// Two tensors of the same shape, heads before the sequence, and the positions of their tokens.
struct TwoTensors {
  NpyArray before, after;
  ConstTensorView before_view, after_view;  // [..., sequence, features]
  std::vector<std::int64_t> positions;      // [axes, sequence]; empty: unknown
  int axes = 1;
};
/// Throws: Failure for arrays that do not match each other, the axes or the positions.
TwoTensors read_two_tensors(const TwoTensorFlags& flags, std::string_view verb);

/// A sentence as a list item, wrapped.
std::string bullet(const std::string& text);
/// For people: the verdict in one line, the findings, remarks.
std::string diagnosis_text(const Diagnosis& diagnosis, bool are_positions_known);

}  // namespace posenc::cli
