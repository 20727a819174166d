#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "posenc/error.h"
#include "posenc/forms.h"
#include "posenc/npy.h"

namespace posenc::tests {

/// An array of oracle/data/goldens.
inline NpyArray golden_array(const std::string& name) {
  std::ifstream file(std::string(POSENC_TEST_DATA) + "/goldens/" + name + ".npy", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  return read_npy(std::as_bytes(std::span(bytes)));
}

/// Its elements.
template <class T> std::vector<T> golden_values(const std::string& name) {
  const NpyArray array = golden_array(name);
  const auto* const data = reinterpret_cast<const T*>(array.bytes.data());
  return {data, data + count_of(array.shape)};
}

/// What a map says of a distance.
inline std::int64_t entry_at(const DistanceMap& map, std::int64_t distance) {
  const auto last = static_cast<std::int64_t>(map.entries.size()) - 1;
  return map.entries[static_cast<std::size_t>(std::clamp<std::int64_t>(distance - map.first, 0, last))];
}

/// The message of the error that a call ends in.
template <class Call> std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace posenc::tests
