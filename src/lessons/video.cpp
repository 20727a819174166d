#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lessons/story_builder.h"
#include "lessons/story_rotations.h"
#include "lessons/tellers.h"
#include "posenc/mrope.h"

namespace posenc::lessons {
namespace {

// Words, a video, words; extents in patches, as in MropePiece.
struct Prompt {
  std::int64_t words_before = 0, frames = 0, rows = 0, columns = 0, merge = 0, words_after = 0;
};

Prompt prompt_of(const StoryContent& content) {
  return {content.integer("words_before"), content.integer("frames"), content.integer("rows"),
          content.integer("columns"),      content.integer("merge"),  content.integer("words_after")};
}

MropePositions positions_of(const Prompt& prompt, MropeAdvance advance = MropeAdvance::kGrid) {
  std::vector<MropePiece> pieces(3);
  pieces[0].text = prompt.words_before;
  pieces[1].frames = prompt.frames;
  pieces[1].rows = prompt.rows;
  pieces[1].columns = prompt.columns;
  pieces[2].text = prompt.words_after;
  return mrope_positions(pieces, {.merge = prompt.merge, .advance = advance});
}

std::vector<std::string> token_names(const Prompt& prompt) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < prompt.words_before; ++i) names.push_back(fmt::format("word{}", i));
  for (std::int64_t frame = 0; frame < prompt.frames; ++frame) {
    for (std::int64_t row = 0; row < prompt.rows / prompt.merge; ++row) {
      for (std::int64_t column = 0; column < prompt.columns / prompt.merge; ++column) {
        names.push_back(fmt::format("f{}r{}c{}", frame, row, column));
      }
    }
  }
  for (std::int64_t i = 0; i < prompt.words_after; ++i) {
    names.push_back(fmt::format("word{}", prompt.words_before + i));
  }
  return names;
}

std::vector<AxisPositions> by_token(const MropePositions& positions) {
  const auto tokens = static_cast<std::size_t>(positions.tokens);
  std::vector<AxisPositions> result;
  for (std::size_t i = 0; i < tokens; ++i) {
    result.push_back({positions.ids[i], positions.ids[tokens + i], positions.ids[2 * tokens + i]});
  }
  return result;
}

// A number on each axis: that of the piece's first token plus how far into the piece the token is.
StoryMatrix position_table(const Prompt& prompt, const std::vector<AxisPositions>& places) {
  const std::int64_t tokens_of_video = std::ssize(places) - prompt.words_before - prompt.words_after;
  std::vector<CellTerms> cells;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto counter = static_cast<std::int64_t>(i);
    cells.push_back({"tokens before it", {{{"tokens", static_cast<double>(counter)}}}});
    const bool is_after = counter >= prompt.words_before + tokens_of_video,
               is_word = counter < prompt.words_before || is_after;
    const AxisPositions& from = places[static_cast<std::size_t>(is_after  ? prompt.words_before + tokens_of_video
                                                                : is_word ? 0
                                                                          : prompt.words_before)];
    for (std::size_t axis = 0; axis < from.size(); ++axis) {
      cells.push_back({is_word ? "first of these words + words since" : "first of the video + frame, row or column",
                       {{{"first", static_cast<double>(from[axis])}},
                        {{"further", static_cast<double>(places[i][axis] - from[axis])}}}});
    }
  }
  StoryMatrix matrix =
      computed({"P", "P: positions", token_names(prompt), {"counted", "time", "height", "width"}}, std::move(cells));
  matrix.digits = 0;
  return matrix;
}

// Where the words after the video begin, by the number of its frames.
StoryMatrix where_words_go_on(Prompt prompt, const std::vector<std::int64_t>& frames) {
  const std::int64_t patches = prompt.rows / prompt.merge * (prompt.columns / prompt.merge);
  const auto before = static_cast<double>(prompt.words_before);
  std::vector<double> values;
  std::vector<CellTerms> cells;
  const auto after = [&](MropeAdvance advance) {
    const MropePositions all = positions_of(prompt, advance);
    return static_cast<double>(all.ids[static_cast<std::size_t>(all.tokens - prompt.words_after)]);
  };
  for (const std::int64_t one : frames) {
    prompt.frames = one;
    values.insert(values.end(), {before + static_cast<double>(one * patches), after(MropeAdvance::kGrid),
                                 after(MropeAdvance::kLargest)});
    cells.push_back({"words before + frames · patches of a frame",
                     {{{"words before", before}},
                      {{"frames", static_cast<double>(one)}, {"patches", static_cast<double>(patches)}}}});
    const std::int64_t larger = std::max(prompt.rows, prompt.columns) / prompt.merge;
    const auto wide = static_cast<double>(larger);
    cells.push_back(
        {"words before + the larger of rows and columns", {{{"words before", before}}, {{"rows or columns", wide}}}});
    cells.push_back({"words before + the largest of frames, rows and columns",
                     {{{"words before", before}}, {{"largest", std::max(wide, static_cast<double>(one))}}}});
  }
  StoryMatrix matrix = computed({"G",
                                 "G: position of the first word after a video, by its frames",
                                 as_labels(frames),
                                 {"counted", "transformers", "vllm"}},
                                std::move(values), std::move(cells));
  matrix.digits = 0;
  return matrix;
}

}  // namespace

