#include "posenc/walkthrough.h"

#include <gtest/gtest.h>

#include <cmath>

#include "posenc/error.h"

namespace posenc::walkthrough_test {
namespace {

TEST(Walkthrough, TwoRowsOfTheSinusoidalTable) {
  const std::vector<Walkthrough> all = walkthroughs();
  ASSERT_EQ(all.size(), 1U);
  const Walkthrough& rows = all.front();
  ASSERT_EQ(rows.steps.size(), 2U);
  for (std::size_t step = 0; step < 2; ++step) {
    const double position = static_cast<double>(step) + 1;
    const double expected[] = {std::sin(position), std::cos(position), std::sin(position / 100),
                               std::cos(position / 100)};
    ASSERT_EQ(rows.steps[step].blanks.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      const Exercise& exercise = rows.steps[step].blanks[i].exercise;
      EXPECT_NEAR(exercise.answer, expected[i], 1e-12);
      EXPECT_EQ(grade(exercise, shown_answer(exercise)).verdict, Mark::kRight);
      EXPECT_FALSE(exercise.mistakes.empty());
    }
  }
  EXPECT_EQ(rows.steps[1].result, "PE(2) = (0.909, -0.416, 0.020, 1.000)");
  EXPECT_EQ(rows.question.id, "sin-fast-and-slow");
}

TEST(Walkthrough, VariablesThatAreNotThereAreRefused) {
  EXPECT_NEAR(exercise("wavelength", ExerciseVariables{{"dims", 8}, {"pair", 0}, {"base", 100}}).answer,
              2 * std::acos(-1.0), 1e-12);
  EXPECT_THROW(exercise("wavelength", ExerciseVariables{{"dimms", 8}}), Error);
  EXPECT_THROW(exercise("wave", ExerciseVariables{}), Error);
}

}  // namespace
}  // namespace posenc::walkthrough_test
