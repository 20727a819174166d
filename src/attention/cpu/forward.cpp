// The forward pass of FlashAttention (Dao et al., 2022; the loop order of FlashAttention-2, Dao, 2023) on a CPU, with
// position inside. One thread owns a query block. For each key block j it computes the tile of scores S = scale · Q
// K_jᵀ + bias, updates the online softmax (row_max is m, row_sum is l), rescales the output accumulator by 2^(m_old −
// m_new), adds P V_j, and drops the tile. At the end, O = accumulator / l and logsumexp = m + log l. Scores are in
// units of log 2, so that softmax needs only 2^x. Q and K are rotated as they are loaded; key blocks that no query of
// the block attends to are skipped; only tiles that the edge of a mask crosses are masked. Products are f32, or bf16
// by a matrix unit if there is one and the tensors are 16-bit.

#include "attention/cpu/tiles.h"
#include "kernels/cpu/parallel.h"
#include "posenc/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/forward.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// after foreach_target.h, so that they are compiled for each target
#include "attention/cpu/loop-inl.h"
#include "attention/cpu/products/f32-inl.h"
#include "kernels/cpu/native_16-inl.h"

#undef POSENC_MATRIX_PRODUCTS
#if POSENC_NATIVE_16
#include "attention/cpu/products/bfmmla-inl.h"
#define POSENC_MATRIX_PRODUCTS BfmmlaProducts
#elif HWY_TARGET == HWY_AVX3 && defined(__linux__) && !defined(__clang__)
#include "attention/cpu/products/amx-inl.h"
#define POSENC_MATRIX_PRODUCTS AmxProducts
#else
#define POSENC_MATRIX_PRODUCTS F32Products
#endif

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

// Calls visit(type) with the type of the products for this job.
template <class Visit> auto with_products(const AttentionJob& job, const ScoreBias& bias, const Visit& visit) {
  if (POSENC_MATRIX_PRODUCTS::takes(job, bias)) return visit(std::type_identity<POSENC_MATRIX_PRODUCTS>());
  return visit(std::type_identity<F32Products>());
}

void blocks(const AttentionJob& job, const ScoreBias& bias, std::int64_t begin, std::int64_t end) {
  with_products(job, bias, [&]<class Products>(std::type_identity<Products>) {
    attend_blocks<Products>(job, bias, begin, end);
  });
}
std::int64_t queries_of(const AttentionJob& job, const ScoreBias& bias) {
  return with_products(job, bias,
                       [&]<class Products>(std::type_identity<Products>) { return Products::sizes_of(job).queries; });
}
void take_memory(const AttentionJob& job, const ScoreBias& bias) {
  with_products(job, bias,
                [&]<class Products>(std::type_identity<Products>) { take_block_memory<Products>(job, bias); });
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::attend::cpu {

HWY_EXPORT(blocks);
HWY_EXPORT(queries_of);
HWY_EXPORT(take_memory);

void attend_by_blocks(const AttentionJob& job, const ScoreBias& bias) {
  const std::int64_t queries = HWY_DYNAMIC_DISPATCH(queries_of)(job, bias);
  const std::int64_t per_head = (job.q.sequence + queries - 1) / queries;
  // If there are enough heads for all threads, each thread should keep the packed keys of one head.
  const bool has_many = job.q.batch * job.q.heads / job.group >= 4 * std::int64_t{threads()};
  const std::int64_t grain = has_many && size_of(job.out.type) == 2 ? per_head * job.group : 1;
  kernels::cpu::parallel_for(job.q.batch * job.q.heads * per_head, grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(blocks)(job, bias, begin, end);
  });
}

void count_blocks(const AttentionJob& job, const ScoreBias& bias) {
  kernels::cpu::parallel_for(1, 1, [&](std::int64_t, std::int64_t) { HWY_DYNAMIC_DISPATCH(take_memory)(job, bias); });
}

}  // namespace posenc::attend::cpu
#endif
