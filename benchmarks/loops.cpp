#include "benchmarks/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "benchmarks/loops.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "hwy/cache_control.h"

#ifndef POSENC_LOOPS_ONCE
#define POSENC_LOOPS_ONCE
namespace posenc::limits {

// How far ahead prefetched loops ask, in bytes: what src/kernels/cpu/fetch.h found best; from 8 to 128 KiB all do alike.
inline constexpr std::size_t kAhead = 32768;

// A compiler that knew that the addend or the factor is 0, or that nobody reads a sum, would leave the work out.
inline const volatile std::uint64_t kNoChange = 0;
inline const volatile float kNoFactor = 0;
inline volatile std::uint64_t unread_bits = 0;
inline volatile float unread_sum = 0;

}  // namespace posenc::limits
#endif

HWY_BEFORE_NAMESPACE();
namespace posenc::limits::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Integers: as floating point, the bits of another job's data might be denormal and slow.
using D = hn::CappedTag<std::uint64_t, 8>;
using V = hn::Vec<D>;
constexpr std::size_t kUnroll = 8;

enum class Store { kPlain, kStreaming };
enum class Fetch { kNone, kAhead, kFar };  // for no cache, the second, the third

// Calls step(pointer, words of a vector) for each kUnroll vectors. A store loop that is not unrolled does not reach the
// memory's speed.
template <Fetch kFetch, int kForWriting, class Step>
HWY_INLINE void each_step(std::span<std::byte> memory, const Step& step) {
  const std::size_t lanes = hn::Lanes(D()), words = kUnroll * lanes;
  auto* p = reinterpret_cast<std::uint64_t*>(memory.data());
  auto* const end = p + memory.size() / kLoopStep * (kLoopStep / sizeof(std::uint64_t));
  for (; p != end; p += words) {
    if constexpr (kFetch != Fetch::kNone) {
      const auto ahead = reinterpret_cast<std::uintptr_t>(p) + kAhead;
      for (std::size_t i = 0; i < words * sizeof(std::uint64_t); i += 64) {
        __builtin_prefetch(reinterpret_cast<const void*>(ahead + i), kForWriting, kFetch == Fetch::kFar ? 1 : 2);
      }
    }
    step(p, lanes);
  }
}

template <Store kStore> HWY_INLINE void put(V value, std::uint64_t* p) {
  if constexpr (kStore == Store::kStreaming) {
    hn::Stream(value, D(), p);
  } else {
    hn::Store(value, D(), p);
  }
}

template <Store kStore> HWY_INLINE void store(std::span<std::byte> memory) {
  const V value = hn::Set(D(), 0x3f0123453f89abcd);
  each_step<Fetch::kNone, 1>(memory, [&](std::uint64_t* p, std::size_t lanes) HWY_ATTR {
    for (std::size_t i = 0; i < kUnroll; ++i) put<kStore>(value, p + i * lanes);
  });
  hwy::FlushStream();
}

template <Fetch kFetch, Store kStore> HWY_INLINE void change(std::span<std::byte> memory) {
  const V addend = hn::Set(D(), kNoChange);
  each_step<kFetch, 1>(memory, [&](std::uint64_t* p, std::size_t lanes) HWY_ATTR {
    for (std::size_t i = 0; i < kUnroll; ++i) {
      put<kStore>(hn::Add(hn::Load(D(), p + i * lanes), addend), p + i * lanes);
    }
  });
  hwy::FlushStream();
}

template <Fetch kFetch> HWY_INLINE void read(std::span<std::byte> memory) {
  V s0 = hn::Zero(D()), s1 = s0, s2 = s0, s3 = s0;
  each_step<kFetch, 0>(memory, [&](const std::uint64_t* p, std::size_t lanes) HWY_ATTR {
    for (std::size_t i = 0; i < kUnroll; i += 4) {
      s0 = hn::Xor(s0, hn::Load(D(), p + i * lanes));
      s1 = hn::Xor(s1, hn::Load(D(), p + (i + 1) * lanes));
      s2 = hn::Xor(s2, hn::Load(D(), p + (i + 2) * lanes));
      s3 = hn::Xor(s3, hn::Load(D(), p + (i + 3) * lanes));
    }
  });
  unread_bits = hn::GetLane(hn::Xor(hn::Xor(s0, s1), hn::Xor(s2, s3)));
}

