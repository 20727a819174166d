/* The C API as a C11 program meets it: every function, every status, two threads. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "checks.h"
#include "dlpack_layout.h"

_Static_assert(sizeof(posenc_tensor) == sizeof(DLTensor), "the size of DLTensor");
_Static_assert(offsetof(posenc_tensor, data) == offsetof(DLTensor, data), "data");
_Static_assert(offsetof(posenc_tensor, device) == offsetof(DLTensor, device), "device");
_Static_assert(offsetof(posenc_tensor, ndim) == offsetof(DLTensor, ndim), "ndim");
_Static_assert(offsetof(posenc_tensor, dtype) == offsetof(DLTensor, dtype), "dtype");
_Static_assert(offsetof(posenc_tensor, shape) == offsetof(DLTensor, shape), "shape");
_Static_assert(offsetof(posenc_tensor, strides) == offsetof(DLTensor, strides), "strides");
_Static_assert(offsetof(posenc_tensor, byte_offset) == offsetof(DLTensor, byte_offset), "byte_offset");
_Static_assert(offsetof(posenc_device, id) == offsetof(DLDevice, device_id), "device id");
_Static_assert(offsetof(posenc_dtype, bits) == offsetof(DLDataType, bits), "bits");
_Static_assert(offsetof(posenc_dtype, lanes) == offsetof(DLDataType, lanes), "lanes");

static void test_library(void) {
  char* text = NULL;
  CHECK(posenc_abi() == POSENC_C_ABI);
  CHECK(strlen(posenc_version()) >= 5);
  OK(posenc_schemes(&text));
  CHECK(text_has(text, "\"name\":\"rope\""));
  OK(posenc_backends(&text));
  CHECK(text_has(text, "\"backend\":\"reference\",\"can_run\":true"));
  OK(posenc_force_backend("reference"));
  OK(posenc_backend(&text));
  CHECK(text_has(text, "reference"));
  OK(posenc_force_backend(""));
  REFUSES(posenc_force_backend("abacus"), POSENC_INVALID, "abacus");
  int count = 0;
  OK(posenc_set_threads(3));
  OK(posenc_threads(&count));
  CHECK(count == 3);
  OK(posenc_set_threads(0));
  REFUSES(posenc_set_threads(-1), POSENC_INVALID, "-1");
  REFUSES(posenc_schemes(NULL), POSENC_INVALID, "NULL");
  OK(posenc_scheme_json("alibi", &text));
  CHECK(text_has(text, "{\"scheme\":\"alibi\""));
  OK(posenc_scheme_json("{\"scheme\": \"rope\", \"dims\": 8}", &text));
  CHECK(text_has(text, "\"dims\":8,\"base\":10000"));
  REFUSES(posenc_scheme_json("rop", &text), POSENC_INVALID, "rope");
  posenc_free(NULL);
  posenc_form_free(NULL);
}

/* Of ABI 1, on machines of 64 bits: fields keep their place, and new ones come after them. */
static const struct {
  const char* name;
  size_t here, published;
} kFields[] = {
    {"position", offsetof(posenc_attention_options, position), 8},
    {"causal", offsetof(posenc_attention_options, causal), 16},
    {"keys_are_rotated", offsetof(posenc_attention_options, keys_are_rotated), 20},
    {"window", offsetof(posenc_attention_options, window), 24},
    {"scale", offsetof(posenc_attention_options, scale), 32},
    {"query_positions", offsetof(posenc_attention_options, query_positions), 40},
    {"key_positions", offsetof(posenc_attention_options, key_positions), 48},
    {"query_lengths", offsetof(posenc_attention_options, query_lengths), 56},
    {"key_lengths", offsetof(posenc_attention_options, key_lengths), 64},
    {"packed", offsetof(posenc_attention_options, packed), 72},
    {"packed_keys", offsetof(posenc_attention_options, packed_keys), 80},
    {"key_mask", offsetof(posenc_attention_options, key_mask), 88},
    {"weights", offsetof(posenc_attention_options, weights), 96},
    {"logsumexp", offsetof(posenc_attention_options, logsumexp), 104},
    {"chunk", offsetof(posenc_attention_options, chunk), 112},
    {"softcap", offsetof(posenc_attention_options, softcap), 120},
    {"temperature", offsetof(posenc_attention_options, temperature), 128},
    {"sinks", offsetof(posenc_attention_options, sinks), 136},
    {"mask", offsetof(posenc_attention_options, mask), 144},
    {"repeatable", offsetof(posenc_attention_options, repeatable), 152},
    {"position_queries", offsetof(posenc_attention_options, position_queries), 160},
    {"log_gates", offsetof(posenc_attention_options, log_gates), 168},
    {"rounds_rotated", offsetof(posenc_attention_options, rounds_rotated), 176},
    {"block_table", offsetof(posenc_attention_options, block_table), 184},
    {"spans", offsetof(posenc_attention_options, spans), 192},
};
static void test_option_fields(void) {
  size_t count = 0;
  const posenc_field* const fields = posenc_attention_fields(&count);
  const size_t published = sizeof kFields / sizeof kFields[0];
  CHECK(count >= published && posenc_attention_fields(NULL) == fields);
  CHECK(sizeof(void*) != 8 || sizeof(posenc_attention_options) >= 200);
  for (size_t i = 0; i < published && i < count; ++i) {
    CHECK(strcmp(fields[i].name, kFields[i].name) == 0);
    CHECK(fields[i].offset == kFields[i].here && strlen(fields[i].help) > 0);
    CHECK(sizeof(void*) != 8 || kFields[i].here == kFields[i].published);
  }
  CHECK(fields[0].kind == POSENC_FIELD_FORM && fields[1].kind == POSENC_FIELD_FLAG);
  CHECK(fields[3].kind == POSENC_FIELD_INTEGER && fields[4].kind == POSENC_FIELD_OPTIONAL_NUMBER);
  CHECK(fields[12].kind == POSENC_FIELD_OUTPUT && fields[20].kind == POSENC_FIELD_TOKENS);
}

