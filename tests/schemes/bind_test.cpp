// Binding another trained table to a form that is already prepared.

#include <gtest/gtest.h>

#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/scheme.h"

namespace posenc::bind_test {
namespace {

std::string refusal_of(Form form, ConstTensorView weights, ConstTensorView key_weights = {}) {
  try {
    posenc::bind(form, weights, key_weights);
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Bind, ReadsTheOtherTable) {
  const std::vector<float> one(32 * 4, 1.0f), two(32 * 4, 2.0f);
  const T5 t5{.heads = 4};
  Form form = prepare(Scheme(t5), {.weights = view(one.data(), {32, 4})});
  posenc::bind(form, view(two.data(), {32, 4}));
  std::vector<float> scores(4 * 3 * 3);
  bias(view(scores.data(), {4, 3, 3}), {}, {}, std::get<Bias>(form));
  EXPECT_EQ(scores, std::vector<float>(scores.size(), 2.0f));

  const std::vector<float> rows(10 * 6, 3.0f), others(10 * 6, 4.0f);
  Form learned = prepare(Scheme(Learned{.rows = 10, .width = 6}), {.weights = view(rows.data(), {10, 6})});
  posenc::bind(learned, view(others.data(), {10, 6}));
  std::vector<float> x(2 * 6);
  add(view(x.data(), {2, 6}), {}, std::get<Addition>(learned));
  EXPECT_EQ(x, std::vector<float>(x.size(), 4.0f));
}

TEST(Bind, SaysWhatDoesNotFit) {
  const std::vector<float> table(32 * 4, 1.0f);
  const ConstTensorView whole = view(table.data(), {32, 4}), part = view(table.data(), {31, 4});
  const Form t5 = prepare(Scheme(T5{.heads = 4}), {.weights = whole});
  EXPECT_EQ(refusal_of(t5, whole), "accepted");
  EXPECT_EQ(refusal_of(t5, part), "bind: weights of shape [31, 4] cannot replace [32, 4]");
  EXPECT_EQ(refusal_of(t5, {}), "bind: weights of shape [] cannot replace [32, 4]");
  EXPECT_EQ(refusal_of(t5, whole, whole), "bind: the form reads no key_weights");
  EXPECT_EQ(refusal_of(prepare(Scheme(Rope{})), whole), "bind: the form reads no weights");
  EXPECT_EQ(refusal_of(prepare(Scheme(Alibi{})), whole), "bind: the form reads no weights");
  EXPECT_EQ(refusal_of(prepare(Scheme(Sinusoidal{})), whole), "bind: the form reads no weights");
}

}  // namespace
}  // namespace posenc::bind_test
