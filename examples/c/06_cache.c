/* Decoding: each key is rotated once, when it enters the cache; attention rotates each new query. */
#include <math.h>
#include <stdio.h>

#include "posenc/posenc_c.h"

enum { kRoom = 8, kFeatures = 4 };

static posenc_tensor rows(float* first, int64_t* shape) {
  const posenc_tensor made = {.data = first, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1}, .shape = shape};
  return made;
}

int main(void) {
  posenc_form* rope = NULL;
  if (posenc_prepare("{\"scheme\": \"rope\", \"dims\": 4}", NULL, &rope)) goto failed;
  float keys[kRoom][kFeatures], values[kRoom][kFeatures], query[kFeatures], result[kFeatures];
  for (int t = 0; t < 3; ++t) {
    for (int i = 0; i < kFeatures; ++i) {
      keys[t][i] = query[i] = cosf((float)(t + 2 * i));
      values[t][i] = (float)(t == i);
    }
    posenc_positions now = POSENC_INIT(posenc_positions);
    now.first = t;
    posenc_tensor key = rows(keys[t], (int64_t[]){1, kFeatures});
    const posenc_query_key one = {&key, NULL};
    if (posenc_rotate(rope, one, one, &now, NULL)) goto failed;
    posenc_tensor q = rows(query, (int64_t[]){1, kFeatures}), out = rows(result, (int64_t[]){1, kFeatures});
    posenc_tensor k = rows(keys[0], (int64_t[]){t + 1, kFeatures}),
                  v = rows(values[0], (int64_t[]){t + 1, kFeatures});
    posenc_attention_options options = POSENC_INIT(posenc_attention_options);
    options.position = rope;
    options.causal = 1;
    options.keys_are_rotated = 1;
    if (posenc_attention(&out, &q, &k, &v, &options, NULL)) goto failed;
    printf("token %d looks at 0, 1, 2 with weights %.3f %.3f %.3f\n", t, result[0], result[1], result[2]);
  }
  posenc_form_free(rope);
  return 0;
failed:
  fprintf(stderr, "%s\n", posenc_error());
  posenc_form_free(rope);
  return 1;
}
/* prints:
token 0 looks at 0, 1, 2 with weights 1.000 0.000 0.000
token 1 looks at 0, 1, 2 with weights 0.362 0.638 0.000
token 2 looks at 0, 1, 2 with weights 0.233 0.244 0.523
*/