/* angle = position, since the frequency of the first pair is 1 */
static void test_rotate(void) {
  posenc_form* rope = prepared("{\"scheme\": \"rope\", \"dims\": 2}");
  float x[6] = {1, 0, 1, 0, 1, 0}, y[6];
  const posenc_tensor view = tensor(x, kF32, 2, SHAPE(3, 2)), out = tensor(y, kF32, 2, SHAPE(3, 2));
  posenc_positions from = POSENC_INIT(posenc_positions);
  from.first = 5;
  OK(posenc_rotate(rope, (posenc_query_key){&out, NULL}, (posenc_query_key){&view, NULL}, &from, NULL));
  for (int i = 0; i < 3; ++i) {
    CHECK(fabs(y[2 * i] - cos(5 + i)) < 1e-6 && fabs(y[2 * i + 1] - sin(5 + i)) < 1e-6);
  }
  CHECK(x[0] == 1 && x[1] == 0);
  OK(posenc_rotate_backward(rope, (posenc_query_key){&out, NULL}, &from, NULL));
  for (int i = 0; i < 3; ++i) CHECK(fabs(y[2 * i] - 1) < 1e-6 && fabs(y[2 * i + 1]) < 1e-6);

  /* ids, in two types and every second one of four */
  int64_t wide[4] = {7, -1, 9, -1};
  int32_t narrow[2] = {7, 9};
  posenc_tensor strided = tensor(wide, kI64, 1, SHAPE(2));
  strided.strides = SHAPE(2);
  const posenc_tensor small = tensor(narrow, kI32, 1, SHAPE(2));
  const posenc_tensor* lists[2] = {&strided, &small};
  for (int i = 0; i < 2; ++i) {
    float z[4] = {1, 0, 1, 0};
    const posenc_tensor two = tensor(z, kF32, 2, SHAPE(2, 2));
    posenc_positions ids = POSENC_INIT(posenc_positions);
    ids.ids = lists[i];
    OK(posenc_rotate(rope, (posenc_query_key){&two, NULL}, (posenc_query_key){&two, NULL}, &ids, NULL));
    CHECK(fabs(z[0] - cos(7)) < 1e-6 && fabs(z[2] - cos(9)) < 1e-6);
  }

  /* queries and keys in one pass; the adjoint, the inverse and the form of keys */
  float q[4] = {1, 2, 3, 4}, k[2] = {1, 0};
  const posenc_tensor queries = tensor(q, kF32, 3, SHAPE(2, 1, 2)), keys = tensor(k, kF32, 3, SHAPE(1, 1, 2));
  OK(posenc_rotate(rope, (posenc_query_key){&queries, &keys}, (posenc_query_key){&queries, &keys}, &from, NULL));
  CHECK(fabs(k[0] - cos(5)) < 1e-6);
  REFUSES(posenc_rotate(rope, (posenc_query_key){&queries, NULL}, (posenc_query_key){&queries, &keys}, &from, NULL),
          POSENC_INVALID, "keys");
  OK(posenc_rotate_backward(rope, (posenc_query_key){&queries, &keys}, &from, NULL));
  CHECK(fabs(k[0] - 1) < 1e-6 && fabs(q[3] - 4) < 1e-5);
  posenc_form *adjoint = NULL, *inverse = NULL, *for_keys = NULL;
  OK(posenc_form_adjoint(rope, &adjoint));
  OK(posenc_form_inverse(rope, &inverse));
  OK(posenc_form_for_keys(rope, &for_keys));
  REFUSES(posenc_form_bind(adjoint, NULL, NULL, &for_keys), POSENC_INVALID, "bind");

  /* some heads of a bias */
  posenc_form *alibi = prepared("{\"scheme\": \"alibi\", \"heads\": 4}"), *heads = NULL;
  OK(posenc_form_slice_heads(alibi, 1, 2, &heads));
  char* facts = NULL;
  OK(posenc_form_json(heads, &facts));
  CHECK(strstr(facts, "\"heads\":2") != NULL);
  posenc_free(facts);
  posenc_form_free(heads);
  heads = NULL;
  REFUSES(posenc_form_slice_heads(alibi, 3, 2, &heads), POSENC_INVALID, "slice_heads");
  posenc_form_free(alibi);

  /* another base, for keys in a cache */
  posenc_form* other =
      prepared("{\"scheme\": \"rope\", \"dims\": 2, \"scaling\": {\"type\": \"linear\", \"factor\": 2}}");
  float cached[2] = {1, 0};
  const posenc_tensor cache = tensor(cached, kF32, 2, SHAPE(1, 2));
  OK(posenc_rotate(rope, (posenc_query_key){&cache, NULL}, (posenc_query_key){&cache, NULL}, &from, NULL));
  OK(posenc_rerotate(rope, other, &cache, &from, NULL));
  CHECK(fabs(cached[0] - cos(2.5)) < 1e-6);

  /* the same keys three positions later */
  OK(posenc_shift(other, &cache, 3, NULL));
  CHECK(fabs(cached[0] - cos(4)) < 1e-6);
  REFUSES(posenc_shift(NULL, &cache, 3, NULL), POSENC_INVALID, "the form is missing");
  posenc_run alone = POSENC_INIT(posenc_run);
  alone.threads = 1;
  OK(posenc_rotate(rope, (posenc_query_key){&cache, NULL}, (posenc_query_key){&cache, NULL}, &from, &alone));
  alone.threads = -1;
  REFUSES(posenc_rotate(rope, (posenc_query_key){&cache, NULL}, (posenc_query_key){&cache, NULL}, &from, &alone),
          POSENC_INVALID, "thread");

  float cosines[3], sines[3];
  const posenc_tensor c = tensor(cosines, kF32, 2, SHAPE(3, 1)), s = tensor(sines, kF32, 2, SHAPE(3, 1));
  OK(posenc_tabulate(rope, &c, &s, &from, NULL));
  CHECK(fabs(cosines[1] - cos(6)) < 1e-6 && fabs(sines[1] - sin(6)) < 1e-6);
  posenc_form* by_table = NULL;
  OK(posenc_prepare_table(&c, &s, NULL, &by_table));
  float t[2] = {1, 0};
  const posenc_tensor one = tensor(t, kF32, 2, SHAPE(1, 2));
  posenc_positions row = POSENC_INIT(posenc_positions);
  row.first = 2;
  OK(posenc_rotate(by_table, (posenc_query_key){&one, NULL}, (posenc_query_key){&one, NULL}, &row, NULL));
  CHECK(t[0] == cosines[2] && t[1] == sines[2]);
  posenc_form* none = NULL;
  REFUSES(posenc_prepare_table(&c, &s, "sideways", &none), POSENC_INVALID, "sideways");
  REFUSES(posenc_prepare_table(&c, NULL, NULL, &none), POSENC_INVALID, "sines");
  char* json = NULL;
  OK(posenc_form_json(rope, &json));
  CHECK(text_has(json, "\"kind\":\"rotation\""));
  posenc_form* all[] = {rope, adjoint, inverse, for_keys, other, by_table};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) posenc_form_free(all[i]);
}

