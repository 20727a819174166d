// A plan gives the bytes of attention, without allocating in a decoding step. Every allocation of this program is
// counted (memory_test.cpp).

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>

#include "attention/allocations.h"
#include "attention/oracle.h"
#include "attention/two_threads.h"
#include "backends.h"
#include "posenc/cache.h"
#include "posenc/error.h"
#include "posenc/posenc.h"

namespace posenc::plan_test {
namespace {

using tests::for_each_host_engine;
using tests::Heads;
using tests::random_heads;
using tests::TwoThreads;

constexpr std::int64_t kHeads = 4, kKeyHeads = 2, kFeatures = 16;

struct Case {
  std::string name;
  AttentionOptions options;
  bool is_rotation = false;
};

std::vector<Case> cases(const std::vector<float>& table, const std::vector<float>& sinks) {
  const Form rope = prepare(Rope{.dims = kFeatures}),
             swapped = prepare(Rope{.dims = kFeatures, .layout = PairLayout::kInterleaved});
  return {
      {"none", {.causal = true}},
      {"alibi", {.position = prepare(Alibi{.heads = kHeads}), .causal = true}},
      {"t5",
       {.position =
            prepare(T5{.heads = kHeads, .bidirectional = false}, {.weights = view(table.data(), {32, kHeads})}),
        .causal = true,
        .scale = 1.0}},
      {"rope", {.position = rope, .causal = true, .keys_are_rotated = true}, true},
      {"interleaved rope, window",
       {.position = swapped, .causal = true, .window = 9, .keys_are_rotated = true},
       true},
      {"rope of plain keys", {.position = rope, .causal = true}},
      {"sinks, softcap, temperature",
       {.causal = true,
        .softcap = 2,
        .temperature = Temperature{.length = 4},
        .sinks = view(sinks.data(), {kHeads})}},
  };
}

// A cache in pages, and the steps of a decoder over it.
template <class T> struct Decoder {
  static constexpr std::int64_t kPage = 16, kPages = 140, kTokens = kPage * kPages;
  Heads<T> k = random_heads<T>(1, kKeyHeads, kTokens, kFeatures, 2),
           v = random_heads<T>(1, kKeyHeads, kTokens, kFeatures, 3), q = random_heads<T>(1, kHeads, 1, kFeatures, 1);
  std::vector<T> k_pool = std::vector<T>(k.values.size()), v_pool = k_pool;
  TensorView k_cache = swap_axes(view(k_pool.data(), {kPages, kPage, kKeyHeads, kFeatures}), 1, 2),
             v_cache = swap_axes(view(v_pool.data(), {kPages, kPage, kKeyHeads, kFeatures}), 1, 2);
  std::vector<std::int32_t> table = std::vector<std::int32_t>(kPages);
  std::vector<std::int64_t> lengths = {0}, slot = {0};
  Heads<T> out{1, kHeads, 1, kFeatures};
  AttentionOptions options;
  const Rotation* rotation = nullptr;

  explicit Decoder(const Case& given) : options(given.options) {
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>((i * 37) % kPages);
    options.key_lengths = lengths;
    options.block_table = table;
    rotation = given.is_rotation ? std::get_if<Rotation>(&options.position) : nullptr;
  }
  ConstTensorView token(const Heads<T>& x, std::int64_t t) const {
    return {x.values.data() + t * kFeatures,
            data_type_of<T>(),
            {1, kKeyHeads, 1, kFeatures},
            {0, kTokens * kFeatures, kFeatures, 1}};
  }
  void append(std::int64_t t) {
    slot[0] = table[static_cast<std::size_t>(t / kPage)] * kPage + t % kPage;
    if (rotation != nullptr) {
      rotate_into(k_cache, slot, token(k, t), {.first = t}, *rotation);
    } else {
      copy_into(k_cache, slot, token(k, t));
    }
    copy_into(v_cache, slot, token(v, t));
    lengths[0] = t + 1;
  }
};

template <class T> void expect_the_same_bytes(const Case& given, TwoThreads& two) {
  SCOPED_TRACE(given.name);
  Decoder<T> decoder(given);
  const AttentionPlan plan = plan_attention({decoder.q.view(), decoder.k_cache, decoder.v_cache}, decoder.options);
  for (std::int64_t t = 0; t < 40; ++t) decoder.append(t);
  for (const std::int64_t length : {40, 1, 17}) {
    decoder.lengths[0] = length;
    Heads<T> want = decoder.out;
    attention(want.view(), decoder.q.view(), decoder.k_cache, decoder.v_cache, decoder.options);
    std::vector<std::byte> workspace(workspace_bytes(plan, 2));
    for (const Run& run :
         {Run{}, Run{.threads = 1, .workspace = workspace}, Run{.threads = 2, .workspace = workspace},
          Run{.threads = 2, .workspace = workspace, .pool = two.pool()}, Run{.threads = 2, .pool = two.pool()}}) {
      Heads<T> got = decoder.out;
      attention(plan, got.view(), decoder.q.view(), decoder.k_cache, decoder.v_cache, run);
      EXPECT_EQ(std::memcmp(got.values.data(), want.values.data(), want.values.size() * sizeof(T)), 0) << length;
    }
  }
}

std::vector<float> values(std::size_t count) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = std::sin(static_cast<float>(i));
  return all;
}

TEST(AttentionPlan, GivesTheBytesOfAttention) {
  const std::vector<float> table = values(32 * kHeads), sinks = values(kHeads);
  TwoThreads two;
  for_each_host_engine([&] {
    for (const Case& given : cases(table, sinks)) {
      expect_the_same_bytes<float>(given, two);
      expect_the_same_bytes<BFloat16>(given, two);
      expect_the_same_bytes<Half>(given, two);
    }
  });
  EXPECT_GT(two.calls, 0);
}

// Appends a token and attends, as a layer of a decoder does, over the ends of pages and of the chunks that keys are
// split into. The first step of each thread may make what it keeps.
template <class T>
void expect_no_allocation(const Case& given, const Run& run, std::int64_t first, const TwoThreads& two) {
  SCOPED_TRACE(given.name);
  Decoder<T> decoder(given);
  const AttentionPlan plan = plan_attention({decoder.q.view(), decoder.k_cache, decoder.v_cache}, decoder.options);
  std::vector<std::byte> workspace(workspace_bytes(plan, run.threads));
  Run own = run;
  own.workspace = workspace;
  decoder.append(first);
  const auto seen = two.items_of_worker.load();
  for (int i = 0; i < 1000000 && run.threads == 2 && two.items_of_worker == seen; ++i) {
    attention(plan, decoder.out.view(), decoder.q.view(), decoder.k_cache, decoder.v_cache, own);
  }
  std::int64_t before = 0, all_before = 0;
  for (std::int64_t t = first; t < first + 20; ++t) {
    if (t == first + 1) before = tests::allocations, all_before = tests::all_allocations;
    decoder.append(t);
    attention(plan, decoder.out.view(), decoder.q.view(), decoder.k_cache, decoder.v_cache, own);
  }
  const std::int64_t own_count = tests::allocations - before, count = tests::all_allocations - all_before;
  EXPECT_EQ(own_count, 0);
  // Where there is a GPU, its driver's threads may have allocated meanwhile; elsewhere nobody has.
  if (!why_absent("cuda").empty()) {
    EXPECT_EQ(count, 0);
  }
}

TEST(AttentionPlan, ADecodingStepAllocatesNothing) {
  const tests::CountOfThread count;
  const std::vector<float> table = values(32 * kHeads), sinks = values(kHeads);
  TwoThreads two;
  tests::warm_up(two);
  const std::int64_t counted = tests::allocations;
  const auto one = std::make_unique<int>(1);
  const int* volatile const seen = one.get();       // volatile: or a compiler may leave the allocation out
  EXPECT_GT(tests::allocations, counted) << *seen;  // or nothing below says anything
  for (const std::string& target : simd_targets()) {
    SCOPED_TRACE(target);
    force_backend("cpu");
    force_simd_target(target);
    for (const Case& given : cases(table, sinks)) {
      for (const posenc::Run& run : {posenc::Run{.threads = 1}, posenc::Run{.threads = 2, .pool = two.pool()}}) {
        for (const std::int64_t first : {5, 2040}) {
          expect_no_allocation<float>(given, run, first, two);
          expect_no_allocation<BFloat16>(given, run, first, two);
          expect_no_allocation<Half>(given, run, first, two);
        }
      }
    }
  }
  force_backend("");
  force_simd_target("");
  RecordProperty("allocations_of_other_threads", std::to_string(tests::all_allocations - tests::allocations));
}

TEST(AttentionPlan, APromptAllocatesNothing) {
  const std::int64_t tokens = 200;
  const Heads<float> q = random_heads<float>(2, kHeads, tokens, kFeatures, 1),
                     k = random_heads<float>(2, kKeyHeads, tokens, kFeatures, 2);
  Heads<float> out(2, kHeads, tokens, kFeatures), want = out;
  const std::vector<float> table = values(32 * kHeads), sinks = values(kHeads);
  const tests::CountOfThread count;
  TwoThreads two;
  force_backend("cpu");
  tests::warm_up(two);
  for (const Case& given : cases(table, sinks)) {
    SCOPED_TRACE(given.name);
    AttentionOptions options = given.options;
    attention(want.view(), q.view(), k.view(), k.view(), options);
    const AttentionPlan plan = plan_attention({q.view(), k.view(), k.view()}, options);
    std::vector<std::byte> workspace(workspace_bytes(plan, 2));
    for (int round = 0; round < 2; ++round) {
      const std::int64_t before = tests::allocations;
      attention(plan, out.view(), q.view(), k.view(), k.view(),
                {.threads = 2, .workspace = workspace, .pool = two.pool()});
      if (round == 1) {
        EXPECT_EQ(tests::allocations - before, 0);
      }
      EXPECT_EQ(out.values, want.values);
    }
  }
  force_backend("");
}

TEST(AttentionPlan, SaysWhatDoesNotFit) {
  Heads<float> q(1, 2, 3, 8), k(1, 2, 5, 8), out = q, more(1, 2, 6, 8);
  const AttentionPlan plan = plan_attention({q.view(), k.view(), k.view()}, {});
  const auto refusal = [](const std::function<void()>& call) -> std::string {
    try {
      call();
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal([&] { attention(plan, out.view(), q.view(), more.view(), more.view()); }),
            "attention: the plan was made for k of type f32 and shape [1, 2, 5, 8], got f32 [1, 2, 6, 8]");
  std::vector<std::byte> workspace(workspace_bytes(plan, 1));
  EXPECT_EQ(refusal([&] {
              attention(plan, out.view(), q.view(), k.view(), k.view(), {.threads = 1, .workspace = workspace});
            }),
            "accepted");
  EXPECT_EQ(refusal([&] {
              attention(plan, out.view(), q.view(), k.view(), k.view(),
                        {.threads = 1, .workspace = std::span(workspace).first(workspace.size() - 1)});
            }),
            "attention: the workspace has " + std::to_string(workspace.size() - 1) + " bytes but 1 threads need " +
                std::to_string(workspace.size()));
  EXPECT_EQ(refusal([&] {
              plan_attention({q.view(), k.view(), q.view()}, {});
            }),
            "plan_attention: v has 3 tokens but k has 5");
  EXPECT_EQ(refusal([&] {
              plan_attention({on(Device::kCuda, ConstTensorView(q.view())), k.view(), k.view()}, {});
            }),
            "plan_attention: plans are for tensors on the host");
  AttentionPlan first = plan_attention({q.view(), k.view(), k.view()}, {});
  const AttentionPlan second = std::move(first);
  EXPECT_EQ(refusal([&] { attention(second, out.view(), q.view(), k.view(), k.view()); }), "accepted");
  // NOLINTBEGIN(bugprone-use-after-move): that it is refused is what is asked
  EXPECT_EQ(refusal([&] { attention(first, out.view(), q.view(), k.view(), k.view()); }),
            "attention: the plan was moved from");
  EXPECT_EQ(refusal([&] { static_cast<void>(workspace_bytes(first, 1)); }),
            "workspace_bytes: the plan was moved from");
  // NOLINTEND(bugprone-use-after-move)
}

}  // namespace
}  // namespace posenc::plan_test
