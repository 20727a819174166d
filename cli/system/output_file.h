#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/system/descriptor.h"

namespace posenc::cli {

/// The destination of a file, and what is there now.
struct OutputTarget {
  /// The permissions and owner of the file that is replaced.
  struct Replaced {
    unsigned mode = 0;
    unsigned user = 0;
    unsigned group = 0;
  };

  std::string shown;      // as the user wrote it, for messages
  std::string directory;  // of the file itself, with links resolved
  std::string name;
  bool force = false;
  std::optional<Replaced> replaced;
};

/// Throws: Failure if there is a directory or a device, or anything at all and force is false.
OutputTarget output_target(const std::string& path, bool force);

/// A file that appears complete or not at all. It is written without a name (O_TMPFILE) or, if the file system does
/// not support that, as .NAME.posenc-PID-RANDOM beside its target; publish() gives it its name. Without publish(),
/// because of an error or a signal, nothing is left behind.
class OutputFile {
 public:
  /// Throws: Failure if nothing can be written there.
  explicit OutputFile(OutputTarget target);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// Reserves the disk space in advance, so that a full disk fails before the work and not after it.
  void reserve(std::int64_t bytes);
  void write(std::string_view bytes);
  /// Moves the file into place, durably. If two programs publish the same new name, only one succeeds.
  void publish();

 private:
  void publish_unnamed();
  void publish_named();

  OutputTarget target_;
  Descriptor directory_;
  Descriptor file_;
  std::string temporary_;  // its current name, if any
};

}  // namespace posenc::cli
