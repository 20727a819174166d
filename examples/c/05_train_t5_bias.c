/* A T5 bias that learns: 200 steps of gradient descent on its table, until the bias is that of another table. The form
 * reads the table where it is, so a step of training prepares nothing anew. */
#include <math.h>
#include <stdio.h>

#include "posenc/posenc_c.h"

enum { kBuckets = 8, kHeads = 2, kTokens = 16 };
static float table[kBuckets][kHeads], wanted[kBuckets][kHeads], gradient[kBuckets][kHeads];
static float bias[kHeads][kTokens][kTokens], target[kHeads][kTokens][kTokens];

int main(void) {
  for (int i = 0; i < kBuckets * kHeads; ++i) (&wanted[0][0])[i] = sinf((float)i);
  posenc_tensor rows = {
      .data = table, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1}, .shape = (int64_t[]){kBuckets, kHeads}};
  posenc_tensor other = rows, d_rows = rows;
  other.data = wanted, d_rows.data = gradient;
  posenc_tensor out = {
      .data = bias, .device = {1, 0}, .ndim = 3, .dtype = {2, 32, 1}, .shape = (int64_t[]){kHeads, kTokens, kTokens}};
  posenc_tensor goal = out;
  goal.data = target;
  const char* const scheme = "{\"scheme\": \"t5\", \"heads\": 2, \"buckets\": 8, \"max_distance\": 12}";
  posenc_form *form = NULL, *teacher = NULL;
  posenc_prepare_options options = POSENC_INIT(posenc_prepare_options);
  options.weights = &rows;
  if (posenc_prepare(scheme, &options, &form) || posenc_form_bind(form, &other, NULL, &teacher)) goto failed;
  if (posenc_bias(teacher, &goal, NULL, NULL, NULL)) goto failed;
  for (int step = 0; step <= 200; ++step) {
    if (posenc_bias(form, &out, NULL, NULL, NULL)) goto failed;
    double loss = 0;
    for (int i = 0; i < kHeads * kTokens * kTokens; ++i) {
      float* const at = &bias[0][0][0] + i;
      *at -= (&target[0][0][0])[i]; /* from here on the gradient of half the squared difference */
      loss += *at * *at;
    }
    for (int i = 0; i < kBuckets * kHeads; ++i) (&gradient[0][0])[i] = 0;
    if (posenc_bias_backward(form, &d_rows, &out, NULL, NULL, NULL)) goto failed;
    for (int i = 0; i < kBuckets * kHeads; ++i) (&table[0][0])[i] -= 0.01f * (&gradient[0][0])[i];
    if (step % 100 == 0) printf("step %3d: loss %.3g\n", step, loss < 1e-4 ? 0.0 : loss);
  }
  posenc_form_free(form);
  posenc_form_free(teacher);
  return 0;
failed:
  fprintf(stderr, "%s\n", posenc_error());
  return 1;
}
/* prints:
step   0: loss 246
step 100: loss 0
step 200: loss 0
*/
