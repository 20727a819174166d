#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "lessons/own_words.h"
#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"
#include "posenc/error.h"

namespace posenc::lessons {
namespace {

// Attention over one sentence, whose rows are queries, keys and values.
struct Read {
  StoryMatrix x, scores, weights, output;
};

struct ReadNames {
  std::string x, sentence;
  bool causal = false;
};

std::string with_mark(std::string_view letter, const ReadNames& names) {
  // X1' → S1', A1', O1'; with a causal mask, S1'm and so on.
  return fmt::format("{}{}{}", letter, names.x.substr(1), names.causal ? "m" : "");
}

Read read(StoryMatrix x, const ReadNames& names) {
  Read result;
  result.x = std::move(x);
  const std::string scores = fmt::format("S{}", names.x.substr(1));
  const std::string weights = with_mark("A", names), output = with_mark("O", names);
  const double width = static_cast<double>(result.x.columns.size());
  result.scores = product(scores, fmt::format("{} = {} · {}ᵀ: \"{}\"", scores, names.x, names.x, names.sentence),
                          result.x, result.x, {.transposed = true});
  const std::string root = fmt::format("√{}", result.x.columns.size());
  Attended made = attended(
      {weights, fmt::format("{} = softmax({} / {}){}", weights, scores, root, names.causal ? ", causal" : ""), output,
       fmt::format("{} = {} · {}", output, weights, names.x)},
      {result.x, result.x, result.x, result.scores, names.causal, std::sqrt(width), root});
  result.weights = std::move(made.weights);
  result.output = std::move(made.output);
  return result;
}

// max |Att(Π·X) − Π·Att(X)|
CellTerms residual_of(const Read& first, const Read& second, const std::vector<std::size_t>& order) {
  return largest_difference_terms(second.output,
                                  reordered(fmt::format("Π·{}", first.output.name), "", first.output, order));
}

// For each word of the second sentence, its index in the first.
std::vector<std::size_t> order_of(const std::vector<std::string>& words, const std::vector<std::string>& other) {
  std::vector<std::size_t> order;
  std::vector<bool> is_used(words.size());
  for (const std::string& word : other) {
    std::size_t at = 0;
    while (at < words.size() && (is_used[at] || words[at] != word)) ++at;
    if (at == words.size())
      raise(fmt::format("text: the two sentences must contain the same words; '{}' differs", word));
    is_used[at] = true;
    order.push_back(at);
  }
  if (order.size() != words.size()) raise("text: the two sentences must contain the same words");
  return order;
}

std::string sentence_of(const std::vector<std::string>& words, const std::vector<std::size_t>& order) {
  std::vector<std::string> list;
  for (const std::size_t word : order) list.push_back(words[word]);
  return fmt::format("{}", fmt::join(list, " "));
}

void show_illustrative(StoryBuilder& story, const StoryContent& content, const std::vector<const StoryMatrix*>& all) {
  std::size_t differ = 0, cells = 0;
  for (const StoryMatrix* const matrix : all) {
    const auto printed = content.illustrative(matrix->name);
    differ += misprints_of(*matrix, printed).size();
    for (const auto& row : printed) cells += row.size();
  }
  if (differ == 0) return;
  story.say("differ", std::to_string(differ));
  story.say("all", std::to_string(cells));
  story.note("illustrative");
}

}  // namespace

Story tell_dog_bites_man(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const bool is_own = !options.text.empty();
  if (!is_own && !options.other.empty()) raise("text: a second sentence needs a first one");
  const std::vector<std::string> words = is_own ? own_words(options.text) : content.texts("words");
  const std::vector<std::string> labels = unique_labels(words);
  const Sinusoidal scheme{.width = content.integer(is_own ? "text_width" : "width")};
  const std::vector<std::string> features = numbered("d", scheme.width);
  std::vector<std::int64_t> positions(words.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<std::size_t> same(words.size());
  std::iota(same.begin(), same.end(), 0U);
  const std::vector<std::size_t> order = options.other.empty() ? std::vector<std::size_t>(same.rbegin(), same.rend())
                                                               : order_of(words, own_words(options.other));
  const std::string first = sentence_of(words, same), second = sentence_of(words, order);
  story.say("first", first);
  story.say("second", second);

  story.step("words");
  const StoryMatrix x1 = story.show(given({"X1", fmt::format("X1: \"{}\"", first), labels, features},
                                          is_own ? rows_of_words(words, scheme.width) : content.table("x")));
  const StoryMatrix x2 = story.show(reordered("X2", fmt::format("X2: \"{}\"", second), x1, order));
  if (is_own) story.note("own");

  const Read one = read(x1, {"X1", first}), two = read(x2, {"X2", second});
  const CellTerms without = residual_of(one, two, order);
  story.step("scores");
  story.show(one.scores);
  story.show(two.scores);

  story.step("outputs");
  story.formula("Att(X) = softmax(X·Xᵀ / √d) · X,   Att(Π·X) = Π·Att(X)");
  for (const StoryMatrix* const matrix : {&one.weights, &one.output, &two.weights, &two.output}) story.show(*matrix);
  story.say("moved", largest_difference(one.output, two.output));
  story.show({residual("largest |Att(Π·X) − Π·Att(X)|", value_of(without)),
              fact("largest |Att(Π·X) − Att(X)|", largest_difference(one.output, two.output))});
  story.note("equivariant");

  story.step("mask");
  const Read one_masked = read(x1, {"X1", first, true}), two_masked = read(x2, {"X2", second, true});
  const CellTerms masked = residual_of(one_masked, two_masked, order);
  for (const StoryMatrix* const matrix :
       {&one_masked.weights, &one_masked.output, &two_masked.weights, &two_masked.output}) {
    story.show(*matrix);
  }
  story.show({residual("largest |Att(Π·X) − Π·Att(X)|", value_of(masked))});

  story.step("position");
  const StoryMatrix p =
      story.show(waves({"P", "P: one row per position", as_labels(positions), features}, scheme, positions));
  const StoryMatrix moved1 = story.show(added({"X1'", "X1' = X1 + P", x1.rows, features}, x1, p, scheme, positions));
  const StoryMatrix moved2 = story.show(added({"X2'", "X2' = X2 + P", x2.rows, features}, x2, p, scheme, positions));
  const Read one_placed = read(moved1, {"X1'", first}), two_placed = read(moved2, {"X2'", second});
  const CellTerms placed = residual_of(one_placed, two_placed, order);
  story.show(one_placed.scores);
  story.show(two_placed.scores);
  if (!is_own) show_illustrative(story, content, {&one_placed.scores, &two_placed.scores});

  story.step("position_outputs");
  for (const StoryMatrix* const matrix :
       {&one_placed.weights, &one_placed.output, &two_placed.weights, &two_placed.output}) {
    story.show(*matrix);
  }
  story.show({residual("largest |Att(Π·X) − Π·Att(X)|", value_of(placed))});

  story.step("summary");
  story.show(
      computed({"R", "R: largest |Att(Π·X) − Π·Att(X)|", {"no-position", "causal-mask", "position"}, {"residual"}},
               {without, masked, placed}));
  return story.finish();
}

}  // namespace posenc::lessons