static void test_add_and_bias(void) {
  posenc_form* waves = prepared("{\"scheme\": \"sinusoidal\", \"width\": 2}");
  double x[4] = {10, 10, 10, 10}, table[4];
  const posenc_tensor tokens = tensor(x, kF64, 2, SHAPE(2, 2)), rows = tensor(table, kF64, 2, SHAPE(2, 2));
  OK(posenc_add(waves, &tokens, &tokens, NULL, NULL));
  CHECK(x[0] == 10 && x[1] == 11 && fabs(x[2] - 10 - sin(1)) < 1e-12);
  OK(posenc_tabulate(waves, &rows, NULL, NULL, NULL));
  CHECK(fabs(table[3] - cos(1)) < 1e-15);
  REFUSES(posenc_tabulate(waves, &rows, &rows, NULL, NULL), POSENC_INVALID, "sines");
  REFUSES(posenc_rotate(waves, (posenc_query_key){&rows, NULL}, (posenc_query_key){&rows, NULL}, NULL, NULL),
          POSENC_INVALID, "must be a rotation but is an addition");

  /* a trained table, and another one in its place */
  float first[6] = {0, 1, 2, 3, 4, 5}, second[6] = {0, 10, 20, 30, 40, 50}, y[2] = {0, 0}, gradient[6] = {0};
  const posenc_tensor a = tensor(first, kF32, 2, SHAPE(3, 2)), b = tensor(second, kF32, 2, SHAPE(3, 2));
  posenc_prepare_options options = POSENC_INIT(posenc_prepare_options);
  options.weights = &a;
  posenc_form *learned = NULL, *bound = NULL;
  OK(posenc_prepare("{\"scheme\": \"learned\", \"rows\": 3, \"width\": 2}", &options, &learned));
  OK(posenc_form_bind(learned, &b, NULL, &bound));
  const posenc_tensor token = tensor(y, kF32, 2, SHAPE(1, 2)), d_table = tensor(gradient, kF32, 2, SHAPE(3, 2));
  posenc_positions last = POSENC_INIT(posenc_positions);
  last.first = 2;
  OK(posenc_add(learned, &token, &token, &last, NULL));
  OK(posenc_add(bound, &token, &token, &last, NULL));
  CHECK(y[0] == 44 && y[1] == 55);
  OK(posenc_add_backward(&d_table, &token, &last, 0, NULL));
  CHECK(gradient[4] == 44 && gradient[0] == 0);

  posenc_form* alibi = prepared("{\"scheme\": \"alibi\", \"heads\": 1}");
  float scores[4], d_slopes[1] = {0};
  const posenc_tensor square = tensor(scores, kF32, 3, SHAPE(1, 2, 2)), slopes = tensor(d_slopes, kF32, 1, SHAPE(1));
  OK(posenc_bias(alibi, &square, NULL, NULL, NULL));
  CHECK(scores[0] == 0 && scores[1] < 0 && scores[1] == scores[2]);
  OK(posenc_bias_backward(alibi, &slopes, &square, NULL, NULL, NULL));
  CHECK(fabs(d_slopes[0] + scores[1] + scores[2]) < 1e-9); /* Σ of −|δ| · d_out */
  char* json = NULL;
  OK(posenc_form_json(alibi, &json));
  CHECK(text_has(json, "\"heads\":1"));
  OK(posenc_form_json(waves, &json));
  CHECK(text_has(json, "\"width\":2"));
  posenc_form* all[] = {waves, learned, bound, alibi};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) posenc_form_free(all[i]);
}

static void test_attention(void) {
  /* One query that looks at two keys with equal scores: the mean of the values, and the gradient of that. */
  float q[2] = {1, 0}, k[4] = {1, 0, 1, 0}, v[4] = {2, 4, 6, 8}, out[2], lse[1], weights[2];
  const posenc_tensor query = tensor(q, kF32, 2, SHAPE(1, 2)), key = tensor(k, kF32, 2, SHAPE(2, 2)),
                      value = tensor(v, kF32, 2, SHAPE(2, 2)), result = tensor(out, kF32, 2, SHAPE(1, 2)),
                      sums = tensor(lse, kF32, 1, SHAPE(1)), shares = tensor(weights, kF32, 2, SHAPE(1, 2));
  const double scale = 1;
  posenc_attention_options options = POSENC_INIT(posenc_attention_options);
  options.scale = &scale;
  options.logsumexp = &sums;
  options.weights = &shares;
  OK(posenc_attention(&result, &query, &key, &value, &options, NULL));
  CHECK(fabs(out[0] - 4) < 1e-6 && fabs(out[1] - 6) < 1e-6);
  CHECK(fabs(lse[0] - (1 + log(2))) < 1e-6 && fabs(weights[0] - 0.5) < 1e-6);

  uint8_t seen[2] = {0, 1};
  const posenc_tensor mask = tensor(seen, kBool, 2, SHAPE(1, 2));
  options.key_mask = &mask;
  OK(posenc_attention(&result, &query, &key, &value, &options, NULL));
  CHECK(out[0] == 6 && out[1] == 8);
  options.key_mask = NULL;

  /* a sink takes its share: two keys and a sink of equal scores; a cap and a mask */
  float logit[1] = {1};
  const posenc_tensor sink = tensor(logit, kF32, 1, SHAPE(1));
  options.sinks = &sink;
  OK(posenc_attention(&result, &query, &key, &value, &options, NULL));
  CHECK(fabs(out[0] - 8.0 / 3) < 1e-6);
  options.sinks = NULL;
  options.softcap = 0.5;
  options.mask = &mask; /* bool [1, 2] */
  OK(posenc_attention(&result, &query, &key, &value, &options, NULL));
  CHECK(out[0] == 6 && out[1] == 8 && fabs(lse[0] - 0.5 * tanh(2)) < 1e-6);
  options.mask = NULL;
  options.softcap = 0;
  posenc_temperature warmer = POSENC_INIT(posenc_temperature);
  warmer.scale = 1, warmer.length = 1;
  options.temperature = &warmer; /* position 1 of the only query: 1 + ln 2 */
  OK(posenc_attention(&result, &query, &key, &value, &options, NULL));
  CHECK(fabs(lse[0] - (1 + log(2) + log(2))) < 1e-5);
  warmer.rule = 2, warmer.shift = 1; /* ln 2 */
  OK(posenc_attention(&result, &query, &key, &value, &options, NULL));
  CHECK(fabs(lse[0] - (log(2) + log(2))) < 1e-5);
  warmer.rule = 3;
  CHECK(posenc_attention(&result, &query, &key, &value, &options, NULL) == POSENC_INVALID);
  options.temperature = NULL;

  float dq[2], dk[4], dv[4], d_out[2] = {1, 1};
  const posenc_tensor gq = tensor(dq, kF32, 2, SHAPE(1, 2)), gk = tensor(dk, kF32, 2, SHAPE(2, 2)),
                      gv = tensor(dv, kF32, 2, SHAPE(2, 2)), d = tensor(d_out, kF32, 2, SHAPE(1, 2));
  posenc_attention_inputs inputs = POSENC_INIT(posenc_attention_inputs);
  inputs.q = &query, inputs.k = &key, inputs.v = &value;
  posenc_attention_gradients gradients = POSENC_INIT(posenc_attention_gradients);
  gradients.q = &gq, gradients.k = &gk, gradients.v = &gv;
  options.weights = NULL;
  options.logsumexp = NULL;
  OK(posenc_attention_backward(&gradients, &d, &inputs, &options, NULL));
  CHECK(fabs(dv[0] - 0.5) < 1e-6 && fabs(dv[3] - 0.5) < 1e-6);
  CHECK(fabs(dk[0] + dk[2]) < 1e-6); /* what one key gains, the other loses */
  REFUSES(posenc_attention_backward(NULL, &d, &inputs, &options, NULL), POSENC_INVALID, "gradients");

  posenc_form* waves = prepared("{\"scheme\": \"sinusoidal\", \"width\": 2}");
  options.position = waves;
  CHECK(posenc_attention(&result, &query, &key, &value, &options, NULL) == POSENC_INVALID);
  posenc_form_free(waves);
}

