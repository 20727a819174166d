#include "explorer/wasm/call.h"

namespace posenc::page {

std::span<const NamedCall> calls() {
  static constexpr NamedCall kCalls[] = {
      {"figure", figure}, {"table", table}, {"closest", closest}, {"sentence", sentence}};
  return kCalls;
}

}  // namespace posenc::page
