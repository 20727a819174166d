/* Plans, workspaces and slots as a C11 program meets them: a decoder over a paged cache against a reference in double, and
   every allocation of its thread counted. */
#include <math.h>
#include <stdlib.h>

#include "checks.h"

/* Of this thread, which does all the work: threads of the library's own pool, started by an earlier call, may still be
   setting themselves up. */
static _Thread_local long allocations = 0;

/* The library's calls of malloc come here too, with glibc and without a sanitizer, which has its own. */
#if defined(__GLIBC__) && !defined(POSENC_SANITIZED)
#define COUNTS_ALLOCATIONS 1
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void* malloc(size_t size) { return ++allocations, __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return ++allocations, __libc_calloc(count, size); }
void* realloc(void* memory, size_t size) { return ++allocations, __libc_realloc(memory, size); }
void* aligned_alloc(size_t alignment, size_t size) { return ++allocations, __libc_memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = aligned_alloc(alignment, size);
  return *out == NULL;
}
#else
#define COUNTS_ALLOCATIONS 0
#endif

enum { kSequences = 2, kHeads = 4, kKeyHeads = 2, kD = 16, kPage = 4, kPages = 9, kRow = 4, kMost = kPage * kRow };

static float keys[kSequences][kMost][kKeyHeads][kD], values[kSequences][kMost][kKeyHeads][kD];
static float k_pool[kPages][kPage][kKeyHeads][kD], v_pool[kPages][kPage][kKeyHeads][kD];

static double rotated(const float* x, int feature, int64_t position) { /* RoPE in halves, written out */
  const int pair = feature % (kD / 2);
  const double angle = (double)position * pow(10000.0, -2.0 * pair / kD);
  const double a = x[pair], b = x[pair + kD / 2];
  return feature < kD / 2 ? a * cos(angle) - b * sin(angle) : b * cos(angle) + a * sin(angle);
}

/* The last token of a sequence of so many over all of them, in double. */
static void reference(int s, int64_t length, const float* q, double out[kHeads][kD]) {
  for (int h = 0; h < kHeads; ++h) {
    const int kh = h / (kHeads / kKeyHeads);
    double sum = 0, mixed[kD] = {0};
    for (int64_t t = 0; t < length; ++t) {
      double score = 0;
      for (int f = 0; f < kD; ++f) {
        score += rotated(q + h * kD, f, length - 1) * rotated(keys[s][t][kh], f, t);
      }
      const double weight = exp(score / sqrt(kD));
      sum += weight;
      for (int f = 0; f < kD; ++f) mixed[f] += weight * values[s][t][kh][f];
    }
    for (int f = 0; f < kD; ++f) out[h][f] = mixed[f] / sum;
  }
}

typedef struct {
  int64_t calls, items;
} Pool;
static void run_in_place(void* context, int64_t count, void (*item)(void* data, int64_t i), void* data) {
  Pool* const pool = context;
  ++pool->calls;
  pool->items += count;
  for (int64_t i = count - 1; i >= 0; --i) item(data, i);
}

static void fill(float* x, size_t count, float step) {
  for (size_t i = 0; i < count; ++i) x[i] = sinf(step * (float)i);
}

static posenc_tensor pool_of(float (*pool)[kPage][kKeyHeads][kD]) {
  static int64_t shape[] = {kPages, kKeyHeads, kPage, kD},
                 strides[] = {kPage * kKeyHeads * kD, kD, kKeyHeads * kD, 1};
  posenc_tensor made = tensor(pool, kF32, 4, shape);
  made.strides = strides; /* heads after tokens, as vLLM has them */
  return made;
}

