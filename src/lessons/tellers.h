#pragma once

#include "lessons/story_content.h"
#include "posenc/story.h"

namespace posenc::lessons {

// One function per story, each in its own file.
Story tell_cat_sat(const StoryContent& content, const StoryOptions& options);
Story tell_dog_bites_man(const StoryContent& content, const StoryOptions& options);
Story tell_frank_and_alex(const StoryContent& content, const StoryOptions& options);
Story tell_shift(const StoryContent& content, const StoryOptions& options);
Story tell_dot_product(const StoryContent& content, const StoryOptions& options);
Story tell_learned_or_sinusoidal(const StoryContent& content, const StoryOptions& options);
Story tell_rope(const StoryContent& content, const StoryOptions& options);
Story tell_permutation_proof(const StoryContent& content, const StoryOptions& options);
Story tell_look_back(const StoryContent& content, const StoryOptions& options);
Story tell_nope(const StoryContent& content, const StoryOptions& options);
Story tell_alibi(const StoryContent& content, const StoryOptions& options);
Story tell_t5_buckets(const StoryContent& content, const StoryOptions& options);
Story tell_context_extension(const StoryContent& content, const StoryOptions& options);
Story tell_kv_cache(const StoryContent& content, const StoryOptions& options);
Story tell_who_extrapolates(const StoryContent& content, const StoryOptions& options);
Story tell_why_inside_attention(const StoryContent& content, const StoryOptions& options);
Story tell_decay(const StoryContent& content, const StoryOptions& options);
Story tell_patches(const StoryContent& content, const StoryOptions& options);
Story tell_video(const StoryContent& content, const StoryOptions& options);
Story tell_nope_layers(const StoryContent& content, const StoryOptions& options);
Story tell_float32_angles(const StoryContent& content, const StoryOptions& options);

}  // namespace posenc::lessons