/* Rotated q and k are rounded to bf16 as posenc_rotate rounds them, where asked. */
static void test_rounded_rotation(void) {
  enum { kTokens = 40, kFeatures = 16, kCount = kTokens * kFeatures };
  static const posenc_dtype kBF16 = {4, 16, 1};
  uint16_t x[kCount], rotated[kCount], before[kCount], rounded[kCount], whole[kCount];
  for (int i = 0; i < kCount; ++i) x[i] = (uint16_t)(0x3F00 + i * 37 % 256 + (i % 3 == 0 ? 0x8000 : 0));
  memcpy(rotated, x, sizeof x);
  const posenc_tensor plain = tensor(x, kBF16, 2, SHAPE(kTokens, kFeatures)),
                      after = tensor(rotated, kBF16, 2, SHAPE(kTokens, kFeatures)),
                      first = tensor(before, kBF16, 2, SHAPE(kTokens, kFeatures)),
                      second = tensor(rounded, kBF16, 2, SHAPE(kTokens, kFeatures)),
                      third = tensor(whole, kBF16, 2, SHAPE(kTokens, kFeatures));
  posenc_form* const rope = prepared("{\"scheme\": \"rope\", \"dims\": 16}");
  const posenc_query_key in_place = {&after, NULL};
  OK(posenc_rotate(rope, in_place, in_place, NULL, NULL));
  const double scale = 1;
  posenc_attention_options options = POSENC_INIT(posenc_attention_options);
  options.causal = 1, options.scale = &scale;
  OK(posenc_attention(&first, &after, &after, &plain, &options, NULL));
  options.position = rope, options.rounds_rotated = 1;
  OK(posenc_attention(&second, &plain, &plain, &plain, &options, NULL));
  CHECK(memcmp(before, rounded, sizeof before) == 0);
  options.rounds_rotated = 0;
  OK(posenc_attention(&third, &plain, &plain, &plain, &options, NULL));
  CHECK(memcmp(before, whole, sizeof before) != 0);
  posenc_form_free(rope);
}

static void test_positions(void) {
  int64_t lengths[2] = {3, 2}, out[6];
  const posenc_tensor l = tensor(lengths, kI64, 1, SHAPE(2)), five = tensor(out, kI64, 1, SHAPE(5)),
                      grid = tensor(out, kI64, 2, SHAPE(2, 6)), six = tensor(out, kI64, 1, SHAPE(6));
  int64_t twelve[12], extents[2] = {2, 3};
  posenc_tensor places = grid;
  places.data = twelve;
  OK(posenc_packed_positions(&five, &l));
  CHECK(out[2] == 2 && out[3] == 0 && out[4] == 1);
  REFUSES(posenc_packed_positions(&six, &l), POSENC_INVALID, "6 elements");
  const posenc_tensor e = tensor(extents, kI64, 1, SHAPE(2));
  OK(posenc_grid_positions(&places, &e));
  CHECK(twelve[5] == 1 && twelve[11] == 2);
  uint8_t mask[6] = {0, 1, 1, 1, 1, 1};
  const posenc_tensor m = tensor(mask, kBool, 2, SHAPE(2, 3));
  OK(posenc_positions_from_mask(&six, &m, NULL, 1));
  CHECK(out[0] == 1 && out[1] == 0 && out[2] == 1 && out[5] == 2);
  OK(posenc_positions_from_mask(&six, &m, "roberta", 1));
  CHECK(out[0] == 1 && out[1] == 2);
  REFUSES(posenc_positions_from_mask(&six, &m, "abacus", 1), POSENC_INVALID, "abacus");
}

