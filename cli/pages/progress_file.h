#pragma once

#include <string>

#include "cli/system/descriptor.h"
#include "posenc/review.h"

namespace posenc::cli {

/// A learner's progress, in $XDG_DATA_HOME/posenc/practice.json or ~/.local/share/posenc/practice.json.
///
/// Every answer is written at once, as a complete new file, so nothing is lost in a crash. What another run has
/// written in the meantime is first read again, under a lock, so that neither loses the other's answers. An
/// unreadable file is kept under another name and reported.
class ProgressFile {
 public:
  /// Throws: Failure if there is no such place.
  ProgressFile();

  const std::string& path() const { return path_; }
  /// The current content; nothing if there is no file yet.
  /// Throws: Failure 2 for a file of a newer version, 3 if it cannot be read.
  PracticeProgress load();
  /// Adds a review to the current content, and returns all of it.
  PracticeProgress add(const Review& review);

 private:
  Descriptor locked();
  PracticeProgress read();

  std::string folder_, path_;
};

}  // namespace posenc::cli
