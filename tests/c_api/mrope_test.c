/* The positions of text and images, as a C11 program asks for them; and a mask of bytes. */
#include "checks.h"

static void test_positions(void) {
  posenc_mrope_piece pieces[3] = {{0}};
  for (int i = 0; i < 3; ++i) pieces[i].size = sizeof pieces[0];
  pieces[0].text = 2;
  pieces[1].frames = 1;
  pieces[1].rows = 4;
  pieces[1].columns = 6;
  pieces[2].text = 2;
  int64_t tokens = 0, next = 0, ids[3][10];
  OK(posenc_mrope_positions(NULL, pieces, 3, NULL, &tokens, &next));
  CHECK(tokens == 10 && next == 7); /* 2 x 3 tokens of the image; text goes on past its longer side */
  const posenc_tensor out = tensor(ids, kI64, 2, SHAPE(3, 10));
  OK(posenc_mrope_positions(&out, pieces, 3, NULL, NULL, NULL));
  const int64_t want[3][10] = {
      {0, 1, 2, 2, 2, 2, 2, 2, 5, 6}, {0, 1, 2, 2, 2, 3, 3, 3, 5, 6}, {0, 1, 2, 3, 4, 2, 3, 4, 5, 6}};
  CHECK(memcmp(ids, want, sizeof ids) == 0);

  posenc_mrope_options options = POSENC_INIT(posenc_mrope_options);
  options.first = 100;
  options.merge = 1;
  OK(posenc_mrope_positions(NULL, pieces, 3, &options, &tokens, &next));
  CHECK(tokens == 28 && next == 110);
  OK(posenc_mrope_positions(NULL, NULL, 0, NULL, &tokens, &next));
  CHECK(tokens == 0 && next == 0);

  REFUSES(posenc_mrope_positions(&out, pieces, 2, NULL, NULL, NULL), POSENC_INVALID,
          "mrope_positions: out must be dense i64 of shape [3, 8]");
  REFUSES(posenc_mrope_positions(&out, NULL, 2, NULL, NULL, NULL), POSENC_INVALID, "pieces is missing");
  pieces[1].rows = 5;
  REFUSES(posenc_mrope_positions(&out, pieces, 3, NULL, NULL, NULL), POSENC_INVALID, "must be multiples of merge, 2");
  pieces[1].size = 0;
  REFUSES(posenc_mrope_positions(&out, pieces, 3, NULL, NULL, NULL), POSENC_INVALID, "posenc_mrope_piece");
}

/* A mask of bytes is one of bools; other tensors of bytes are refused. */
static void test_bytes(void) {
  static float q[2][4], k[3][4], out[2][4], want[2][4];
  for (int i = 0; i < 12; ++i) (&k[0][0])[i] = (float)(i % 5) - 2;
  for (int i = 0; i < 8; ++i) (&q[0][0])[i] = (float)(i % 3);
  uint8_t seen[2][3] = {{1, 0, 7}, {0, 255, 0}};
  const posenc_dtype kByte = {1, 8, 1};
  posenc_tensor mask = tensor(seen, kBool, 2, SHAPE(2, 3));
  const posenc_tensor queries = tensor(q, kF32, 2, SHAPE(2, 4)), keys = tensor(k, kF32, 2, SHAPE(3, 4)),
                      result = tensor(out, kF32, 2, SHAPE(2, 4)), expected = tensor(want, kF32, 2, SHAPE(2, 4));
  posenc_attention_options options = POSENC_INIT(posenc_attention_options);
  options.mask = &mask;
  OK(posenc_attention(&expected, &queries, &keys, &keys, &options, NULL));
  mask.dtype = kByte;
  OK(posenc_attention(&result, &queries, &keys, &keys, &options, NULL));
  CHECK(memcmp(out, want, sizeof out) == 0);
  options.mask = NULL;
  posenc_tensor bytes = queries;
  bytes.dtype = kByte;
  REFUSES(posenc_attention(&result, &bytes, &keys, &keys, &options, NULL), POSENC_UNSUPPORTED, "q has elements");
}

int main(void) {
  test_positions();
  test_bytes();
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
