#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace posenc::cli {

/// A file of the explorer's site, compiled into the program.
struct SiteFile {
  std::string_view path;  ///< "/index.html"
  std::string_view type;  ///< "text/html; charset=utf-8"
  std::string_view bytes;
  std::string_view tag;  ///< of its content: "\"1f2e…\"", as an ETag has it
};

/// All of them; none if this program was built without the site.
std::span<const SiteFile> site_files();
/// A page to be completed with files: @core.wasm@, @posenc.apkg@ and others mark where their base64 goes.
std::string_view single_page();

/// The page as one file that needs no server.
std::string single_file();

struct ServeOptions {
  std::uint16_t port = 0;  ///< 0: the system picks one
  bool opens_browser = false;
  bool is_quiet = false;
};
/// Serves the site on 127.0.0.1 until SIGINT or SIGTERM. Throws: Failure if the port is taken.
int serve_site(const ServeOptions& options);

}  // namespace posenc::cli
