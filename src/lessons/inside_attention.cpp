#include <fmt/format.h>

#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"
#include "posenc/apply.h"

namespace posenc::lessons {

Story tell_why_inside_attention(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const Sinusoidal scheme{.width = content.integer("width")};
  const std::vector<std::string> features = numbered("d", scheme.width);
  const std::vector<std::int64_t> starts = content.integers("starts");
  const std::int64_t distance = content.integer("distance");
  std::vector<std::int64_t> queries;
  std::vector<std::string> places;
  for (const std::int64_t start : starts) {
    queries.push_back(start + distance);
    places.push_back(fmt::format("{}-{}", start + distance, start));
  }
  story.say("distance", std::to_string(distance));

  story.step("terms");
  story.formula("(x + p_m)·W_Q · ((y + p_n)·W_K)ᵀ = xW_Q·yW_K + xW_Q·p_nW_K + p_mW_Q·yW_K + p_mW_Q·p_nW_K");
  const StoryMatrix x = story.show(given({"X", "X: the two tokens", {"x", "y"}, features}, content.table("x")));
  const StoryMatrix w_q = story.show(given({"W_Q", "W_Q", features, features}, content.table("w_q")));
  const StoryMatrix w_k = story.show(given({"W_K", "W_K", features, features}, content.table("w_k")));
  const StoryMatrix xq = story.show(product("XQ", "XQ = X · W_Q", x, w_q));
  const StoryMatrix xk = story.show(product("XK", "XK = X · W_K", x, w_k));

  story.step("added");
  const StoryMatrix pm =
      story.show(waves({"Pm", "Pm: positions of the query", as_labels(queries), features}, scheme, queries));
  const StoryMatrix pn =
      story.show(waves({"Pn", "Pn: positions of the key", as_labels(starts), features}, scheme, starts));
  const StoryMatrix mq = story.show(product("PQ", "PQ = Pm · W_Q", pm, w_q));
  const StoryMatrix nk = story.show(product("PK", "PK = Pn · W_K", pn, w_k));
  std::vector<CellTerms> terms;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::vector<CellTerms> four = {row_product(xq, 0, xk, 1), row_product(xq, 0, nk, i),
                                         row_product(mq, i, xk, 1), row_product(mq, i, nk, i)};
    CellTerms total{"the sum of the four terms"};
    for (const CellTerms& one : four) total.terms.push_back({{one.formula, value_of(one)}});
    terms.insert(terms.end(), four.begin(), four.end());
    terms.push_back(std::move(total));
  }
  const StoryMatrix added_scores =
      story.show(computed({"T",
                           "T: the four terms; row m-n",
                           places,
                           {"content-content", "content-position", "position-content", "position-position", "score"}},
                          std::move(terms)));

  story.step("rotated");
  const Rope rope{.dims = scheme.width, .layout = PairLayout::kInterleaved};
  const Rotation form = prepare(rope);
  const StoryMatrix q = given({"XQ", "", {"x"}, features}, {row_of(xq, 0).begin(), row_of(xq, 0).end()});
  const StoryMatrix k = given({"XK", "", {"y"}, features}, {row_of(xk, 1).begin(), row_of(xk, 1).end()});
  const StoryMatrix rq =
      story.show(rotated_to({"Rq", "Rq: XQ of x rotated by m", as_labels(queries), features}, q, form, queries));
  const StoryMatrix rk =
      story.show(rotated_to({"Rk", "Rk: XK of y rotated by n", as_labels(starts), features}, k, form, starts));
  std::vector<CellTerms> rotated;
  for (std::size_t i = 0; i < starts.size(); ++i) rotated.push_back(row_product(rq, i, rk, i));
  const StoryMatrix rotated_scores =
      story.show(computed({"R", "R: RoPE; row m-n", places, {"score"}}, std::move(rotated)));

  story.step("biased");
  const double slope = content.number("slope");
  std::vector<CellTerms> biased;
  const double content_score = dot(row_of(xq, 0), row_of(xk, 1));
  for (std::size_t i = 0; i < starts.size(); ++i) {
    biased.push_back(
        {"content − slope · distance",
         {{{"XQ[x] · XK[y]", content_score}}, {{"−slope", -slope}, {"distance", static_cast<double>(distance)}}}});
  }
  const StoryMatrix biased_scores =
      story.show(computed({"B", "B: a bias; row m-n", places, {"score"}}, std::move(biased)));

  story.step("values");
  story.show({fact("largest variation of an input feature over the text, added", largest_spread(pm)),
              fact("the same for rotation and bias", 0.0)});

  story.step("summary");
  story.show({fact("spread of the score, added", spread_of_column(added_scores, added_scores.columns.size() - 1)),
              residual("spread of the score, rotated", spread_of_column(rotated_scores, 0)),
              residual("spread of the score, bias", spread_of_column(biased_scores, 0))});
  return story.finish();
}

}  // namespace posenc::lessons
