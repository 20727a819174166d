// The caller's own threads: every verb on the host runs on them, with the same bytes.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "posenc/posenc.h"
#include "sanitized.h"

namespace posenc::pool_test {
namespace {

// Runs the items one after another, the last one first, and counts its calls.
struct Backwards {
  int calls = 0;
  static void run(void* context, std::int64_t count, void (*item)(void*, std::int64_t), void* data) {
    ++static_cast<Backwards*>(context)->calls;
    for (std::int64_t i = count - 1; i >= 0; --i) item(data, i);
  }
  posenc::Run call() { return {.threads = 3, .pool = {&Backwards::run, this}}; }
};

std::vector<float> some_values(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 40503 % 4096) / 2048 - 1);
  return values;
}

TEST(Pool, EveryVerbRunsOnIt) {
  constexpr std::int64_t kHeads = 4, kFeatures = 64;
  const std::int64_t kTokens = is_sample() ? 1024 : 2048;
  const Extents tensor = {1, kHeads, kTokens, kFeatures};
  const std::vector<float> x = some_values(count_of(tensor));
  const Rotation rope = prepare(Rope{.dims = kFeatures});
  const Addition waves = prepare(Sinusoidal{.width = kFeatures});
  const Bias slopes = prepare(Alibi{.heads = kHeads});
  const std::vector<std::int32_t> first_page = {0};
  const std::vector<std::int64_t> slots = slots_of(first_page, kTokens, 0, kTokens),
                                  backwards(slots.rbegin(), slots.rend());
  const auto in = [&] { return view(x.data(), tensor); };
  struct Verb {
    const char* name;
    std::function<void(std::vector<float>& out, const posenc::Run& run)> call;
  };
  const Verb verbs[] = {
      {"tabulate",
       [&](auto& out, const posenc::Run& run) {
         tabulate(view(out.data(), {kHeads * kTokens, kFeatures}), {}, waves, run);
       }},
      {"tabulate of a rotation with growth",
       [&](auto& out, const posenc::Run& run) {
         Rotation grown = rope;
         std::get<PairWaves>(grown.source).growth.rates.assign(kFeatures / 2, 1e-5);
         const auto half = static_cast<std::ptrdiff_t>(out.size() / 2);
         const Extents rows = {kHeads * kTokens, kFeatures / 2};
         tabulate(view(out.data(), rows), view(out.data() + half, rows), {}, grown, run);
       }},
      {"add", [&](auto& out, const posenc::Run& run) { add(view(out.data(), tensor), {}, waves, run); }},
      {"rotate", [&](auto& out, const posenc::Run& run) { rotate(view(out.data(), tensor), {}, rope, run); }},
      {"rotate_backward",
       [&](auto& out, const posenc::Run& run) { rotate_backward(view(out.data(), tensor), {}, rope, run); }},
      {"rerotate",
       [&](auto& out, const posenc::Run& run) {
         rerotate(view(out.data(), tensor), {}, rope, prepare(Rope{.dims = kFeatures, .base = 5e5}), run);
       }},
      {"shift", [&](auto& out, const posenc::Run& run) { shift(view(out.data(), tensor), 7, rope, run); }},
      {"shift of slots",
       [&](auto& out, const posenc::Run& run) {
         shift(view(out.data(), {2, kHeads / 2, kTokens, kFeatures}), slots, 7, rope, run);
       }},
      {"rotate_into",
       [&](auto& out, const posenc::Run& run) {
         rotate_into(view(out.data(), tensor), slots, view(x.data(), {kHeads, kTokens, kFeatures}), {}, rope, run);
       }},
      {"copy_into",
       [&](auto& out, const posenc::Run& run) {
         copy_into(view(out.data(), tensor), backwards, view(x.data(), {kHeads, kTokens, kFeatures}), run);
       }},
      {"copy_slots",
       [&](auto& out, const posenc::Run& run) { copy_slots(view(out.data(), tensor), backwards, slots, run); }},
      {"bias",
       [&](auto& out, const posenc::Run& run) {
         bias(view(out.data(), {kHeads, kTokens / 8, 512}), {}, {}, slopes, run);
       }},
      {"attention",
       [&](auto& out, const posenc::Run& run) {
         attention(view(out.data(), tensor), in(), in(), in(), {.position = rope, .causal = true, .window = 64}, run);
       }},
      {"attention_backward",
       [&](auto& out, const posenc::Run& run) {
         attention_backward({.q = view(out.data(), tensor)}, in(), {in(), in(), in()}, {.causal = true, .window = 64},
                            run);
       }},
  };
  force_backend("cpu");
  for (const Verb& verb : verbs) {
    SCOPED_TRACE(verb.name);
    std::vector<float> want = x, got = x;
    verb.call(want, {.threads = 1});
    EXPECT_NE(want, x);
    Backwards pool;
    verb.call(got, pool.call());
    EXPECT_GT(pool.calls, 0);
    EXPECT_EQ(got, want);
  }
  force_backend("");
}

}  // namespace
}  // namespace posenc::pool_test