/* A prompt of 5 and one of 9 tokens, then a token of each at a time: the plan reads lengths and pages as they are then. */
static void test_decoder(void) {
  fill(&keys[0][0][0][0], sizeof keys / 4, 0.37f);
  fill(&values[0][0][0][0], sizeof values / 4, 0.71f);
  posenc_form* const rope = prepared("{\"scheme\": \"rope\", \"dims\": 16}");
  const posenc_tensor k_cache = pool_of(k_pool), v_cache = pool_of(v_pool);
  int32_t pages[kSequences][kRow] = {{7, 2, -1, -1}, {0, 8, 3, -1}};
  int64_t lengths[kSequences] = {5, 9};
  const posenc_tensor table = tensor(pages, kI32, 2, SHAPE(kSequences, kRow)),
                      ends = tensor(lengths, kI64, 1, SHAPE(kSequences));
  float q[kSequences][kHeads][kD], got[kSequences][kHeads][kD], again[kSequences][kHeads][kD];
  const posenc_tensor query = tensor(q, kF32, 4, SHAPE(kSequences, kHeads, 1, kD)),
                      out = tensor(got, kF32, 4, SHAPE(kSequences, kHeads, 1, kD)),
                      other = tensor(again, kF32, 4, SHAPE(kSequences, kHeads, 1, kD));
  int64_t slots[kMost];
  for (int s = 0; s < kSequences; ++s) {
    const int64_t count = lengths[s];
    posenc_tensor at = tensor(slots, kI64, 1, SHAPE(count)), row = tensor(pages[s], kI32, 1, SHAPE(kRow));
    OK(posenc_slots_of(&at, &row, kPage, 0));
    CHECK(slots[4] == (s == 0 ? 8 : 32)); /* token 4 is the first of the second page */
    posenc_tensor k = tensor(keys[s], kF32, 3, SHAPE(kKeyHeads, count, kD)),
                  v = tensor(values[s], kF32, 3, SHAPE(kKeyHeads, count, kD));
    k.strides = v.strides = SHAPE(kD, kKeyHeads * kD, 1);
    OK(posenc_rotate_into(rope, &k_cache, &at, &k, NULL, NULL));
    OK(posenc_rotate_into(NULL, &v_cache, &at, &v, NULL, NULL));
  }
  posenc_attention_options options = POSENC_INIT(posenc_attention_options);
  options.position = rope;
  options.causal = options.keys_are_rotated = 1;
  options.key_lengths = &ends;
  options.block_table = &table;
  posenc_attention_inputs like = POSENC_INIT(posenc_attention_inputs);
  like.q = &query, like.k = &k_cache, like.v = &v_cache;
  posenc_plan* plan = NULL;
  OK(posenc_plan_attention(&like, &options, &plan));
  size_t bytes = 0;
  OK(posenc_plan_workspace(plan, 2, &bytes));
  CHECK(bytes > 0);
  Pool own = {0, 0};
  posenc_run run = POSENC_INIT(posenc_run);
  run.threads = 2;
  run.workspace = malloc(bytes);
  run.workspace_size = bytes;
  run.pool = run_in_place;
  run.pool_context = &own;
  pages[0][2] = 5; /* the next pages of both, given while they decode */
  pages[1][3] = 6;
  for (int step = 0; step < 6; ++step) {
    int64_t place[kSequences], ids[kSequences];
    float k[kSequences][kKeyHeads][kD], v[kSequences][kKeyHeads][kD];
    fill(&q[0][0][0], sizeof q / 4, 0.13f * (float)(step + 1));
    for (int s = 0; s < kSequences; ++s) {
      ids[s] = lengths[s];
      place[s] = pages[s][ids[s] / kPage] * kPage + ids[s] % kPage;
      memcpy(k[s], keys[s][ids[s]], sizeof k[s]);
      memcpy(v[s], values[s][ids[s]], sizeof v[s]);
      ++lengths[s];
    }
    posenc_tensor at = tensor(place, kI64, 2, SHAPE(kSequences, 1)),
                  where = tensor(ids, kI64, 2, SHAPE(kSequences, 1));
    posenc_tensor new_k = tensor(k, kF32, 4, SHAPE(kSequences, kKeyHeads, 1, kD)),
                  new_v = tensor(v, kF32, 4, SHAPE(kSequences, kKeyHeads, 1, kD));
    posenc_positions positions = POSENC_INIT(posenc_positions);
    positions.ids = &where;
    OK(posenc_rotate_into(rope, &k_cache, &at, &new_k, &positions, NULL));
    OK(posenc_rotate_into(NULL, &v_cache, &at, &new_v, NULL, NULL));
    const long before = allocations;
    const int status = posenc_attention_planned(plan, &out, &query, &k_cache, &v_cache, &run);
    if (step > 0) CHECK(allocations == before); /* the first call of a thread registers what the thread keeps */
    OK(status);
    OK(posenc_attention(&other, &query, &k_cache, &v_cache, &options, NULL));
    CHECK(memcmp(got, again, sizeof got) == 0);
    for (int s = 0; s < kSequences; ++s) {
      double want[kHeads][kD];
      reference(s, lengths[s], &q[s][0][0], want);
      /* Each on its own: fmax would pass over a NaN, and g++ 12 crashes when it vectorises a reduction by fmax for arm64. */
      for (int i = 0; i < kHeads * kD; ++i) CHECK(fabs((&got[s][0][0])[i] - (&want[0][0])[i]) < 2e-6);
    }
  }
#if COUNTS_ALLOCATIONS
  CHECK(allocations > 0); /* the counter counts */
#endif
  CHECK(own.calls > 0 && own.items >= own.calls);

  /* what does not fit is refused, and out stays as it was */
  memset(got, 0, sizeof got);
  run.workspace_size = bytes - 1;
  REFUSES(posenc_attention_planned(plan, &out, &query, &k_cache, &v_cache, &run), POSENC_INVALID,
          "the workspace has");
  free(run.workspace);
  run.workspace = NULL;
  REFUSES(posenc_attention_planned(plan, &out, &query, &k_cache, &v_cache, &run), POSENC_INVALID,
          "workspace is NULL");
  lengths[0] = kMost + 1;
  REFUSES(posenc_attention_planned(plan, &out, &query, &k_cache, &v_cache, NULL), POSENC_INVALID,
          "one of key_lengths is 17");
  lengths[0] = 11;
  pages[0][1] = kPages;
  REFUSES(posenc_attention_planned(plan, &out, &query, &k_cache, &v_cache, NULL), POSENC_INVALID,
          "names page 9 but there are 9");
  pages[0][1] = 2;
  const posenc_tensor single = tensor(q, kF32, 4, SHAPE(1, kHeads, 1, kD));
  REFUSES(posenc_attention_planned(plan, &out, &single, &k_cache, &v_cache, NULL), POSENC_INVALID,
          "the plan was made for q of type f32 and shape [2, 4, 1, 16]");
  REFUSES(posenc_attention_planned(NULL, &out, &query, &k_cache, &v_cache, NULL), POSENC_INVALID,
          "the plan is missing");
  REFUSES(posenc_plan_workspace(NULL, 1, &bytes), POSENC_INVALID, "the plan is missing");
  REFUSES(posenc_plan_workspace(plan, -1, &bytes), POSENC_INVALID, "threads");
  for (int i = 0; i < kSequences * kHeads * kD; ++i) CHECK((&got[0][0][0])[i] == 0);
  OK(posenc_attention_planned(plan, &out, &query, &k_cache, &v_cache, NULL)); /* it allocates by itself then */
  CHECK(memcmp(got, again, sizeof got) == 0);
  posenc_plan_free(plan);
  posenc_plan_free(NULL);

  /* a plan reads its numbers in place, or says that it cannot */
  int32_t narrow_lengths[kSequences] = {5, 9};
  const posenc_tensor narrow = tensor(narrow_lengths, kI32, 1, SHAPE(kSequences));
  options.key_lengths = &narrow;
  REFUSES(posenc_plan_attention(&like, &options, &plan), POSENC_INVALID, "key_lengths must be dense i64");
  options.key_lengths = &ends;
  int64_t wide_pages[kSequences][kRow] = {{7, 2, 5, -1}, {0, 8, 3, 6}};
  const posenc_tensor wide = tensor(wide_pages, kI64, 2, SHAPE(kSequences, kRow));
  options.block_table = &wide;
  REFUSES(posenc_plan_attention(&like, &options, &plan), POSENC_INVALID, "block_table must be dense i32");
  OK(posenc_attention(&other, &query, &k_cache, &v_cache, &options, NULL)); /* a call takes them */
  CHECK(memcmp(got, again, sizeof got) == 0);
  wide_pages[1][0] = INT64_C(1) << 40;
  REFUSES(posenc_attention(&other, &query, &k_cache, &v_cache, &options, NULL), POSENC_INVALID,
          "names page 2147483647 or more but there are 9");
  wide_pages[1][0] = 0;
  const posenc_tensor turned = tensor(wide_pages, kI64, 2, SHAPE(kRow, kSequences));
  options.block_table = &turned;
  REFUSES(posenc_attention(&other, &query, &k_cache, &v_cache, &options, NULL), POSENC_INVALID,
          "block_table has 4 rows but key_lengths has 2 numbers");
  const posenc_tensor none = tensor(wide_pages, kI64, 2, SHAPE(kSequences, 0));
  options.block_table = &none;
  REFUSES(posenc_attention(&other, &query, &k_cache, &v_cache, &options, NULL), POSENC_INVALID,
          "[sequences, pages] but is [2, 0]");
  const posenc_tensor numbers = tensor(q, kF32, 2, SHAPE(kSequences, kRow));
  options.block_table = &numbers;
  REFUSES(posenc_attention(&other, &query, &k_cache, &v_cache, &options, NULL), POSENC_UNSUPPORTED,
          "block_table must be integers");
  options.block_table = &table;
  int64_t counts[kSequences] = {1, 1};
  const posenc_tensor packed = tensor(counts, kI64, 1, SHAPE(kSequences));
  options.packed = &packed;
  const posenc_tensor tokens = tensor(q, kF32, 3, SHAPE(kHeads, kSequences, kD)),
                      rows = tensor(got, kF32, 3, SHAPE(kHeads, kSequences, kD)),
                      others = tensor(again, kF32, 3, SHAPE(kHeads, kSequences, kD));
  like.q = &tokens;
  OK(posenc_plan_attention(&like, &options, &plan));
  for (int step = 0; step < 3; ++step) { /* the numbers of queries are read at each call */
    counts[0] = step, counts[1] = kSequences - step;
    OK(posenc_attention_planned(plan, &rows, &tokens, &k_cache, &v_cache, NULL));
    OK(posenc_attention(&others, &tokens, &k_cache, &v_cache, &options, NULL));
    CHECK(memcmp(got, again, sizeof got) == 0);
  }
  counts[1] = 1;
  REFUSES(posenc_attention_planned(plan, &rows, &tokens, &k_cache, &v_cache, NULL), POSENC_INVALID,
          "the packed lengths must sum to the 2 tokens of q");
  posenc_plan_free(plan);
  like.q = &query;
  REFUSES(posenc_plan_attention(NULL, &options, &plan), POSENC_INVALID, "inputs is missing");
  options.packed = NULL;
  like.v = NULL;
  REFUSES(posenc_plan_attention(&like, &options, &plan), POSENC_INVALID, "v is missing");
  REFUSES(posenc_attention_workspace(&like, &options, &bytes), POSENC_INVALID, "v is missing");
  like.v = &v_cache;
  REFUSES(posenc_attention_workspace(&like, &options, &bytes), POSENC_INVALID, "on the host, make a plan first");
  posenc_form_free(rope);
}

