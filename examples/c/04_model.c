/* How a model encodes position, from its config.json, as JSON; and a config that makes no sense. */
#include <stdio.h>
#include <string.h>

#include "posenc/posenc_c.h"

int main(void) {
  const char* config =
      "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 4, \"num_hidden_layers\": 2,"
      " \"max_position_embeddings\": 128, \"rope_theta\": 10000.0}";
  char* json = NULL;
  if (posenc_read_model(config, strlen(config), &json)) {
    fprintf(stderr, "%s\n", posenc_error());
    return 1;
  }
  const char* const layers = strstr(json, "\"scheme\":{");
  printf("%.*s\n", (int)(strchr(layers, ',') - layers), layers);
  posenc_free(json);
  if (posenc_read_model("{\"model_type\": \"lama\"}", 22, &json) == POSENC_INVALID) printf("%s\n", posenc_error());
  return 0;
}
/* prints:
"scheme":{"scheme":"rope"
model_type "lama" is unknown (did you mean 'llama'?)
*/
