#pragma once

// Lessons: stories, exercises, questions, cards and reviews, and the content that they are made from. They are a separate
// library: find_package(posenc), posenc::lessons; pkg-config posenc_lessons.
#include "posenc/content.h"
#include "posenc/exercise.h"
#include "posenc/formula.h"
#include "posenc/question.h"
#include "posenc/review.h"
#include "posenc/story.h"
#include "posenc/walkthrough.h"