static void test_slots(void) {
  int64_t pages[] = {3, 1, -1}, slots[3] = {0, 0, 0};
  const posenc_tensor row = tensor(pages, kI64, 1, SHAPE(3)), out = tensor(slots, kI64, 1, SHAPE(3));
  OK(posenc_slots_of(&out, &row, 2, 1));
  CHECK(slots[0] == 7 && slots[1] == 2 && slots[2] == 3);
  REFUSES(posenc_slots_of(&out, &row, 2, 2), POSENC_INVALID, "token 4 is in page -1");
  REFUSES(posenc_slots_of(&out, &row, 2, 4), POSENC_INVALID,
          "3 tokens from token 4 on do not fit into 3 pages of 2 tokens");
  REFUSES(posenc_slots_of(&out, &row, 0, 0), POSENC_INVALID, "page_size must be 1 or more but is 0");
  REFUSES(posenc_slots_of(&out, &row, 2, -1), POSENC_INVALID, "must be 0 or more");
  REFUSES(posenc_slots_of(NULL, &row, 2, 0), POSENC_INVALID, "out is missing");
  REFUSES(posenc_slots_of(&out, NULL, 2, 0), POSENC_INVALID, "pages is missing");
  float x[3] = {0, 0, 0};
  const posenc_tensor numbers = tensor(x, kF32, 1, SHAPE(3));
  REFUSES(posenc_slots_of(&numbers, &row, 2, 0), POSENC_INVALID, "out must be dense i64");
  CHECK(slots[0] == 7 && slots[1] == 2 && slots[2] == 3);
  posenc_form* const waves = prepared("{\"scheme\": \"sinusoidal\", \"width\": 4}");
  const posenc_tensor cache = tensor(k_pool, kF32, 4, SHAPE(1, 1, 4, 4)), key = tensor(x, kF32, 2, SHAPE(1, 3));
  REFUSES(posenc_rotate_into(waves, &cache, &row, &key, NULL, NULL), POSENC_INVALID,
          "an addition belongs to the embeddings");
  posenc_form_free(waves);
}

/* What a layer says beside its options. */
static void test_layer(void) {
  const char* const roberta =
      "{\"model_type\": \"roberta\", \"hidden_size\": 16, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
      "\"max_position_embeddings\": 34}";
  posenc_layer* layer = NULL;
  OK(posenc_layer_read(roberta, strlen(roberta), 0, NULL, &layer));
  CHECK(posenc_layer_first_position(layer) == 2);
  char* notes = NULL;
  OK(posenc_layer_notes(layer, &notes));
  CHECK(text_has(notes, "[\"the trained table of positions is added to the embeddings; it was not given\""));
  REFUSES(posenc_layer_notes(NULL, &notes), POSENC_INVALID, "the layer is missing");
  CHECK(posenc_layer_first_position(NULL) == 0);
  posenc_layer_free(layer);
}

int main(void) {
  test_decoder();
  test_slots();
  test_layer();
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
