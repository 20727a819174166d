#include "c_api/status.h"

#include <cstdlib>
#include <cstring>

#include "c_api/arguments.h"
#include "posenc/version.h"

namespace posenc::c_api {
namespace {

std::string& message() {
  thread_local std::string text;
  return text;
}

}  // namespace

void refuse(posenc_status status, std::string text) { throw Refusal{status, std::move(text)}; }
void refuse(std::string text) { refuse(POSENC_INVALID, std::move(text)); }

posenc_status keep(posenc_status status, const char* text) noexcept {
  try {
    message() = text;
  } catch (...) {
    message().clear();  // there is no memory for the text
  }
  return status;
}

char* text_from(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace posenc::c_api

extern "C" {

const char* posenc_version(void) { return POSENC_VERSION; }
int posenc_abi(void) { return POSENC_C_ABI; }
const char* posenc_error(void) { return posenc::c_api::message().c_str(); }
void posenc_free(void* text) { std::free(text); }

}  // extern "C"
