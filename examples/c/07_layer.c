/* A layer of a model over a paged cache: the options of attention come from its config.json. */
#include <stdio.h>
#include <string.h>

#include "posenc/posenc_c.h"

enum { kFeatures = 4, kPage = 2, kPages = 3, kTokens = 5 };

int main(void) {
  const char* config =
      "{\"model_type\": \"mistral\", \"hidden_size\": 4, \"num_hidden_layers\": 1, \"num_attention_heads\": 1, "
      "\"head_dim\": 4, \"sliding_window\": 3, \"rope_theta\": 10000.0, \"max_position_embeddings\": 64}";
  posenc_layer* layer = NULL;
  if (posenc_layer_read(config, strlen(config), 0, NULL, &layer)) goto failed;
  posenc_attention_options options = *posenc_layer_attention(layer);
  printf("window %d, causal %d\n", (int)options.window, (int)options.causal);

  /* The pools of pages are [pages, heads, page size, features]; this sequence uses pages 2, 0 and 1. */
  float k_pool[kPages * kPage * kFeatures] = {0}, v_pool[kPages * kPage * kFeatures] = {0};
  int64_t pool[] = {kPages, 1, kPage, kFeatures}, one[] = {1, 1, 1, kFeatures};
  const posenc_device host = {1, 0};
  const posenc_dtype f32 = {2, 32, 1}, i32 = {0, 32, 1}, i64 = {0, 64, 1};
  posenc_tensor k_cache = {.data = k_pool, .device = host, .ndim = 4, .dtype = f32, .shape = pool}, v_cache = k_cache;
  v_cache.data = v_pool;
  int32_t pages[] = {2, 0, 1};
  int64_t length, slot, table_shape[] = {1, kPages}, single[] = {1};
  const posenc_tensor table = {.data = pages, .device = host, .ndim = 2, .dtype = i32, .shape = table_shape};
  const posenc_tensor lengths = {.data = &length, .device = host, .ndim = 1, .dtype = i64, .shape = single};
  const posenc_tensor slots = {.data = &slot, .device = host, .ndim = 1, .dtype = i64, .shape = single};
  options.keys_are_rotated = 1;
  options.key_lengths = &lengths;
  options.block_table = &table;

  for (int t = 0; t < kTokens; ++t) {
    float x[kFeatures] = {1, 0, 0.5F, 0}, y[kFeatures] = {(float)t, 0, 0, 1}, result[kFeatures];
    const posenc_tensor query = {.data = x, .device = host, .ndim = 4, .dtype = f32, .shape = one};
    posenc_tensor value = query, out = query;
    value.data = y;
    out.data = result;
    posenc_positions now = POSENC_INIT(posenc_positions);
    now.first = t;
    slot = pages[t / kPage] * kPage + t % kPage;
    length = t + 1;
    if (posenc_rotate_into(options.position, &k_cache, &slots, &query, &now, NULL)) goto failed;
    if (posenc_rotate_into(NULL, &v_cache, &slots, &value, NULL, NULL)) goto failed;
    if (posenc_attention(&out, &query, &k_cache, &v_cache, &options, NULL)) goto failed;
    printf("token %d: mean position seen %.3f\n", t, result[0]);
  }
  posenc_layer_free(layer);
  return 0;
failed:
  fprintf(stderr, "%s\n", posenc_error());
  posenc_layer_free(layer);
  return 1;
}
/* prints:
window 3, causal 1
token 0: mean position seen 0.000
token 1: mean position seen 0.571
token 2: mean position seen 1.272
token 3: mean position seen 2.272
token 4: mean position seen 3.272
*/