static void test_models(void) {
  const char config[] =
      "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
      "\"num_hidden_layers\": 2, \"max_position_embeddings\": 128, \"rope_theta\": 10000.0}";
  char* json = NULL;
  OK(posenc_read_model(config, sizeof config - 1, &json));
  CHECK(text_has(json, "\"layers\":\"0-1\""));
  REFUSES(posenc_read_model("{", 1, &json), POSENC_INVALID, "line 1");
  REFUSES(posenc_read_model("GGUF", 4, &json), POSENC_INVALID, "byte");
  OK(posenc_compare_engines(config, sizeof config - 1, "hf,vllm", 0, &json));
  CHECK(text_has(json, "\"agrees\":"));
  REFUSES(posenc_compare_engines(config, sizeof config - 1, "abacus,hf", 0, &json), POSENC_INVALID, "abacus");

  enum { kTokens = 16, kDims = 8 };
  float before[kTokens * kDims], after[kTokens * kDims];
  for (int i = 0; i < kTokens * kDims; ++i) before[i] = after[i] = (float)sin(i * 12.9898 + 1);
  const posenc_tensor b = tensor(before, kF32, 2, SHAPE(kTokens, kDims)),
                      a = tensor(after, kF32, 2, SHAPE(kTokens, kDims));
  const char* scheme = "{\"scheme\": \"rope\", \"dims\": 8}";
  posenc_form* rope = prepared("{\"scheme\": \"rope\", \"dims\": 8, \"layout\": \"interleaved\"}");
  OK(posenc_rotate(rope, (posenc_query_key){&a, NULL}, (posenc_query_key){&a, NULL}, NULL, NULL));
  OK(posenc_check(scheme, &b, &a, NULL, &json));
  CHECK(text_has(json, "\"verdict\":\"differs\""));
  OK(posenc_check("{\"scheme\": \"rope\", \"dims\": 8, \"layout\": \"interleaved\"}", &b, &a, NULL, &json));
  CHECK(text_has(json, "\"verdict\":\"agrees\""));
  const posenc_tensor first = tensor(before, kF32, 2, SHAPE(1, kDims));
  OK(posenc_check(scheme, &first, &first, NULL, &json));       /* position 0 shows nothing */
  CHECK(strstr(json, "\"verdict\":\"inconclusive\"") != NULL); /* text_has frees the text */
  CHECK(text_has(json, "this token cannot tell rope from none"));
  posenc_check_options options = POSENC_INIT(posenc_check_options);
  options.length = 8;
  REFUSES(posenc_check(scheme, &b, &a, &options, &json), POSENC_INVALID, "does not reach the last position");
  OK(posenc_diagnose(&b, &a, NULL, &json));
  CHECK(text_has(json, "\"layout\":\"interleaved\""));
  posenc_form_free(rope);
}

static void test_figures(void) {
  char* json = NULL;
  OK(posenc_figure("waves", NULL, &json));
  CHECK(text_has(json, "\"kind\":\"waves\""));
  OK(posenc_figure(
      "waves",
      "{\"schemes\": [{\"scheme\": \"sinusoidal\", \"width\": 8}], \"zoom\": [10, 30], \"features\": [0, 2]}",
      &json));
  CHECK(text_has(json, "\"panels\":"));
  REFUSES(posenc_figure("abacus", NULL, &json), POSENC_INVALID, "abacus");
  REFUSES(posenc_figure("waves", "{\"zoom\": [1]}", &json), POSENC_INVALID, "[from, to]");
  REFUSES(posenc_figure("waves", "{\"zom\": [1, 2]}", &json), POSENC_INVALID, "zom");
  REFUSES(posenc_figure("waves", "[]", &json), POSENC_INVALID, "object");
}

static void test_refusals(void) {
  posenc_form* form = NULL;
  REFUSES(posenc_prepare("{\"scheme\": \"rope\", \"dimms\": 8}", NULL, &form), POSENC_INVALID,
          "did you mean 'dims'?");
  CHECK(form == NULL);
  REFUSES(posenc_prepare(NULL, NULL, &form), POSENC_INVALID, "NULL");
  float nobody[2] = {0, 0};
  const posenc_tensor unwanted = tensor(nobody, kF32, 2, SHAPE(1, 2));
  posenc_prepare_options with_weights = POSENC_INIT(posenc_prepare_options);
  with_weights.weights = &unwanted;
  REFUSES(posenc_prepare("{\"scheme\": \"rope\"}", &with_weights, &form), POSENC_INVALID,
          "rope has no trained table");
  with_weights.weights = NULL;
  with_weights.key_weights = &unwanted;
  REFUSES(posenc_prepare("{\"scheme\": \"rope\"}", &with_weights, &form), POSENC_INVALID, "for keys");
  posenc_prepare_options options = POSENC_INIT(posenc_prepare_options);
  options.numerics = "abacus";
  REFUSES(posenc_prepare("{\"scheme\": \"rope\"}", &options, &form), POSENC_INVALID, "abacus");
  options = POSENC_INIT(posenc_prepare_options);
  options.size = 4096;
  REFUSES(posenc_prepare("{\"scheme\": \"rope\"}", &options, &form), POSENC_INVALID, "size is 4096");
  options.size =
      offsetof(posenc_prepare_options, numerics); /* a caller of an older header, which has no more fields */
  options.numerics = (const char*)1;
  OK(posenc_prepare("{\"scheme\": \"rope\", \"dims\": 2}", &options, &form));

  float x[3] = {1, 0, 7};
  posenc_tensor bad = tensor(x, kF32, 2, SHAPE(1, 2));
  const posenc_query_key both = {&bad, NULL};
#define REFUSED_TENSOR(change, status, text)                            \
  do {                                                                  \
    bad = tensor(x, kF32, 2, SHAPE(1, 2));                              \
    change;                                                             \
    REFUSES(posenc_rotate(form, both, both, NULL, NULL), status, text); \
    CHECK(x[0] == 1 && x[1] == 0 && x[2] == 7);                         \
  } while (0)
  REFUSED_TENSOR(bad.dtype.code = 5, POSENC_UNSUPPORTED, "code 5");
  REFUSED_TENSOR(bad.dtype.lanes = 4, POSENC_UNSUPPORTED, "4 lanes");
  REFUSED_TENSOR(bad.device.type = 8, POSENC_DEVICE, "DLPack type 8");
  REFUSED_TENSOR(bad.ndim = 9, POSENC_INVALID, "9 dimensions");
  REFUSED_TENSOR(bad.ndim = -1, POSENC_INVALID, "-1 dimensions");
  REFUSED_TENSOR(bad.shape = NULL, POSENC_INVALID, "no shape");
  REFUSED_TENSOR(bad.shape = SHAPE(-1, 2), POSENC_INVALID, "[-1, 2]");
  REFUSED_TENSOR(bad.data = NULL, POSENC_INVALID, "no data");
  REFUSED_TENSOR(bad.data = (char*)x + 1, POSENC_INVALID, "not aligned");
  REFUSED_TENSOR(bad.byte_offset = 2, POSENC_INVALID, "not aligned");
  REFUSED_TENSOR(bad.shape = SHAPE(2, 1), POSENC_INVALID, "rotate");
  bad = tensor(x, kF32, 2, SHAPE(1, 2));
  posenc_positions where = POSENC_INIT(posenc_positions);
  where.ids = &bad;
  REFUSES(posenc_rotate(form, both, both, &where, NULL), POSENC_UNSUPPORTED, "must be integers");
  where.ids = NULL;
  where.first = INT64_C(1) << 53;
  REFUSES(posenc_rotate(form, both, both, &where, NULL), POSENC_INVALID, "9007199254740992");
  REFUSES(posenc_rotate(NULL, both, both, NULL, NULL), POSENC_INVALID, "the form is missing");
  REFUSES(posenc_bias(form, &bad, NULL, NULL, NULL), POSENC_INVALID, "must be a bias but is a rotation");
  posenc_form_free(form);
}

