// A cache of keys and values with more room than tokens: attention reads only the keys that queries may attend to.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "attention/oracle.h"
#include "backends.h"
#include "posenc/attention.h"
#include "posenc/backend.h"
#include "posenc/schemes/alibi.h"
#include "posenc/schemes/rope.h"

namespace posenc::cache_test {
namespace {

using tests::for_each_host_engine;

// Memory whose last byte is followed, or whose first is preceded, by a page that cannot be read.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes) : bytes_(bytes), page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    whole_ = (bytes + page_ - 1) / page_ * page_;
    base_ = static_cast<std::byte*>(mmap(nullptr, whole_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    EXPECT_EQ(mprotect(base_ + page_, whole_, PROT_READ | PROT_WRITE), 0);
  }
  ~GuardedMemory() { munmap(base_, whole_ + 2 * page_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  [[nodiscard]] std::byte* before_the_guard() const { return base_ + page_ + whole_ - bytes_; }
  [[nodiscard]] std::byte* behind_the_guard() const { return base_ + page_; }

 private:
  std::size_t bytes_, page_, whole_ = 0;
  std::byte* base_ = nullptr;
};

constexpr std::int64_t kFeatures = 16, kCapacity = 5000;

template <class T> std::vector<T> values_of(std::int64_t count, std::uint64_t seed) {
  return tests::random_heads<T>(1, 1, count, kFeatures, seed).values;
}

// What attention gives where only the keys that it may look at are readable is what it gives where those are all.
template <class T> void expect_only_these_are_read(std::int64_t queries, std::int64_t keys, const Form& position) {
  SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys, type " << sizeof(T));
  const GuardedMemory k_memory(static_cast<std::size_t>(keys * kFeatures) * sizeof(T)),
      v_memory(static_cast<std::size_t>(keys * kFeatures) * sizeof(T));
  const auto q = values_of<T>(queries, 1), k = values_of<T>(keys, 2), v = values_of<T>(keys, 3);
  std::memcpy(k_memory.before_the_guard(), k.data(), k.size() * sizeof(T));
  std::memcpy(v_memory.before_the_guard(), v.data(), v.size() * sizeof(T));
  const DataType type = data_type_of<T>();
  const ConstTensorView cache_k{k_memory.before_the_guard(), type, {1, 1, kCapacity, kFeatures}},
      cache_v{v_memory.before_the_guard(), type, {1, 1, kCapacity, kFeatures}};
  const std::vector<std::int64_t> query_lengths = {queries}, key_lengths = {keys};
  std::vector<T> expected(q.size()), got(q.size());
  const Extents q_shape = {1, 1, queries, kFeatures}, k_shape = {1, 1, keys, kFeatures};
  attention(view(expected.data(), q_shape), view(q.data(), q_shape), view(k.data(), k_shape), view(v.data(), k_shape),
            {.position = position, .causal = true});
  attention(view(got.data(), q_shape), view(q.data(), q_shape), cache_k, cache_v,
            {.position = position, .causal = true, .query_lengths = query_lengths, .key_lengths = key_lengths});
  EXPECT_EQ(std::memcmp(expected.data(), got.data(), got.size() * sizeof(T)), 0);
}

TEST(AttentionCache, KeysPastTheLengthAreNotRead) {
  const Form forms[] = {Nothing{}, prepare(Rope{.dims = kFeatures})};
  for_each_host_engine([&] {
    for (const Form& form : forms) {
      for (const std::int64_t queries : {1, 2, 40}) {
        for (const std::int64_t keys : {40, 64, 2050}) {
          expect_only_these_are_read<float>(queries, keys, form);
          expect_only_these_are_read<Half>(queries, keys, form);
          expect_only_these_are_read<BFloat16>(queries, keys, form);
        }
      }
    }
  });
}

// A window costs its window: keys before it are not read either.
template <class T> void expect_only_the_window_is_read(std::int64_t window) {
  const GuardedMemory k_memory(static_cast<std::size_t>(window * kFeatures) * sizeof(T)),
      v_memory(static_cast<std::size_t>(window * kFeatures) * sizeof(T));
  const auto q = values_of<T>(1, 1), k = values_of<T>(window, 2), v = values_of<T>(window, 3);
  std::memcpy(k_memory.behind_the_guard(), k.data(), k.size() * sizeof(T));
  std::memcpy(v_memory.behind_the_guard(), v.data(), v.size() * sizeof(T));
  const std::ptrdiff_t before = (kCapacity - window) * kFeatures * static_cast<std::ptrdiff_t>(sizeof(T));
  const DataType type = data_type_of<T>();
  const ConstTensorView cache_k{k_memory.behind_the_guard() - before, type, {1, 1, kCapacity, kFeatures}},
      cache_v{v_memory.behind_the_guard() - before, type, {1, 1, kCapacity, kFeatures}};
  const Extents q_shape = {1, 1, 1, kFeatures}, k_shape = {1, 1, window, kFeatures};
  std::vector<T> expected(q.size()), got(q.size());
  attention(view(expected.data(), q_shape), view(q.data(), q_shape), view(k.data(), k_shape),
            view(v.data(), k_shape));
  attention(view(got.data(), q_shape), view(q.data(), q_shape), cache_k, cache_v, {.causal = true, .window = window});
  const auto as_doubles = [](const std::vector<T>& row) {
    std::vector<double> doubles;
    for (const T x : row) doubles.push_back(static_cast<double>(numerics::widen(x)));
    return doubles;
  };
  const std::vector<double> want = as_doubles(expected), have = as_doubles(got);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(have[i], want[i], 1e-2 * (sizeof(T) == 4 ? 1e-4 : 1));
}

TEST(AttentionCache, KeysBeforeTheWindowAreNotRead) {
  for_each_host_engine([] {
    for (const std::int64_t window : {1, 63, 100, 2100}) {
      SCOPED_TRACE(window);
      expect_only_the_window_is_read<float>(window);
      expect_only_the_window_is_read<Half>(window);
      expect_only_the_window_is_read<BFloat16>(window);
    }
  });
}

// A cache, copied into the layouts that engines have: tokens before heads, and pages in no order, with heads inside a page
// or outside. Keys past the length are NaN, and pages that no token has do not exist.
template <class T> struct Layout {
  std::vector<T> k, v;
  std::vector<std::int32_t> table;
  Extents shape;
  bool is_token_major;

  Layout(const tests::Heads<T>& keys, const tests::Heads<T>& values, std::int64_t length, std::int64_t page,
         bool a_is_token_major)
      : shape{1, keys.heads, keys.tokens, keys.features}, is_token_major(a_is_token_major) {
    const std::int64_t pages = page == 0 ? 1 : (keys.tokens + page - 1) / page, size = page == 0 ? keys.tokens : page;
    shape = {pages, keys.heads, size, keys.features};
    for (std::int64_t i = 0; page != 0 && i < pages; ++i) {
      table.push_back(static_cast<std::int32_t>(i * page < length ? (i * 7 + 3) % pages : -1));
    }
    for (auto& [from, to] : {std::pair<const tests::Heads<T>&, std::vector<T>&>(keys, k), {values, v}}) {
      to.assign(static_cast<std::size_t>(count_of(shape)), numerics::narrow<T>(std::nan("")));
      for (std::int64_t h = 0; h < keys.heads; ++h) {
        for (std::int64_t t = 0; t < length; ++t) {
          const std::int64_t own = page == 0 ? 0 : table[static_cast<std::size_t>(t / size)], place = t % size;
          const std::int64_t row =
              is_token_major ? (own * size + place) * keys.heads + h : (own * keys.heads + h) * size + place;
          for (std::int64_t f = 0; f < keys.features; ++f) {
            to[static_cast<std::size_t>(row * keys.features + f)] = from.values[from.index(0, h, t, f)];
          }
        }
      }
    }
  }
  ConstTensorView view(const std::vector<T>& data) const {
    if (!is_token_major) return posenc::view(data.data(), shape);
    return swap_axes(posenc::view(data.data(), {shape[0], shape[2], shape[1], shape[3]}), 1, 2);
  }
};

// The same bytes from every layout, on any number of threads, with a plan or without. 37 pages are coprime to 7.
template <class T> void expect_same_from_layouts(std::int64_t group, std::int64_t queries, std::int64_t length,
                                                 AttentionOptions options) {
  constexpr std::int64_t kKeyHeads = 3, kKeys = 37 * 64, kD = 64;
  SCOPED_TRACE(testing::Message() << group << " heads a key head, " << queries << " queries, " << length << " keys");
  const auto q = tests::random_heads<T>(1, kKeyHeads * group, queries, kD, 1),
             k = tests::random_heads<T>(1, kKeyHeads, kKeys, kD, 2),
             v = tests::random_heads<T>(1, kKeyHeads, kKeys, kD, 3);
  const std::vector<std::int64_t> lengths = {length};
  options.key_lengths = lengths;
  tests::Heads<T> want(1, kKeyHeads * group, queries, kD), got = want;
  attention(want.view(), q.view(), k.view(), v.view(), options);
  for (const std::int64_t page : {0, 5, 16, 64}) {
    for (const bool is_token_major : {false, true}) {
      SCOPED_TRACE(testing::Message() << "pages of " << page << (is_token_major ? ", heads inside" : ""));
      const Layout<T> layout(k, v, length, page, is_token_major);
      AttentionOptions own = options;
      own.block_table = layout.table;
      const ConstTensorView cache_k = layout.view(layout.k), cache_v = layout.view(layout.v);
      for (const int threads : {1, 3}) {
        attention(got.view(), q.view(), cache_k, cache_v, own, {.threads = threads});
        EXPECT_EQ(std::memcmp(got.values.data(), want.values.data(), got.values.size() * sizeof(T)), 0);
      }
      const AttentionPlan plan = plan_attention({q.view(), cache_k, cache_v}, own);
      std::vector<std::byte> workspace(workspace_bytes(plan, 1));
      std::fill(got.values.begin(), got.values.end(), T{});
      attention(plan, got.view(), q.view(), cache_k, cache_v, {.threads = 1, .workspace = workspace});
      EXPECT_EQ(std::memcmp(got.values.data(), want.values.data(), got.values.size() * sizeof(T)), 0);
    }
  }
}

TEST(AttentionCache, EveryLayoutGivesTheSameBytes) {
  for_each_host_engine([&] {
    if (backend() == "reference") return;
    expect_same_from_layouts<float>(1, 1, 2200, {.causal = true});
    expect_same_from_layouts<float>(4, 1, 2050, {.causal = true, .window = 300});
    expect_same_from_layouts<Half>(2, 1, 2100, {.causal = true});
    expect_same_from_layouts<Half>(8, 1, 333, {.position = prepare(Alibi{.heads = 24}), .causal = true});
    expect_same_from_layouts<BFloat16>(1, 1, 2368, {.causal = true, .softcap = 5});
    expect_same_from_layouts<BFloat16>(4, 3, 2177, {.causal = true});
    expect_same_from_layouts<Half>(20, 1, 2090, {.causal = true});
    expect_same_from_layouts<float>(1, 3, 100, {.position = prepare(Rope{.dims = 64}), .causal = true});
    expect_same_from_layouts<float>(16, 4, 777, {.causal = true});
  });
}

}  // namespace
}  // namespace posenc::cache_test