void store_plain(std::span<std::byte> memory) { store<Store::kPlain>(memory); }
void store_streaming(std::span<std::byte> memory) { store<Store::kStreaming>(memory); }
void change_plain(std::span<std::byte> memory) { change<Fetch::kNone, Store::kPlain>(memory); }
void change_prefetched(std::span<std::byte> memory) { change<Fetch::kAhead, Store::kPlain>(memory); }
void change_streaming(std::span<std::byte> memory) { change<Fetch::kAhead, Store::kStreaming>(memory); }
void read_plain(std::span<std::byte> memory) { read<Fetch::kNone>(memory); }
void read_prefetched(std::span<std::byte> memory) { read<Fetch::kAhead>(memory); }
void read_prefetched_far(std::span<std::byte> memory) { read<Fetch::kFar>(memory); }

// x += x · b in more registers than latency times pipes ask for: 4 × 4 on a Neoverse V1, 5 × 2 on x86-64 cores, which
// have 16 registers before AVX-512. The factor x matters: a chain through the sum alone is forwarded early on Neoverse
// cores, which gathers the chains on two of the four pipes and halves the speed (41.6 of 83.1 GFLOP/s, measured). The
// factor b is 0, so that x stays what it is.
#undef POSENC_SUMS
#undef POSENC_EACH
#define POSENC_LOWER(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define POSENC_UPPER(DO) DO(12) DO(13) DO(14) DO(15) DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23)
#if HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2
#define POSENC_SUMS 12
#define POSENC_EACH(DO) POSENC_LOWER(DO)
#else
#define POSENC_SUMS 24
#define POSENC_EACH(DO) POSENC_LOWER(DO) POSENC_UPPER(DO)
#endif
#define POSENC_START(i) auto x##i = hn::Iota(d, i);
#define POSENC_STEP(i) x##i = hn::MulAdd(x##i, b, x##i);
#define POSENC_END(i) sum = hn::Add(sum, x##i);
double multiply_add(std::int64_t rounds) {
  const hn::ScalableTag<float> d;
  const auto b = hn::Set(d, kNoFactor);
  POSENC_EACH(POSENC_START)
  for (std::int64_t i = 0; i < rounds; ++i) {
    POSENC_EACH(POSENC_STEP)
  }
  auto sum = hn::Zero(d);
  POSENC_EACH(POSENC_END)
  unread_sum = hn::GetLane(hn::SumOfLanes(d, sum));
  return 2.0 * POSENC_SUMS * static_cast<double>(rounds) * static_cast<double>(hn::Lanes(d));
}
#undef POSENC_LOWER
#undef POSENC_UPPER
#undef POSENC_START
#undef POSENC_STEP
#undef POSENC_END

}  // namespace posenc::limits::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::limits {

#define POSENC_LOOP(NAME) \
  HWY_EXPORT(NAME);       \
  void NAME(std::span<std::byte> memory) { HWY_DYNAMIC_DISPATCH(NAME)(memory); }
POSENC_LOOP(store_plain)
POSENC_LOOP(store_streaming)
POSENC_LOOP(change_plain)
POSENC_LOOP(change_prefetched)
POSENC_LOOP(change_streaming)
POSENC_LOOP(read_plain)
POSENC_LOOP(read_prefetched)
POSENC_LOOP(read_prefetched_far)
#undef POSENC_LOOP

HWY_EXPORT(multiply_add);
double multiply_add(std::int64_t rounds) { return HWY_DYNAMIC_DISPATCH(multiply_add)(rounds); }

}  // namespace posenc::limits
#endif
