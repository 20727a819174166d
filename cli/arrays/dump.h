#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace posenc::cli {

/// The queries or keys of one layer, before and after position was applied, as names of arrays.
struct DumpedTensor {
  std::int64_t layer = 0;
  bool is_key = false;
  std::string before = {}, after = {};
};

/// What a hook in a running model wrote.
struct Dump {
  std::vector<DumpedTensor> tensors = {};  // by layer, queries before keys
  std::string positions = {};              // the array of position ids; "": none
  std::vector<std::string> unread = {};    // arrays with other names
};

/// Finds layers.N.q.before, layers.N.q.after, layers.N.k.before, layers.N.k.after and positions: .npy files of these names
/// in a folder, or tensors of these names in a .safetensors file or in those of a folder.
/// Throws: Failure if there are none, if one is there twice, or if one is there without the other of its pair.
Dump find_dump(const std::string& path);

}  // namespace posenc::cli
