/* A cache of q8_0 as a C11 program has it: tensors whose elements are ggml's blocks. */
#include <math.h>

#include "checks.h"

enum { kHeads = 2, kKeyHeads = 1, kD = 64, kBlocks = kD / 32, kPage = 4, kPages = 2, kTokens = 3 };

typedef struct {
  uint16_t scale; /* f16 */
  int8_t values[32];
} Block;
_Static_assert(sizeof(Block) == 34, "a block of ggml's q8_0");

static Block k_pool[kPages][kPage][kKeyHeads][kBlocks], v_pool[kPages][kPage][kKeyHeads][kBlocks];

static double number(uint16_t half) { /* positive and not tiny */
  return ldexp(1024 + (half & 1023), (half >> 10) - 25);
}

/* [pages, heads, page size, blocks], heads after tokens in memory; strides are in blocks. */
static posenc_tensor pool_of(void* pool) {
  static int64_t shape[] = {kPages, kKeyHeads, kPage, kBlocks},
                 strides[] = {kPage * kKeyHeads * kBlocks, kBlocks, kKeyHeads * kBlocks, 1};
  posenc_tensor made = tensor(pool, (posenc_dtype){1, 8, 34}, 4, shape);
  made.strides = strides;
  return made;
}

int main(void) {
  static float k[kTokens][kD], v[kTokens][kD], q[kHeads][kD], out[kHeads][kD];
  for (int i = 0; i < kTokens * kD; ++i) (&k[0][0])[i] = sinf(0.7f * (float)i), (&v[0][0])[i] = cosf(0.3f * (float)i);
  for (int i = 0; i < kHeads * kD; ++i) (&q[0][0])[i] = sinf(0.2f * (float)i);
  const posenc_tensor k_cache = pool_of(k_pool), v_cache = pool_of(v_pool),
                      keys = tensor(k, kF32, 3, SHAPE(kKeyHeads, kTokens, kD)),
                      values = tensor(v, kF32, 3, SHAPE(kKeyHeads, kTokens, kD));
  int64_t places[] = {4, 5, 7}, pages[] = {1}, ends[] = {4};
  const posenc_tensor slots = tensor(places, kI64, 1, SHAPE(kTokens));
  OK(posenc_rotate_into(NULL, &k_cache, &slots, &keys, NULL, NULL));
  OK(posenc_rotate_into(NULL, &v_cache, &slots, &values, NULL, NULL));
  OK(posenc_copy_slots(&k_cache, &(posenc_tensor){places + 2, {1, 0}, 1, kI64, SHAPE(1), NULL, 0},
                       &(posenc_tensor){places + 1, {1, 0}, 1, kI64, SHAPE(1), NULL, 0}, NULL));
  CHECK(memcmp(k_pool[1][3], k_pool[1][1], sizeof k_pool[1][3]) == 0);
  for (int i = 0; i < kD; ++i) {
    const Block* const block = &v_pool[1][0][0][i / 32];
    CHECK(fabs(number(block->scale) * block->values[i % 32] - (double)v[0][i]) < 1.0 / 225);
  }
  for (size_t i = 0; i < sizeof k_pool[0]; ++i) CHECK(((const char*)k_pool)[i] == 0);

  /* the first two tokens */
  ends[0] = 2;
  const posenc_tensor table = tensor(pages, kI64, 2, SHAPE(1, 1)), lengths = tensor(ends, kI64, 1, SHAPE(1)),
                      queries = tensor(q, kF32, 4, SHAPE(1, kHeads, 1, kD)),
                      result = tensor(out, kF32, 4, SHAPE(1, kHeads, 1, kD));
  posenc_attention_options options = POSENC_INIT(posenc_attention_options);
  options.block_table = &table;
  options.key_lengths = &lengths;
  OK(posenc_attention(&result, &queries, &k_cache, &v_cache, &options, NULL));
  for (int h = 0; h < kHeads; ++h) {
    double weights[2] = {0, 0};
    for (int t = 0; t < 2; ++t) {
      for (int f = 0; f < kD; ++f) {
        const Block* const block = &k_pool[1][t][0][f / 32];
        weights[t] += (double)q[h][f] * number(block->scale) * block->values[f % 32];
      }
      weights[t] = exp(weights[t] / 8);
    }
    for (int f = 0; f < kD; ++f) {
      double want = 0;
      for (int t = 0; t < 2; ++t) {
        const Block* const block = &v_pool[1][t][0][f / 32];
        want += weights[t] / (weights[0] + weights[1]) * number(block->scale) * block->values[f % 32];
      }
      CHECK(fabs((double)out[h][f] - want) < 2e-6);
    }
  }

  posenc_tensor odd = v_cache;
  odd.byte_offset = 1;
  REFUSES(posenc_rotate_into(NULL, &odd, &slots, &values, NULL, NULL), POSENC_INVALID,
          "the cache is not aligned: its first element must be at a multiple of 2 bytes");
  odd = v_cache;
  odd.dtype.lanes = 33;
  REFUSES(posenc_rotate_into(NULL, &odd, &slots, &values, NULL, NULL), POSENC_UNSUPPORTED, "33 lanes");
  odd = v_cache;
  odd.strides = SHAPE(INT64_MAX / 2, kBlocks, kBlocks, 1);
  REFUSES(posenc_rotate_into(NULL, &odd, &slots, &values, NULL, NULL), POSENC_INVALID,
          "the cache has blocks past the end of memory");
  posenc_form* const rope = prepared("{\"scheme\": \"rope\", \"dims\": 64}");
  REFUSES(posenc_shift_slots(rope, &k_cache, &slots, 100, NULL), POSENC_INVALID,
          "shift: keys of q8_0 would be rounded to 8 bits again by each shift");
  const posenc_query_key one = {&k_cache, NULL};
  REFUSES(posenc_rotate(rope, one, one, NULL, NULL), POSENC_INVALID, "must be f32, f64, f16 or bf16 but is q8_0");
  posenc_form_free(rope);
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
