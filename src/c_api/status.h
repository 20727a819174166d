#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "posenc/error.h"
#include "posenc/posenc_c.h"

namespace posenc::c_api {

/// What a call of the C API rejects, with the status it returns.
struct Refusal {
  posenc_status status;
  std::string text;
};
[[noreturn]] void refuse(posenc_status status, std::string text);
[[noreturn]] void refuse(std::string text);  // POSENC_INVALID

/// Stores the message for posenc_error(). Never throws: if there is no memory for it, the message says so.
posenc_status keep(posenc_status status, const char* text) noexcept;

/// The only `try` of the library: turns what `work` throws into a status and a message.
template <class Work> int guarded(const Work& work) noexcept {
  try {
    work();
    return POSENC_OK;
  } catch (const Refusal& refusal) {
    return keep(refusal.status, refusal.text.c_str());
  } catch (const Error& error) {
    return keep(POSENC_INVALID, error.what());
  } catch (const std::bad_alloc&) {
    return keep(POSENC_NO_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return keep(POSENC_INTERNAL, error.what());
  } catch (...) {
    return keep(POSENC_INTERNAL, "an unknown failure inside posenc");
  }
}

}  // namespace posenc::c_api
