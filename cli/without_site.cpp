// The program without the explorer, to keep the first build short: it needs neither node nor a second compiler.

#include "cli/server/site.h"
#include "cli/system/failure.h"

namespace posenc::cli {
namespace {
[[noreturn]] void refuse_site() {
  throw Failure{kFilesFailed,
                "explore: this build has no web explorer inside (run ./run explore in the source tree to build it)"};
}
}  // namespace

std::span<const SiteFile> site_files() { refuse_site(); }
std::string_view single_page() { refuse_site(); }
std::string single_file() { refuse_site(); }
int serve_site(const ServeOptions&) { refuse_site(); }

}  // namespace posenc::cli
