/* Numbers and devices that no program means: a status, one line that says which, and nothing computed. */
#include "checks.h"

int main(void) {
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {0};
  posenc_form* rope = prepared("{\"scheme\": \"rope\", \"dims\": 2}");

  /* a GPU that this build or machine does not have */
  char* backends = NULL;
  OK(posenc_backends(&backends));
  if (strstr(backends, "cuda") == NULL) {
    posenc_tensor there = tensor(x, kF32, 2, SHAPE(4, 2));
    there.device.type = 2;
    const posenc_query_key both = {&there, NULL};
    REFUSES(posenc_rotate(rope, both, both, NULL, NULL), POSENC_DEVICE, "on cuda, which cannot run here");
    const posenc_tensor out = tensor(y, kF32, 2, SHAPE(4, 2)), k = tensor(x, kF32, 2, SHAPE(4, 2));
    REFUSES(posenc_attention(&out, &there, &k, &k, NULL, NULL), POSENC_DEVICE, "attention: q is on cuda");
  }
  posenc_free(backends);

  /* pages that 32 bits do not hold: by their number, or as "or more", and never as another page */
  int64_t pages[] = {(int64_t)1 << 32, 0}, slots[2] = {-7, -7};
  const posenc_tensor row = tensor(pages, kI64, 1, SHAPE(2)), two = tensor(slots, kI64, 1, SHAPE(2));
  REFUSES(posenc_slots_of(&two, &row, 4, 3), POSENC_INVALID, "slots_of: one of the pages is 2147483647 or more");
  CHECK(slots[0] == -7 && slots[1] == -7);
  OK(posenc_slots_of(&two, &row, 4, 4)); /* both in page 0 */
  CHECK(slots[0] == 0 && slots[1] == 1);
  int64_t lengths[] = {2};
  const posenc_tensor out = tensor(y, kF32, 4, SHAPE(1, 1, 1, 2)), q = tensor(x, kF32, 4, SHAPE(1, 1, 1, 2)),
                      pool = tensor(x, kF32, 4, SHAPE(1, 1, 4, 2)), table = tensor(pages, kI64, 2, SHAPE(1, 1)),
                      length = tensor(lengths, kI64, 1, SHAPE(1));
  posenc_attention_options options = POSENC_INIT(posenc_attention_options);
  options.key_lengths = &length;
  options.block_table = &table;
  REFUSES(posenc_attention(&out, &q, &pool, &pool, &options, NULL), POSENC_INVALID,
          "block_table names page 2147483647 or more but there are 1");

  /* strides past the end of memory */
  posenc_tensor far = row;
  far.strides = SHAPE((int64_t)1 << 62);
  REFUSES(posenc_slots_of(&two, &far, 4, 0), POSENC_INVALID, "slots_of: pages has strides past the end of memory");
  posenc_tensor wide = tensor(x, kF32, 2, SHAPE(4, 2));
  wide.strides = SHAPE((int64_t)1 << 62, 1);
  const posenc_query_key both = {&wide, NULL};
  REFUSES(posenc_rotate(rope, both, both, NULL, NULL), POSENC_INVALID, "has strides past the end of memory");
  CHECK(y[0] == 0 && x[0] == 1);
  posenc_form_free(rope);
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
