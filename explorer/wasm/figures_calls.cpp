#include "explorer/wasm/call.h"

namespace posenc::page {

std::span<const NamedCall> calls() {
  static constexpr NamedCall kCalls[] = {
      {"figure", figure},      {"table", table},     {"dots", dots},         {"frequencies", frequencies},
      {"scores", scores},      {"closest", closest}, {"sentence", sentence}, {"schemes", list_schemes},
      {"prove", prove_scheme}, {"cost", cost},
  };
  return kCalls;
}

}  // namespace posenc::page
