/* RoPE in place on an array whose axes are [sequence, heads, features]: strides say so, nothing is copied. */
#include <stdio.h>

#include "posenc/posenc_c.h"

enum { kTokens = 2, kHeads = 2, kFeatures = 4 };

int main(void) {
  posenc_form* rope = NULL;
  if (posenc_prepare("{\"scheme\": \"rope\", \"dims\": 4, \"base\": 500000.0}", NULL, &rope)) goto failed;
  float q[kTokens][kHeads][kFeatures] = {{{1, 1, 0, 0}, {1, 1, 0, 0}}, {{1, 1, 0, 0}, {1, 1, 0, 0}}};
  posenc_tensor view = {.data = q,
                        .device = {1, 0},
                        .ndim = 3,
                        .dtype = {2, 32, 1},
                        .shape = (int64_t[]){kHeads, kTokens, kFeatures},
                        .strides = (int64_t[]){kFeatures, kHeads * kFeatures, 1}};
  posenc_positions positions = POSENC_INIT(posenc_positions);
  positions.first = 1;
  const posenc_query_key x = {&view, NULL};
  if (posenc_rotate(rope, x, x, &positions, NULL)) goto failed;
  for (int t = 0; t < kTokens; ++t) {
    for (int h = 0; h < kHeads; ++h) {
      printf("position %d, head %d: %6.3f %6.3f %6.3f %6.3f\n", t + 1, h, q[t][h][0], q[t][h][1], q[t][h][2],
             q[t][h][3]);
    }
  }
  posenc_form_free(rope);
  return 0;
failed:
  fprintf(stderr, "%s\n", posenc_error());
  posenc_form_free(rope);
  return 1;
}
/* prints:
position 1, head 0:  0.540  1.000  0.841  0.001
position 1, head 1:  0.540  1.000  0.841  0.001
position 2, head 0: -0.416  1.000  0.909  0.003
position 2, head 1: -0.416  1.000  0.909  0.003
*/
