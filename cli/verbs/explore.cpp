#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string>

#include "cli/server/site.h"
#include "cli/system/failure.h"
#include "cli/system/output_file.h"
#include "cli/system/streams.h"
#include "cli/verbs/verbs.h"

namespace posenc::cli {
namespace {

struct ExploreFlags {
  std::int64_t port = 0;
  std::string folder, file, address;
  bool opens_browser = false, force = false, quiet = false;
};

bool is_empty_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) fail_with_errno(path, errno);
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return false;
  }
  return true;
}

void write_file(const std::string& path, std::string_view bytes, bool force) {
  OutputFile file(output_target(path, force));
  file.write(bytes);
  file.publish();
}

void check_address(std::string& address) {
  const bool is_web = address.starts_with("https://") || address.starts_with("http://");
  if (!is_web || address.find_first_of("\"<>&' ?#") != std::string::npos) {
    refuse(
        fmt::format("explore: --address must be an https address without ?, #, & or quotes, but is '{}'", address));
  }
  if (address.back() != '/') address += '/';
}

// Previews of other sites want whole addresses: a page's own, and that of its picture.
std::string with_address(std::string_view page, const std::string& address) {
  std::string whole(page);
  for (const std::string_view before :
       {"<meta property=\"og:image\" content=\"", "<link rel=\"canonical\" href=\""}) {
    const std::size_t at = whole.find(before);
    if (at != std::string::npos) whole.insert(at + before.size(), address);
  }
  return whole;
}

// index.html comes last: a folder that has one is complete.
void export_site(const ExploreFlags& flags) {
  if (mkdir(flags.folder.c_str(), 0777) != 0) {
    if (errno != EEXIST) fail_with_errno(flags.folder, errno);
    if (!flags.force && !is_empty_folder(flags.folder)) {
      refuse(
          fmt::format("{}: the folder is not empty (use --force to overwrite the site's files in it)", flags.folder));
    }
  }
  std::string_view index;
  std::string page;
  std::size_t bytes = 0;
  for (const SiteFile& file : site_files()) {
    bytes += file.bytes.size();
    if (file.path == "/index.html") {
      index = file.bytes;
    } else {
      const bool is_page = !flags.address.empty() && file.path.ends_with(".html");
      write_file(flags.folder + std::string(file.path),
                 is_page ? std::string_view(page = with_address(file.bytes, flags.address)) : file.bytes,
                 flags.force);
    }
  }
  if (!flags.address.empty()) index = page = with_address(index, flags.address);
  write_file(flags.folder + "/index.html", index, flags.force);
  if (!flags.quiet) tell(fmt::format("wrote {}: {} files, {} bytes", flags.folder, site_files().size(), bytes));
}

int explore(ExploreFlags& flags) {
  if (!flags.address.empty()) {
    if (flags.folder.empty()) refuse("explore: --address goes with --export");
    check_address(flags.address);
  }
  if (!flags.folder.empty() && !flags.file.empty()) refuse("explore: choose one of --export and --single-file");
  if (flags.folder.empty() && flags.file.empty()) {
    return serve_site({.port = static_cast<std::uint16_t>(flags.port),
                       .opens_browser = flags.opens_browser,
                       .is_quiet = flags.quiet});
  }
  if (!flags.folder.empty()) {
    export_site(flags);
    return kDone;
  }
  const std::string page = single_file();
  write_file(flags.file, page, flags.force);
  if (!flags.quiet) tell(fmt::format("wrote {}: {} bytes", flags.file, page.size()));
  return kDone;
}

}  // namespace

Verb explore_verb(Command program) {
  Verb verb;
  verb.name = "explore";
  verb.summary = "open the web explorer: every figure interactive, in a browser";
  verb.usage = "[--port N] [--open] | --export DIR [--address URL] | --single-file F.html";
  verb.details =
      "Serves the explorer on 127.0.0.1 and prints its address; Ctrl-C stops it. The page computes everything in the "
      "browser with this library, sends nothing anywhere, and shows under each figure the command that prints the same "
      "numbers. --export writes the site for any web server, --single-file a single page that needs no server.";
  verb.examples =
      "posenc explore --open\n"
      "posenc explore --port 8080\n"
      "posenc explore --export site\n"
      "posenc explore --single-file explorer.html";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<ExploreFlags>();
  verb.command.add_integer("--port", flags->port, {.least = 0, .most = 65535}, "port on 127.0.0.1; 0: any free one")
      .type_name("N");
  verb.command.add_flag("--open", flags->opens_browser, "open the address in the browser");
  verb.command.add_option("--export", flags->folder, "write the site's files into this folder instead")
      .type_name("DIR");
  verb.command
      .add_option("--address", flags->address, "with --export: where the site will be, for previews of its links")
      .type_name("URL");
  verb.command.add_option("--single-file", flags->file, "write the site as one HTML file instead").type_name("FILE");
  verb.command.add_flag("--force", flags->force, "replace files that exist");
  verb.command.add_flag("--quiet", flags->quiet, "print only errors");
  verb.run = [flags] { return explore(*flags); };
  return verb;
}

}  // namespace posenc::cli
