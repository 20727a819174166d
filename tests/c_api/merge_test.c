/* Keys in two places, as a C11 program merges them. */
#include <math.h>

#include "checks.h"

enum { kHeads = 2, kQueries = 3, kKeys = 7, kFirst = 4, kD = 4, kRows = kHeads * kQueries };

static float q[kRows * kD], k[kHeads * kKeys * kD], v[kHeads * kKeys * kD];

/* Attention over some of the keys. */
static void attend(int first, int count, const posenc_tensor* out, const posenc_tensor* sums) {
  const posenc_tensor query = tensor(q, kF32, 3, SHAPE(kHeads, kQueries, kD));
  posenc_tensor keys = tensor(k + first * kD, kF32, 3, SHAPE(kHeads, count, kD)),
                values = tensor(v + first * kD, kF32, 3, SHAPE(kHeads, count, kD));
  keys.strides = values.strides = SHAPE(kKeys * kD, kD, 1);
  posenc_attention_options options = POSENC_INIT(posenc_attention_options);
  options.logsumexp = sums;
  OK(posenc_attention(out, &query, &keys, &values, &options, NULL));
}

int main(void) {
  for (int i = 0; i < kRows * kD; ++i) q[i] = sinf(0.7f * (float)i);
  for (int i = 0; i < kHeads * kKeys * kD; ++i) k[i] = cosf(0.3f * (float)i), v[i] = sinf((float)i);
  float whole[kRows * kD], out[kRows * kD], other[kRows * kD], whole_lse[kRows], lse[kRows], other_lse[kRows];
  int64_t* const shape = SHAPE(kHeads, kQueries, kD); /* of the sums without the last axis */
  const posenc_tensor expected = tensor(whole, kF32, 3, shape), expected_sums = tensor(whole_lse, kF32, 2, shape),
                      result = tensor(out, kF32, 3, shape), sums = tensor(lse, kF32, 2, shape),
                      part = tensor(other, kF32, 3, shape), part_sums = tensor(other_lse, kF32, 2, shape);
  attend(0, kKeys, &expected, &expected_sums);
  attend(0, kFirst, &result, &sums);
  attend(kFirst, kKeys - kFirst, &part, &part_sums);
  OK(posenc_merge(&result, &sums, &part, &part_sums, NULL));
  for (int i = 0; i < kRows * kD; ++i) CHECK(fabs(out[i] - whole[i]) < 4e-6);
  for (int i = 0; i < kRows; ++i) CHECK(fabs(lse[i] - whole_lse[i]) < 4e-6);

  /* a part in which no query has a key */
  memcpy(whole, out, sizeof out);
  for (int i = 0; i < kRows; ++i) other_lse[i] = -INFINITY;
  other[0] = NAN;
  OK(posenc_merge(&result, &sums, &part, &part_sums, NULL));
  CHECK(memcmp(whole, out, sizeof out) == 0);

  REFUSES(posenc_merge(&result, NULL, &part, &part_sums, NULL), POSENC_INVALID, "merge: logsumexp is missing");
  REFUSES(posenc_merge(&result, &sums, &result, &part_sums, NULL), POSENC_INVALID, "merge: out overlaps other");
  posenc_tensor elsewhere = part;
  elsewhere.device.type = 2;
  REFUSES(posenc_merge(&result, &sums, &elsewhere, &part_sums, NULL), POSENC_DEVICE, "merge: other must be in host");
  CHECK(memcmp(whole, out, sizeof out) == 0);
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
