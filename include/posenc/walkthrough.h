#pragma once

#include <string>
#include <vector>

#include "posenc/exercise.h"
#include "posenc/question.h"

namespace posenc {

/// A number to fill in: an exercise with fixed variables, and a short label instead of its prompt.
struct WalkthroughBlank {
  std::string label;  ///< "d0 = sin(1 / 1)"
  Exercise exercise;
};

struct WalkthroughStep {
  std::string heading;
  std::vector<WalkthroughBlank> blanks;
  std::string result;  ///< "PE(1) = (0.841, 0.540, 0.010, 1.000)": all numbers, once they are filled in
};

/// An exercise with several steps and the same numbers for everyone: rows to fill in, then a question about them.
struct Walkthrough {
  std::string id, title, topic;
  std::string setup;
  std::vector<WalkthroughStep> steps;
  Question question;  ///< asked at the end
  std::string source;
};

/// The walkthroughs in content/walkthroughs.json. Throws: Error for malformed content.
std::vector<Walkthrough> walkthroughs();

}  // namespace posenc
