#include "explorer/wasm/call.h"

namespace posenc::page {

std::span<const NamedCall> calls() {
  static constexpr NamedCall kCalls[] = {
      {"figure", figure},           {"table", table},   {"dots", dots},
      {"frequencies", frequencies}, {"scores", scores}, {"closest", closest},
  };
  return kCalls;
}

}  // namespace posenc::page