/* A call that needs more memory than there is says so, and the next one works. */
static void test_no_memory(void) {
#if !defined(POSENC_SANITIZED)
  struct rlimit before, small;
  CHECK(getrlimit(RLIMIT_AS, &before) == 0);
  small = before;
  small.rlim_cur = (rlim_t)256 << 20;
  CHECK(setrlimit(RLIMIT_AS, &small) == 0);
  posenc_form* form = NULL;
  posenc_prepare_options options = POSENC_INIT(posenc_prepare_options);
  options.length = (int64_t)1 << 20;
  const char* kerple =
      "{\"scheme\": \"kerple\", \"amplitudes\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
      "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1], \"rates\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
      "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}";
  REFUSES(posenc_prepare(kerple, &options, &form), POSENC_NO_MEMORY, "out of memory");
  CHECK(setrlimit(RLIMIT_AS, &before) == 0);
#endif
  posenc_form_free(prepared("{\"scheme\": \"rope\"}"));
}

static void* say(void* wrong) {
  posenc_form* form = NULL;
  char scheme[64];
  snprintf(scheme, sizeof scheme, "{\"scheme\": \"%s\"}", (char*)wrong);
  for (int i = 0; i < 1000; ++i) {
    if (posenc_prepare(scheme, NULL, &form) != POSENC_INVALID || strstr(posenc_error(), wrong) == NULL) return wrong;
  }
  return NULL;
}

/* Each thread has its own message. */
static void test_threads(void) {
  pthread_t one, other;
  void *from_one = NULL, *from_other = NULL;
  CHECK(pthread_create(&one, NULL, say, (void*)"aaaaaaaaaa") == 0);
  CHECK(pthread_create(&other, NULL, say, (void*)"bbbbbbbbbb") == 0);
  CHECK(pthread_join(one, &from_one) == 0 && pthread_join(other, &from_other) == 0);
  CHECK(from_one == NULL && from_other == NULL);
}

/* A step of a decoder in one call, against the calls that it stands for; a norm, against sums written out; and bad calls. */
static void test_append(void) {
  enum { kHeads = 2, kD = 8, kTokens = 3, kSlots = 8 };
  static float q[kTokens][kHeads][kD], k[kTokens][kD], v[kTokens][kD], q_want[kTokens][kHeads][kD],
      k_pool[2][kSlots][kD], v_pool[2][kSlots][kD];
  for (int i = 0; i < kTokens * kHeads * kD; ++i) (&q[0][0][0])[i] = (&q_want[0][0][0])[i] = sinf(0.7f * (float)i);
  for (int i = 0; i < kTokens * kD; ++i)
    (&k[0][0])[i] = sinf(0.3f * (float)i + 1), (&v[0][0])[i] = sinf(0.9f * (float)i + 2);
  int64_t strides[] = {kD, kHeads * kD, 1}, ids[] = {5, 0, 9};
  int32_t places[] = {6, -1, 1};
  const posenc_tensor slots = tensor(places, kI32, 1, SHAPE(kTokens)), its = tensor(ids, kI64, 1, SHAPE(kTokens));
  posenc_tensor queries = tensor(q, kF32, 3, SHAPE(kHeads, kTokens, kD)), wanted = queries;
  queries.strides = wanted.strides = strides;
  wanted.data = q_want;
  const posenc_tensor keys = tensor(k, kF32, 3, SHAPE(1, kTokens, kD)),
                      values = tensor(v, kF32, 3, SHAPE(1, kTokens, kD));
  posenc_tensor caches[4];
  int64_t shape[] = {2, 1, 4, kD};
  for (int i = 0; i < 4; ++i) caches[i] = tensor(i < 2 ? k_pool[i] : v_pool[i - 2], kF32, 4, shape);
  const posenc_key_value cache = {&caches[0], &caches[2]};
  posenc_positions at = POSENC_INIT(posenc_positions);
  at.ids = &its;
  posenc_form* rope = prepared("{\"scheme\": \"rope\", \"dims\": 8}");
  posenc_new_tokens step = POSENC_INIT(posenc_new_tokens);
  step.q = step.q_out = &queries;
  step.k = &keys;
  step.v = &values;
  OK(posenc_append(rope, cache, &slots, &step, &at, NULL));
  const posenc_query_key one = {&wanted, NULL};
  OK(posenc_rotate(rope, one, one, &at, NULL));
  OK(posenc_rotate_into(rope, &caches[1], &slots, &keys, &at, NULL));
  OK(posenc_rotate_into(NULL, &caches[3], &slots, &values, NULL, NULL));
  CHECK(memcmp(q, q_want, sizeof q) == 0);
  CHECK(memcmp(k_pool[0], k_pool[1], sizeof k_pool[0]) == 0 && k_pool[0][6][0] != 0);
  CHECK(memcmp(v_pool[0], v_pool[1], sizeof v_pool[0]) == 0 && v_pool[0][1][0] == v[2][0]);

  /* a cache of bytes: a step gives the bytes of its parts, as e4m3 or as unsigned numbers */
  static uint8_t bytes[4][8][kD];
  float k_scale[] = {0.01f}, v_scale[] = {0.5f};
  const posenc_tensor k_by = tensor(k_scale, kF32, 1, SHAPE(1)), v_by = tensor(v_scale, kF32, 1, SHAPE(1));
  const posenc_dtype byte = {1, 8, 1}, e4m3 = {10, 8, 1};
  posenc_tensor narrow[4];
  for (int i = 0; i < 4; ++i) narrow[i] = tensor(bytes[i], i < 2 ? byte : e4m3, 4, shape);
  const posenc_key_value narrow_cache = {&narrow[0], &narrow[2]};
  step.q = step.q_out = NULL;
  step.k_scale = &k_by, step.v_scale = &v_by;
  OK(posenc_append(rope, narrow_cache, &slots, &step, &at, NULL));
  OK(posenc_rotate_into_scaled(rope, &narrow[1], &k_by, &slots, &keys, &at, NULL));
  OK(posenc_rotate_into_scaled(NULL, &narrow[3], &v_by, &slots, &values, NULL, NULL));
  CHECK(memcmp(bytes[0], bytes[1], sizeof bytes[0]) == 0 && bytes[0][6][0] != 0);
  CHECK(memcmp(bytes[2], bytes[3], sizeof bytes[0]) == 0 && bytes[2][1][0] != 0);
  REFUSES(posenc_rotate_into_scaled(NULL, &caches[3], &v_by, &slots, &values, NULL, NULL), POSENC_INVALID,
          "copy_into: the scale is for a cache of e4m3, but it has elements of f32");
  step.k_scale = step.v_scale = NULL;

  /* Gemma's norm, and nothing rotated */
  static float weight[kD] = {0.5f, -0.5f, 0, 1, 2, 3, -1, 0.25f};
  const posenc_tensor weights = tensor(weight, kF32, 1, SHAPE(kD));
  step.q = step.q_out = NULL;
  step.k_norm = &weights;
  step.norm_offset = 1;
  OK(posenc_append(NULL, cache, &slots, &step, NULL, NULL));
  double squares = 0;
  for (int f = 0; f < kD; ++f) squares += (double)k[0][f] * (double)k[0][f];
  for (int f = 0; f < kD; ++f) {
    const double want = (double)k[0][f] / sqrt(squares / kD + 1e-6) * (1 + (double)weight[f]);
    CHECK(fabs((double)k_pool[0][6][f] - want) < 1e-6);
  }

  memcpy(k_pool[1], k_pool[0], sizeof k_pool[0]);
  posenc_tensor elsewhere = slots;
  elsewhere.device.type = 2;
  REFUSES(posenc_append(rope, cache, &elsewhere, &step, &at, NULL), POSENC_INVALID,
          "the slots are on cuda but the cache is on host");
  REFUSES(posenc_append(rope, cache, NULL, &step, &at, NULL), POSENC_INVALID, "append: slots is missing");
  REFUSES(posenc_append(rope, cache, &slots, NULL, &at, NULL), POSENC_INVALID, "append: tokens is missing");
  const posenc_key_value half = {&caches[0], NULL};
  REFUSES(posenc_append(rope, half, &slots, &step, &at, NULL), POSENC_INVALID, "the cache of values is missing");
  places[1] = 8;
  REFUSES(posenc_append(rope, cache, &slots, &step, &at, NULL), POSENC_INVALID,
          "slot 8 is past the end of the cache");
  places[1] = 6;
  REFUSES(posenc_append(rope, cache, &slots, &step, &at, NULL), POSENC_INVALID, "slot 6 occurs twice");
  places[1] = -1;
  step.q_out = &queries;
  CHECK(posenc_append(rope, cache, &slots, &step, &at, NULL) == POSENC_INVALID);
  step.q_out = NULL;
  step.norm_epsilon = -1;
  REFUSES(posenc_append(rope, cache, &slots, &step, &at, NULL), POSENC_INVALID, "norm_epsilon must be 0 or more");
  posenc_form* waves = prepared("{\"scheme\": \"sinusoidal\", \"width\": 8}");
  REFUSES(posenc_append(waves, cache, &slots, &step, &at, NULL), POSENC_INVALID,
          "an addition belongs to the embeddings");
  CHECK(memcmp(k_pool[0], k_pool[1], sizeof k_pool[0]) == 0);
  posenc_form_free(waves);
  posenc_form_free(rope);
}

