/* Causal attention with ALiBi: the bias is added as scores are made, so no n × n array exists unless it is asked for. */
#include <stdio.h>

#include "posenc/posenc_c.h"

enum { kTokens = 3 };

int main(void) {
  posenc_form* alibi = NULL;
  if (posenc_prepare("{\"scheme\": \"alibi\", \"heads\": 1}", NULL, &alibi)) goto failed;
  float q[kTokens][2] = {{0}}, v[kTokens][1] = {{1}, {2}, {3}}, out[kTokens][1], weights[kTokens][kTokens];
  posenc_tensor query = {
      .data = q, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1}, .shape = (int64_t[]){kTokens, 2}};
  posenc_tensor value = query, result = query, shares = query;
  value.data = v, value.shape = (int64_t[]){kTokens, 1};
  result.data = out, result.shape = value.shape;
  shares.data = weights, shares.shape = (int64_t[]){kTokens, kTokens};
  posenc_attention_options options = POSENC_INIT(posenc_attention_options);
  options.position = alibi;
  options.causal = 1;
  options.weights = &shares;
  if (posenc_attention(&result, &query, &query, &value, &options, NULL)) goto failed;
  for (int i = 0; i < kTokens; ++i) {
    printf("query %d: weights %.4f %.4f %.4f, result %.4f\n", i, weights[i][0], weights[i][1], weights[i][2],
           out[i][0]);
  }
  posenc_form_free(alibi);
  return 0;
failed:
  fprintf(stderr, "%s\n", posenc_error());
  posenc_form_free(alibi);
  return 1;
}
/* prints:
query 0: weights 1.0000 0.0000 0.0000, result 1.0000
query 1: weights 0.4990 0.5010 0.0000, result 1.5010
query 2: weights 0.3320 0.3333 0.3346, result 2.0026
*/
