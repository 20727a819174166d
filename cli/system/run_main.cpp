#include "cli/system/run_main.h"

#include <cstdlib>
#include <exception>
#include <new>

#include "cli/system/failure.h"
#include "cli/system/signals.h"
#include "cli/system/streams.h"
#include "posenc/error.h"

namespace posenc::cli {
namespace {

// nothing here may allocate
int report_out_of_memory() noexcept {
  tell("error: out of memory");
  return kOutOfMemory;
}

// Memory may also run out where nothing can be thrown: in a thread, or in a library's noexcept function.
[[noreturn]] void at_terminate() noexcept {
  try {
    if (std::current_exception() != nullptr) throw;
  } catch (const std::bad_alloc&) {
    std::_Exit(report_out_of_memory());
  } catch (...) {}
  std::abort();
}

int report(int code, const std::string& message) {
  if (!message.empty()) tell("error: " + one_line(message));
  return code;
}

}  // namespace

int run_main(int count, char** words, int (*run)(std::vector<std::string> arguments)) {
  std::set_terminate(at_terminate);
  try {
    hold_standard_descriptors();
    catch_signals();
    const int code = run(std::vector<std::string>(words + (count > 0 ? 1 : 0), words + count));
    finish_output();
    return code;
  } catch (const Failure& failure) {
    return report(failure.code, failure.message);
  } catch (const Error& error) {
    return report(kBadInput, error.what());
  } catch (const std::bad_alloc&) {
    return report_out_of_memory();
  } catch (const std::exception& error) {
    return report(kFilesFailed, error.what());
  }
}

}  // namespace posenc::cli