/* Two sequences of a model's layer: prompts packed one after another into a paged cache, then a token of each, and then the
   second one drops its first two tokens. Each is what attention over the tokens that it has gives. */
static void test_layer_over_pages(void) {
  const char* config =
      "{\"model_type\": \"gemma2\", \"hidden_size\": 16, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
      "\"num_key_value_heads\": 1, \"head_dim\": 8, \"query_pre_attn_scalar\": 4, \"sliding_window\": 4, "
      "\"attn_logit_softcapping\": 5.0, \"rope_theta\": 10000.0, \"max_position_embeddings\": 64}";
  posenc_layer* layer = NULL;
  OK(posenc_layer_read(config, strlen(config), 0, NULL, &layer));
  CHECK(posenc_layer_attention(layer)->window == 4 && posenc_layer_attention(layer)->causal == 1);
  CHECK(posenc_layer_attention(layer)->softcap == 5 && *posenc_layer_attention(layer)->scale == 0.5);
  CHECK(posenc_layer_addition(layer) == NULL);
  posenc_layer_free(layer);
  OK(posenc_layer_read(config, strlen(config), 1, NULL, &layer));
  const posenc_attention_options* whole = posenc_layer_attention(layer);
  CHECK(whole->window == 0);

  enum { kHeads = 2, kD = 8, kPage = 2, kPages = 6 };
  static float q[7][kHeads][kD], k[7][kD], v[7][kD], k_pool[kPages][kPage][kD], v_pool[kPages][kPage][kD];
  for (int i = 0; i < 7 * kHeads * kD; ++i) (&q[0][0][0])[i] = sinf(0.7f * (float)i);
  for (int i = 0; i < 7 * kD; ++i)
    (&k[0][0])[i] = sinf(0.3f * (float)i + 1), (&v[0][0])[i] = sinf(0.9f * (float)i + 2);
  posenc_tensor k_cache = tensor(k_pool, kF32, 4, SHAPE(kPages, 1, kPage, kD)),
                v_cache = tensor(v_pool, kF32, 4, SHAPE(kPages, 1, kPage, kD));
  /* tokens 0 … 2 are of the first sequence, 3 … 6 of the second */
  int32_t pages[] = {4, 1, 2, 5};
  int64_t places[] = {8, 9, 2, 4, 5, 10, 11}, ids[] = {0, 1, 2, 0, 1, 2, 3}, packed[] = {3, 4}, lengths[] = {3, 4};
  posenc_tensor slots = tensor(places, kI64, 1, SHAPE(7)), its = tensor(ids, kI64, 1, SHAPE(7)),
                table = tensor(pages, kI32, 2, SHAPE(2, 2)), counts = tensor(packed, kI64, 1, SHAPE(2)),
                ends = tensor(lengths, kI64, 1, SHAPE(2));
  posenc_tensor keys = tensor(k, kF32, 3, SHAPE(1, 7, kD)), values = tensor(v, kF32, 3, SHAPE(1, 7, kD));
  posenc_positions at = POSENC_INIT(posenc_positions);
  at.ids = &its;
  OK(posenc_rotate_into(whole->position, &k_cache, &slots, &keys, &at, NULL));
  OK(posenc_rotate_into(NULL, &v_cache, &slots, &values, NULL, NULL));
  int64_t strides[] = {kD, kHeads * kD, 1};
  float got[7][kHeads][kD], want[4][kHeads][kD];
  posenc_tensor queries = tensor(q, kF32, 3, SHAPE(kHeads, 7, kD)), out = tensor(got, kF32, 3, SHAPE(kHeads, 7, kD));
  queries.strides = out.strides = strides;
  posenc_attention_options options = *whole;
  options.keys_are_rotated = 1;
  options.packed = &counts;
  options.key_lengths = &ends;
  options.block_table = &table;
  OK(posenc_attention(&out, &queries, &k_cache, &v_cache, &options, NULL));
  for (int s = 0; s < 2; ++s) {
    const int first = s == 0 ? 0 : 3, count = s == 0 ? 3 : 4;
    posenc_tensor a = tensor(q[first], kF32, 3, SHAPE(kHeads, count, kD)),
                  b = tensor(k[first], kF32, 3, SHAPE(1, count, kD)),
                  c = tensor(v[first], kF32, 3, SHAPE(1, count, kD)),
                  d = tensor(want, kF32, 3, SHAPE(kHeads, count, kD));
    a.strides = d.strides = strides;
    OK(posenc_attention(&d, &a, &b, &c, whole, NULL));
    for (int i = 0; i < count * kHeads * kD; ++i) { /* each on its own: fmaxf would pass over a NaN */
      CHECK(fabsf((&got[first][0][0])[i] - (&want[0][0][0])[i]) < 2e-6f);
    }
  }

  /* the second sequence drops two tokens: the others close the gap, and their keys move */
  int64_t to_slots[] = {4, 5}, from_slots[] = {10, 11};
  posenc_tensor to = tensor(to_slots, kI64, 1, SHAPE(2)), from = tensor(from_slots, kI64, 1, SHAPE(2));
  OK(posenc_copy_slots(&k_cache, &to, &from, NULL));
  OK(posenc_copy_slots(&v_cache, &to, &from, NULL));
  OK(posenc_shift_slots(whole->position, &k_cache, &to, -2, NULL));
  int64_t left = 2;
  posenc_tensor end = tensor(&left, kI64, 1, SHAPE(1)), row = tensor(pages + 2, kI32, 2, SHAPE(1, 2));
  posenc_tensor last = tensor(q[6], kF32, 4, SHAPE(1, kHeads, 1, kD)),
                one = tensor(got, kF32, 4, SHAPE(1, kHeads, 1, kD)),
                two_k = tensor(k[5], kF32, 4, SHAPE(1, 1, 2, kD)), two_v = tensor(v[5], kF32, 4, SHAPE(1, 1, 2, kD)),
                other = tensor(want, kF32, 4, SHAPE(1, kHeads, 1, kD));
  options.packed = NULL;
  options.key_lengths = &end;
  options.block_table = &row;
  OK(posenc_attention(&one, &last, &k_cache, &v_cache, &options, NULL));
  OK(posenc_attention(&other, &last, &two_k, &two_v, whole, NULL));
  for (int i = 0; i < kHeads * kD; ++i) CHECK(fabsf((&got[0][0][0])[i] - (&want[0][0][0])[i]) < 2e-6f);

  pages[2] = 6;
  REFUSES(posenc_attention(&one, &last, &k_cache, &v_cache, &options, NULL), POSENC_INVALID,
          "names page 6 but there are 6");
  to_slots[0] = 12;
  REFUSES(posenc_copy_slots(&k_cache, &to, &from, NULL), POSENC_INVALID,
          "slot 12 is past the end of the cache, which has 12 slots");
  REFUSES(posenc_shift_slots(NULL, &k_cache, &to, 1, NULL), POSENC_INVALID, "the form is missing");
  REFUSES(posenc_rotate_into(NULL, &k_cache, NULL, &keys, NULL, NULL), POSENC_INVALID, "slots is missing");
  REFUSES(posenc_layer_read(config, strlen(config), 2, NULL, &layer), POSENC_INVALID, "the model has layers 0-1");
  posenc_layer_inputs inputs = POSENC_INIT(posenc_layer_inputs);
  inputs.causal = 2;
  REFUSES(posenc_layer_read(config, strlen(config), 0, &inputs, &layer), POSENC_INVALID, "its attention is causal");
  posenc_layer_free(layer);
  posenc_layer_free(NULL);
}

