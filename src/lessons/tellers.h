#pragma once

#include "lessons/story_content.h"
#include "posenc/story.h"

namespace posenc::lessons {

// One for each story, each in a file of its own.
Story tell_cat_sat(const StoryContent& content, const StoryOptions& options);
Story tell_dog_bites_man(const StoryContent& content, const StoryOptions& options);
Story tell_frank_and_alex(const StoryContent& content, const StoryOptions& options);
Story tell_shift(const StoryContent& content, const StoryOptions& options);
Story tell_dot_product(const StoryContent& content, const StoryOptions& options);
Story tell_learned_or_sinusoidal(const StoryContent& content, const StoryOptions& options);
Story tell_rope(const StoryContent& content, const StoryOptions& options);

}  // namespace posenc::lessons
