/* Two sequences decode step by step: a plan made once, a workspace of the caller's, no allocation in a step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "posenc/posenc_c.h"

enum { kSequences = 2, kHeads = 2, kFeatures = 4, kPage = 2, kPages = 5, kRow = 2 };

static posenc_tensor tensor(void* data, posenc_dtype type, int ndim, int64_t* shape) {
  const posenc_tensor made = {.data = data, .device = {1, 0}, .ndim = ndim, .dtype = type, .shape = shape};
  return made;
}

int main(void) {
  const posenc_dtype f32 = {2, 32, 1}, i32 = {0, 32, 1}, i64 = {0, 64, 1};
  posenc_form* rope = NULL;
  posenc_plan* plan = NULL;
  posenc_run run = POSENC_INIT(posenc_run);
  if (posenc_prepare("{\"scheme\": \"rope\", \"dims\": 4}", NULL, &rope)) goto failed;

  /* pools of pages, [pages, heads, page size, features]; the plan reads pages and lengths as they are at each step */
  float k_pool[kPages * kHeads * kPage * kFeatures] = {0}, v_pool[kPages * kHeads * kPage * kFeatures] = {0};
  float x[kSequences][kHeads][kFeatures], y[kSequences][kHeads][kFeatures], result[kSequences][kHeads][kFeatures];
  int64_t pool[] = {kPages, kHeads, kPage, kFeatures}, tokens[] = {kSequences, kHeads, 1, kFeatures};
  int64_t table_shape[] = {kSequences, kRow}, one_each[] = {kSequences}, each_its[] = {kSequences, 1}, single[] = {1};
  int32_t pages[kSequences][kRow] = {{3, 0}, {1, 4}};
  int64_t lengths[kSequences] = {0, 0}, places[kSequences], ids[kSequences];
  const posenc_tensor k_cache = tensor(k_pool, f32, 4, pool), v_cache = tensor(v_pool, f32, 4, pool),
                      table = tensor(pages, i32, 2, table_shape), ends = tensor(lengths, i64, 1, one_each),
                      slots = tensor(places, i64, 1, one_each), where = tensor(ids, i64, 2, each_its),
                      query = tensor(x, f32, 4, tokens), value = tensor(y, f32, 4, tokens),
                      out = tensor(result, f32, 4, tokens);
  posenc_attention_options options = POSENC_INIT(posenc_attention_options);
  options.position = rope;
  options.causal = options.keys_are_rotated = 1;
  options.key_lengths = &ends;
  options.block_table = &table;
  posenc_attention_inputs like = POSENC_INIT(posenc_attention_inputs);
  like.q = &query, like.k = &k_cache, like.v = &v_cache;
  if (posenc_plan_attention(&like, &options, &plan)) goto failed;
  run.threads = 1;
  if (posenc_plan_workspace(plan, run.threads, &run.workspace_size)) goto failed;
  run.workspace = malloc(run.workspace_size);

  for (int t = 0; t < kPage * kRow; ++t) {
    for (int s = 0; s < kSequences; ++s) {
      for (int i = 0; i < kHeads * kFeatures; ++i) {
        x[s][i / kFeatures][i % kFeatures] = cosf((float)(t + i + s));
        y[s][i / kFeatures][i % kFeatures] = (float)t; /* so that the result is the mean position seen */
      }
      ids[s] = lengths[s]++;
      const posenc_tensor row = tensor(pages[s], i32, 1, &table_shape[1]), slot = tensor(&places[s], i64, 1, single);
      if (posenc_slots_of(&slot, &row, kPage, ids[s])) goto failed;
    }
    posenc_positions now = POSENC_INIT(posenc_positions);
    now.ids = &where;
    if (posenc_rotate_into(rope, &k_cache, &slots, &query, &now, &run)) goto failed;
    if (posenc_rotate_into(NULL, &v_cache, &slots, &value, NULL, &run)) goto failed;
    if (posenc_attention_planned(plan, &out, &query, &k_cache, &v_cache, &run)) goto failed;
    printf("token %d: mean position seen %.3f and %.3f\n", t, result[0][0][0], result[1][1][0]);
  }
  free(run.workspace);
  posenc_plan_free(plan);
  posenc_form_free(rope);
  return 0;
failed:
  fprintf(stderr, "%s\n", posenc_error());
  free(run.workspace);
  posenc_plan_free(plan);
  posenc_form_free(rope);
  return 1;
}
/* prints:
token 0: mean position seen 0.000 and 0.000
token 1: mean position seen 0.535 and 0.592
token 2: mean position seen 1.256 and 1.186
token 3: mean position seen 2.007 and 1.883
*/