/* What a layer's options look at lives in the layer: sinks, temperature, a form that is a temperature. */
static void test_layers(void) {
  const char* oss =
      "{\"model_type\": \"gpt_oss\", \"hidden_size\": 16, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
      "\"head_dim\": 8, \"layer_types\": [\"full_attention\"]}";
  posenc_layer* layer = NULL;
  REFUSES(posenc_layer_read(oss, strlen(oss), 0, NULL, &layer), POSENC_INVALID, "it has sinks");
  float logits[] = {1, -2};
  posenc_layer_inputs inputs = POSENC_INIT(posenc_layer_inputs);
  {
    int64_t heads = 2;
    posenc_tensor sinks = tensor(logits, kF32, 1, &heads);
    inputs.sinks = &sinks;
    OK(posenc_layer_read(oss, strlen(oss), 0, &inputs, &layer));
    heads = 77;
  }
  const posenc_attention_options* options = posenc_layer_attention(layer);
  CHECK(options->sinks != NULL && options->sinks->shape[0] == 2 && options->sinks->data == logits);
  CHECK(options->position != NULL);
  posenc_layer_free(layer);
  const char* llama4 =
      "{\"model_type\": \"llama4_text\", \"hidden_size\": 16, \"num_hidden_layers\": 4, \"num_attention_heads\": 2, "
      "\"head_dim\": 8, \"attention_chunk_size\": 8, \"attn_temperature_tuning\": true, \"floor_scale\": 4, "
      "\"attn_scale\": 0.3, \"no_rope_layer_interval\": 4}";
  OK(posenc_layer_read(llama4, strlen(llama4), 3, NULL, &layer));
  options = posenc_layer_attention(layer);
  CHECK(options->chunk == 0 && options->temperature != NULL && options->temperature->length == 4);
  CHECK(options->temperature->scale == 0.3 && options->temperature->shift == 1 && options->position == NULL);
  posenc_layer_free(layer);
  CHECK(posenc_layer_attention(NULL) == NULL && posenc_layer_addition(NULL) == NULL);
}

int main(void) {
  test_library();
  test_option_fields();
  test_rotate();
  test_add_and_bias();
  test_attention();
  test_rounded_rotation();
  test_append();
  test_layer_over_pages();
  test_layers();
  test_positions();
  test_models();
  test_figures();
  test_refusals();
  test_no_memory();
  test_threads();
  OK(posenc_synchronize(NULL)); /* without a GPU there is nothing to wait for */
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
