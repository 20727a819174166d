#pragma once

#include <string>
#include <vector>

#include "cli/flags/command.h"
#include "posenc/diagnosis.h"
#include "posenc/json.h"
#include "posenc/npy.h"

namespace posenc::cli {

/// The flags of verbs that look at a tensor before and after.
struct TwoTensorFlags {
  std::string before, after, positions, axes, dtype;
  std::vector<std::string> paths;  // by position: before, after
  bool json = false;
};
void add_two_tensor_flags(Command verb, TwoTensorFlags& flags);
/// The two paths, wherever they were given. Throws: Failure where one is given twice or there are more.
void place_paths(TwoTensorFlags& flags, std::string_view verb);

/// Two tensors of one shape, heads before the sequence, and the positions of their tokens.
struct TwoTensors {
  NpyArray before, after;
  ConstTensorView before_view, after_view;  // [..., sequence, features]
  std::vector<std::int64_t> positions;      // [axes, sequence]; empty: not known
  int axes = 1;
};
/// Throws: Failure for arrays that do not fit each other, the axes or the positions.
TwoTensors read_two_tensors(const TwoTensorFlags& flags, std::string_view verb);

/// A sentence as an item of a list, wrapped.
std::string bullet(const std::string& text);
/// For people: a line of verdict, what was found, what stands out.
std::string diagnosis_text(const Diagnosis& diagnosis, bool are_positions_known);

}  // namespace posenc::cli
