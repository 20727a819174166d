#pragma once

#include <string>

#include "posenc/error.h"

namespace posenc::tests {

/// What a call throws, or "accepted".
template <class Call> std::string message_of(const Call& call) {
  try {
    call();
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace posenc::tests
