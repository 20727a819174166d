#pragma once

#include <string>
#include <vector>

#include "posenc/exercise.h"
#include "posenc/question.h"

namespace posenc {

/// A number to fill in: an exercise with given variables, and a shorter text that asks for it.
struct WalkthroughBlank {
  std::string label;  ///< "d0 = sin(1 / 1)"
  Exercise exercise;
};

struct WalkthroughStep {
  std::string heading;
  std::vector<WalkthroughBlank> blanks;
  std::string result;  ///< "PE(1) = (0.841, 0.540, 0.010, 1.000)": all of them, once they are filled in
};

/// An exercise of several steps with the same numbers for everybody: rows to fill in, then a question about them.
struct Walkthrough {
  std::string id, title, topic;
  std::string setup;
  std::vector<WalkthroughStep> steps;
  Question question;  ///< asked at the end
  std::string source;
};

/// Those of content/walkthroughs.json. Throws: Error for content that is malformed.
std::vector<Walkthrough> walkthroughs();

}  // namespace posenc
