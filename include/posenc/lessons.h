#pragma once

// What explains and asks: stories, exercises, questions, cards and reviews, and the content that they are made from. It is
// a library of its own: find_package(posenc), posenc::lessons; pkg-config posenc_lessons.
#include "posenc/content.h"
#include "posenc/exercise.h"
#include "posenc/formula.h"
#include "posenc/question.h"
#include "posenc/review.h"
#include "posenc/story.h"
#include "posenc/walkthrough.h"
