#pragma once

#include <string>

#include "cli/system/descriptor.h"
#include "posenc/review.h"

namespace posenc::cli {

/// What a learner has done, in $XDG_DATA_HOME/posenc/practice.json or ~/.local/share/posenc/practice.json.
///
/// Every answer is written at once, as a whole new file: nothing is lost to a crash, and what another run wrote in
/// the meantime is read again first, under a lock, so that neither loses the other's answers. A file that cannot be
/// understood is kept under another name and said so.
class ProgressFile {
 public:
  /// Throws: Failure where there is no such place.
  ProgressFile();

  const std::string& path() const { return path_; }
  /// What is there now; nothing where there is no file yet.
  /// Throws: Failure 2 for a file of a newer version, 3 where it cannot be read.
  PracticeProgress load();
  /// Adds a review to what is there, and returns all of it.
  PracticeProgress add(const Review& review);

 private:
  Descriptor locked();
  PracticeProgress read();

  std::string folder_, path_;
};

}  // namespace posenc::cli
