#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/system/descriptor.h"

namespace posenc::cli {

/// Where a file will stand, and what stands there now.
struct OutputTarget {
  /// The permissions and owner of the file that is replaced.
  struct Replaced {
    unsigned mode = 0;
    unsigned user = 0;
    unsigned group = 0;
  };

  std::string shown;      // as the user wrote it, for messages
  std::string directory;  // of the file itself: links are followed
  std::string name;
  bool force = false;
  std::optional<Replaced> replaced;
};

/// Throws: Failure where there is a directory or a device, or anything at all and force is false.
OutputTarget output_target(const std::string& path, bool force);

/// A file that appears whole or not at all. It is written without a name (O_TMPFILE) or, where the file
/// system has no such thing, as .NAME.posenc-PID-RANDOM beside its target; publish() gives it its name.
/// Without publish(), whether by an error or a signal, nothing is left behind.
class OutputFile {
 public:
  /// Throws: Failure where nothing can be written there.
  explicit OutputFile(OutputTarget target);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// Takes the disk space at once, so that a disk too small fails before the work and not after it.
  void reserve(std::int64_t bytes);
  void write(std::string_view bytes);
  /// Puts the file in its place, durably. Two programs that publish the same new name cannot both win.
  void publish();

 private:
  void publish_unnamed();
  void publish_named();

  OutputTarget target_;
  Descriptor directory_;
  Descriptor file_;
  std::string temporary_;  // the name it has for now, if any
};

}  // namespace posenc::cli
