/* A table of sinusoids: position 0, 1, 2 … in rows. */
#include <stdio.h>

#include "posenc/posenc_c.h"

int main(void) {
  posenc_form* form = NULL;
  if (posenc_prepare("{\"scheme\": \"sinusoidal\", \"width\": 4}", NULL, &form)) {
    fprintf(stderr, "%s\n", posenc_error());
    return 1;
  }
  float table[3][4];
  posenc_tensor out = {.data = table, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1}, .shape = (int64_t[]){3, 4}};
  const int status = posenc_tabulate(form, &out, NULL, NULL, NULL);
  posenc_form_free(form);
  if (status) {
    fprintf(stderr, "%s\n", posenc_error());
    return 1;
  }
  for (int p = 0; p < 3; ++p)
    printf("%d  %6.3f %6.3f %6.3f %6.3f\n", p, table[p][0], table[p][1], table[p][2], table[p][3]);
  return 0;
}
/* prints:
0   0.000  1.000  0.000  1.000
1   0.841  0.540  0.010  1.000
2   0.909 -0.416  0.020  1.000
*/