Story tell_video(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const Prompt prompt = prompt_of(content);
  const std::vector<AxisPositions> places = by_token(positions_of(prompt));
  const std::vector<std::string> names = token_names(prompt);
  const std::int64_t patches = prompt.rows / prompt.merge * (prompt.columns / prompt.merge);
  const std::int64_t video = prompt.frames * patches;
  const Rope scheme{
      .dims = content.integer("dims"), .layout = PairLayout::kInterleaved, .sections = content.integers("sections")};
  const Rotation form = prepare(scheme);
  const Rotation plain = prepare(Rope{.dims = scheme.dims, .layout = PairLayout::kInterleaved});
  const std::vector<std::string> features = numbered("d", static_cast<std::size_t>(scheme.dims));
  const std::vector<std::string> pairs = numbered("pair", features.size() / 2);
  story.say("before", std::to_string(prompt.words_before));
  story.say("after", std::to_string(prompt.words_after));
  story.say("frames", std::to_string(prompt.frames));
  story.say("rows", std::to_string(prompt.rows / prompt.merge));
  story.say("columns", std::to_string(prompt.columns / prompt.merge));
  story.say("patches", std::to_string(patches));
  story.say("video", std::to_string(video));
  story.say("apart", std::to_string(video + 1));
  const std::vector<std::int64_t> more_frames = content.integers("more_frames");
  story.say("long", std::to_string(more_frames.back()));
  story.say("long_apart", std::to_string(more_frames.back() * patches + 1));
  for (std::size_t axis = 0; axis < 3; ++axis)
    story.say(fmt::format("s{}", axis), std::to_string(scheme.sections[axis]));

  story.step("puzzle");
  story.show({count("tokens of the video", video), count("offset of the words around it, counted", video + 1),
              count("offset of a place to itself one frame later, counted", patches)});

  story.step("positions");
  story.show(position_table(prompt, places));

  story.step("sections");
  const std::vector<std::int64_t> chosen = content.integers("shown_tokens");
  std::vector<std::string> shown;
  std::vector<CellTerms> angles;
  for (const std::int64_t token : chosen) {
    const auto at = static_cast<std::size_t>(token);
    shown.push_back(names[at]);
    for (const CellFactor& angle : angles_at(form, places[at]))
      angles.push_back({"position on its axis · ω", {{angle}}});
  }
  StoryMatrix f = computed({"F", "F: angles in radians", shown, pairs}, std::move(angles));
  f.digits = 4;
  story.show(f);

  story.step("text");
  const StoryMatrix q = story.show(given({"q", "q: a query", {"q"}, features}, content.table("q")));
  const StoryMatrix k = story.show(given({"k", "k: a key", {"k"}, features}, content.table("k")));
  const AxisPositions& last = places.back();
  double away = 0;
  for (std::int64_t word = 0; word < prompt.words_before; ++word) {
    const double with_axes = rotated_score(q, k, form, last, places[static_cast<std::size_t>(word)]);
    away = std::max(away, std::fabs(with_axes - rotated_score(q, k, plain, {last[0]}, {word})));
  }
  story.show({residual("largest |M-RoPE − RoPE| over the scores of words", away)});

  story.step("frame");
  std::vector<double> scores;
  std::vector<CellTerms> cells;
  std::vector<std::string> keys;
  const std::vector<CellFactor> one_later = angles_at(form, {1, 0, 0});
  for (std::int64_t patch = 0; patch < patches; ++patch) {
    const auto at = static_cast<std::size_t>(prompt.words_before + patch);
    keys.push_back(names[at]);
    scores.push_back(rotated_score(q, k, form, places[at + static_cast<std::size_t>(patches)], places[at]));
    cells.push_back(score_terms(q, k, one_later));
  }
  const double spread = spread_of(scores);
  story.show(computed({"S", "S: score with the same place one frame later", keys, {"score"}}, std::move(scores),
                      std::move(cells)));
  story.show({residual("spread of these scores", spread)});

  story.step("after");
  story.show(where_words_go_on(prompt, more_frames));
  return story.finish();
}

}  // namespace posenc::lessons
