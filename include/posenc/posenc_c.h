/* posenc_c.h: the C API. C11; it includes no other posenc header.
 *
 * A function that can fail returns 0 on success and a posenc_status otherwise; posenc_error() then returns the reason, for
 * the calling thread. No function throws, prints or aborts. No function keeps a pointer after it returns, with two
 * exceptions: a form refers to the tensors given to posenc_prepare, posenc_prepare_table or posenc_form_bind, and a layer
 * to the tables and sinks given to posenc_layer_read. These must outlive the form or the layer.
 * Structs begin with their size: POSENC_INIT(posenc_run) sets it, and fields unknown to an older caller read as 0.
 * What each function computes, its error bounds and its ranges are documented in apply.h, attention.h and model.h. */
#ifndef POSENC_C_H
#define POSENC_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POSENC_C_ABI 1
#define POSENC_INIT(type) ((type){.size = sizeof(type)})
#if defined(__GNUC__)
#define POSENC_API __attribute__((visibility("default")))
#else
#define POSENC_API
#endif

typedef enum {
  POSENC_OK = 0,
  POSENC_INVALID = 1,     /* a shape, type, field or position that is invalid */
  POSENC_NO_MEMORY = 2,   /* an allocation failed */
  POSENC_UNSUPPORTED = 3, /* valid, but this build cannot compute it */
  POSENC_DEVICE = 4,      /* a tensor on a device that this build or this machine does not have */
  POSENC_INTERNAL = 5     /* a bug in posenc */
} posenc_status;

/* --- tensors: the same layout as DLPack's DLTensor, so that a pointer to one can be passed directly ----------------- */

typedef struct {
  int32_t type; /* DLDeviceType: 1 host, 2 CUDA, 3 host memory pinned by CUDA */
  int32_t id;
} posenc_device;

typedef struct {
  uint8_t code; /* DLDataTypeCode: 0 integer, 1 unsigned, 2 float, 4 bfloat, 6 bool */
  uint8_t bits;
  uint16_t lanes; /* 1; of a cache of q8_0, 34: an element is a block of ggml, 32 features in 34 bytes */
} posenc_dtype; /* {2, 32, 1} f32, {2, 64, 1} f64, {2, 16, 1} f16, {4, 16, 1} bf16, {0, 64, 1} i64, {1, 8, 34} q8_0 */

typedef struct {
  void* data;
  posenc_device device;
  int32_t ndim; /* at most 8 */
  posenc_dtype dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: dense, the last axis contiguous */
  uint64_t byte_offset;
} posenc_tensor;

/* --- the library ---------------------------------------------------------------------------------------------------- */

POSENC_API const char* posenc_version(void);
POSENC_API int posenc_abi(void); /* POSENC_C_ABI of the library that was loaded */
POSENC_API const char* posenc_error(void);
POSENC_API void posenc_free(void* text); /* frees a string returned through a char**; NULL is allowed */

/* {"schemes": [{"name", "family", "formula", "fields": [{"name", "type", "default", "help"}, …]}, …], "scalings": […]} */
POSENC_API int posenc_schemes(char** json);
POSENC_API int posenc_backends(char** json);
POSENC_API int posenc_backend(char** name);            /* in use for tensors on the host */
POSENC_API int posenc_force_backend(const char* name); /* for the whole process; "" restores the default */
POSENC_API int posenc_threads(int* count);
POSENC_API int posenc_set_threads(int count);    /* for the whole process; 0 restores the default */
POSENC_API int posenc_synchronize(void* stream); /* waits for a GPU, and reports problems detected there */

/* --- schemes become forms ------------------------------------------------------------------------------------------- */

typedef struct posenc_form posenc_form; /* immutable: any number of threads may share it */

typedef struct {
  size_t size;
  int64_t length;         /* tokens in the sequence; 0: unknown */
  const char* numerics;   /* "exact", "hf-f32", "ggml-f32"; NULL: exact */
  const char* table_type; /* round a rotation's cosines and sines to this type, e.g. "bf16"; NULL: no rounding */
  const char* arithmetic; /* round every product and sum of a rotation to this type; NULL: f32, f64 for f64 */
  const posenc_tensor* weights;       /* the trained table of a scheme that has one */
  const posenc_tensor* key_weights;   /* a second table, dotted with keys (DeBERTa) */
  const posenc_tensor* value_weights; /* a third table, added to values (Shaw) */
  const posenc_tensor* denominators;  /* i64 or i32, [1] or [axes]: positions are fractions, id / denominator */
} posenc_prepare_options;

/* scheme_json: {"scheme": "rope", "dims": 128, "base": 500000.0}; missing fields have their defaults. */
POSENC_API int posenc_prepare(const char* scheme_json, const posenc_prepare_options* options, posenc_form** out);
/* A rotation by the caller's own cosines and sines, [rows, pairs] or [batch, sequence, pairs]; layout: "halves" (also
   NULL), "interleaved" … */
POSENC_API int posenc_prepare_table(const posenc_tensor* cosines, const posenc_tensor* sines, const char* layout,
                                    posenc_form** out);
/* The same form with another trained table of the same shape. */
POSENC_API int posenc_form_bind(const posenc_form* form, const posenc_tensor* weights,
                                const posenc_tensor* key_weights, posenc_form** out);
/* The same for a scheme with a table for values (Shaw). */
POSENC_API int posenc_form_bind_all(const posenc_form* form, const posenc_tensor* weights,
                                    const posenc_tensor* key_weights, const posenc_tensor* value_weights,
                                    posenc_form** out);
POSENC_API int posenc_form_adjoint(const posenc_form* form, posenc_form** out); /* propagates gradients backwards */
POSENC_API int posenc_form_inverse(const posenc_form* form, posenc_form** out); /* undoes the rotation */
/* One head of a form that differs from head to head. */
POSENC_API int posenc_form_head(const posenc_form* form, int64_t head, posenc_form** out);
/* Heads first … first + count − 1 of any form, for a process that has only these; what all heads share remains as it is. */
POSENC_API int posenc_form_slice_heads(const posenc_form* form, int64_t first, int64_t count, posenc_form** out);
POSENC_API int posenc_form_for_keys(const posenc_form* form, posenc_form** out); /* differs for xPos */
/* {"kind": "rotation", "axes": 1, "pairs": 64, "layout", "magnitude", "softmax_factor", "frequencies": […]}, …
   "heads" for a bias and for a rotation that differs from head to head, "width" for an addition. */
POSENC_API int posenc_form_json(const posenc_form* form, char** json);
POSENC_API void posenc_form_free(posenc_form* form);

/* The canonical JSON of a scheme: every field, in order. */
POSENC_API int posenc_scheme_json(const char* name_or_json, char** json);

/* --- positions ------------------------------------------------------------------------------------------------------ */

typedef struct {
  size_t size;
  int64_t first; /* without ids: first, first + 1, … */
  const posenc_tensor*
      ids;      /* i64 or i32: [sequence] or [batch, sequence], preceded by an axis of coordinates if axes > 1 */
  int32_t axes; /* coordinates per position; 0 means 1 */
} posenc_positions;

/* Each writes i64 to a dense `out` on the host. */
POSENC_API int posenc_packed_positions(const posenc_tensor* out, const posenc_tensor* lengths);
POSENC_API int posenc_grid_positions(const posenc_tensor* out, const posenc_tensor* extents);
/* mask is [batch, sequence]; rule is "cumulative" (NULL) or "roberta"; padding is the position of padding tokens */
POSENC_API int posenc_positions_from_mask(const posenc_tensor* out, const posenc_tensor* mask, const char* rule,
                                          int64_t padding);

/* A piece of a sequence for M-RoPE, whose positions are time, height and width: text (tokens), or a grid of patches before
   merging: an image has 1 frame. mrope.h has the rules. */
typedef struct {
  size_t size;
  int64_t text; /* tokens of text or audio; 0: a grid */
  int64_t frames, rows, columns;
  int64_t time_step; /* positions between two frames: 1 for Qwen2-VL */
  double seconds;    /* per frame, instead of time_step (Qwen-Omni); 0: time_step */
  int64_t sound;     /* audio tokens of a video */
} posenc_mrope_piece;

typedef struct {
  size_t size;
  int64_t merge;           /* merge × merge patches are one token; 0 means 2 */
  int64_t first;           /* the position of the first token */
  int32_t advance_largest; /* text continues past the largest position of any axis (vLLM); 0: past the grid's sides */
  int64_t rate;            /* positions per second; 0 means 25 */
  int64_t chunk;           /* positions per chunk of frames or audio; 0 means 50 */
} posenc_mrope_options;

/* Writes [3, tokens], for posenc_positions with 3 axes. pieces[0].size is the distance between pieces. `tokens`, the number of
   tokens, and `next`, the position of the first generated one, may be NULL; so may `out`, to ask for the tokens. */
POSENC_API int posenc_mrope_positions(const posenc_tensor* out, const posenc_mrope_piece* pieces, size_t count,
                                      const posenc_mrope_options* options, int64_t* tokens, int64_t* next);

/* --- verbs ---------------------------------------------------------------------------------------------------------- */

typedef struct {
  size_t size;
  void* stream;    /* a CUstream; NULL: the default stream. Ignored for tensors on the host */
  int32_t threads; /* threads of this call, for tensors on the host; 0: as many as posenc_threads returns */
  /* For attention: the caller's memory, used instead of allocating. On the host, with a plan, at least as large as
     posenc_plan_workspace returns; on a GPU, GPU memory as large as posenc_attention_workspace returns. NULL: it allocates. */
  void* workspace;
  size_t workspace_size;
  /* The caller's threads, used instead of the library's for tensors on the host: calls item(data, i) for every i from 0 to
     count - 1, in any order, on at most `threads` threads at once, and returns when all calls have returned. */
  void (*pool)(void* context, int64_t count, void (*item)(void* data, int64_t i), void* data);
  void* pool_context;
} posenc_run;

/* For an addition: out is [.., sequence, width] and sines is NULL. For a rotation: out receives the cosines, and both are
   [.., sequence, pairs]. */
POSENC_API int posenc_tabulate(const posenc_form* form, const posenc_tensor* out, const posenc_tensor* sines,
                               const posenc_positions* positions, const posenc_run* run);
/* out = x + the vector of its position; out may be x. */
POSENC_API int posenc_add(const posenc_form* form, const posenc_tensor* out, const posenc_tensor* x,
                          const posenc_positions* positions, const posenc_run* run);
POSENC_API int posenc_add_backward(const posenc_tensor* d_table, const posenc_tensor* d_out,
                                   const posenc_positions* positions, int64_t offset, const posenc_run* run);

typedef struct {
  const posenc_tensor* q;
  const posenc_tensor* k; /* NULL: one tensor */
} posenc_query_key;

/* [batch, heads, sequence, features], [heads, sequence, features] or [sequence, features], any strides; out may be x. */
POSENC_API int posenc_rotate(const posenc_form* form, posenc_query_key out, posenc_query_key x,
                             const posenc_positions* positions, const posenc_run* run);
POSENC_API int posenc_rotate_backward(const posenc_form* form, posenc_query_key d_out,
                                      const posenc_positions* positions, const posenc_run* run);
POSENC_API int posenc_rerotate(const posenc_form* from, const posenc_form* to, const posenc_tensor* x,
                               const posenc_positions* positions, const posenc_run* run);

/* Moves rotated keys to other positions, in place: a key that `form` rotated for position p becomes the key it would rotate
   for p + by. */
POSENC_API int posenc_shift(const posenc_form* form, const posenc_tensor* keys, int64_t by, const posenc_run* run);

/* A paged cache is [pages, heads, page size, features] in any strides. Slot s is token s mod page size of page s / page size.
   Slots are i64 or i32; tokens with a negative slot are skipped. For a cache on a GPU they may be on the host, or dense on the
   GPU, where a slot past the end of the cache skips its token and is reported by the next posenc_synchronize. */

/* The slots of tokens first, first + 1, … of a sequence that has these pages (i32 or i64: its row of a block table), one for
   each element of `out`, dense i64. */
POSENC_API int posenc_slots_of(const posenc_tensor* out, const posenc_tensor* pages, int64_t page_size,
                               int64_t first);

/* Writes each token of k to its slot in the cache. k is [batch, heads, sequence, features], [heads, sequence, features] or
   [sequence, features]; slots is [batch, sequence]. A rotation rotates tokens by their positions; with a bias, or NULL (for
   values), they are copied unchanged. An addition is rejected. */
POSENC_API int posenc_rotate_into(const posenc_form* form, const posenc_tensor* cache, const posenc_tensor* slots,
                                  const posenc_tensor* k, const posenc_positions* positions, const posenc_run* run);
/* The same for a cache of e4m3 (DLPack's float8_e4m3fn, or bytes that hold it): elements are divided by the scale before they
   are rounded, and attention multiplies them by it. f32 on the host, [1] or [heads]; NULL: 1. */
POSENC_API int posenc_rotate_into_scaled(const posenc_form* form, const posenc_tensor* cache,
                                         const posenc_tensor* scale, const posenc_tensor* slots,
                                         const posenc_tensor* k, const posenc_positions* positions,
                                         const posenc_run* run);

typedef struct {
  const posenc_tensor *k, *v;
} posenc_key_value;

/* The new tokens of a step, each as k in posenc_rotate_into. */
typedef struct {
  size_t size;
  const posenc_tensor* q; /* NULL: only keys and values are written */
  const posenc_tensor *k, *v;
  const posenc_tensor* q_out; /* receives the queries; may be q */
  /* The weights of an RMS norm that is applied before the rotation, x / sqrt(mean(x * x) + norm_epsilon) * (weight +
     norm_offset): [features] for each head, [heads, features] for all heads of a token. NULL: no norm */
  const posenc_tensor *q_norm, *k_norm;
  double norm_epsilon;                    /* 0: 1e-6 */
  double norm_offset;                     /* 1 for Gemma, which stores weight - 1 */
  const posenc_tensor *k_scale, *v_scale; /* of caches of e4m3, as in posenc_rotate_into_scaled */
} posenc_new_tokens;

/* A step of a decoder: writes rotated q to q_out, rotated k and unchanged v to their slots; on a GPU with a single kernel. With
   a bias, or NULL, nothing is rotated. */
POSENC_API int posenc_append(const posenc_form* form, posenc_key_value cache, const posenc_tensor* slots,
                             const posenc_new_tokens* tokens, const posenc_positions* positions,
                             const posenc_run* run);

/* Copies the token in slot from[i] to slot to[i], as if all were read before any is written. */
POSENC_API int posenc_copy_slots(const posenc_tensor* cache, const posenc_tensor* to, const posenc_tensor* from,
                                 const posenc_run* run);
/* posenc_shift for the keys in the given slots of a cache. */
POSENC_API int posenc_shift_slots(const posenc_form* form, const posenc_tensor* cache, const posenc_tensor* slots,
                                  int64_t by, const posenc_run* run);

/* out is [heads, queries, keys] or [batch, heads, queries, keys]. */
POSENC_API int posenc_bias(const posenc_form* form, const posenc_tensor* out, const posenc_positions* queries,
                           const posenc_positions* keys, const posenc_run* run);
/* Adds to d_parameters, which is [heads], [rows, heads] or [n], as for bias_backward in apply.h. */
POSENC_API int posenc_bias_backward(const posenc_form* form, const posenc_tensor* d_parameters,
                                    const posenc_tensor* d_out, const posenc_positions* queries,
                                    const posenc_positions* keys, const posenc_run* run);

/* --- attention: the fields are those of AttentionOptions in attention.h ----------------------------------------------- */

/* Multiplies each query by a factor that depends on n = position + shift. Rule 0: 1 + scale * ln(1 + floor(n / length));
   rule 1: 1 + scale * ln(max(1, n / length)); rule 2: scale * ln(n). */
typedef struct {
  size_t size;
  double scale;
  int64_t length, shift;
  int32_t rule;
} posenc_temperature;

/* The options of attention, written by cmake/c_options.cpp from AttentionOptions::fields in attention.h. NULL: not set. */
/* clang-format off */
typedef struct {
  size_t size;
  const posenc_form* position; /* a rotation (q and k are rotated as they are loaded) or a bias (added to scores) */
  int32_t causal; /* a query attends to no key after its own token */
  int32_t keys_are_rotated; /* k was rotated before (a cache of rotated keys), so only q is */
  int64_t window; /* n: a query attends only to keys less than n positions away; 0: no limit */
  const double* scale; /* multiplies q·k; unset: 1/√features (T5 needs 1) */
  const posenc_positions* query_positions; /* unset: 0, 1, 2 … in each sequence, with the queries at its end */
  const posenc_positions* key_positions; /* unset: 0, 1, 2 … in each sequence */
  const posenc_tensor* query_lengths; /* [batch]: of shorter sequences; queries past the end give zeros */
  const posenc_tensor* key_lengths; /* [batch]: of shorter sequences; keys past the end are not read */
  const posenc_tensor* packed; /* the lengths of sequences packed one after another, which do not see each other */
  const posenc_tensor* packed_keys; /* the same for keys; unset: as packed */
  const posenc_tensor* key_mask; /* [batch, keys]: 0 marks padding, which no query attends to */
  const posenc_tensor* weights; /* written: [batch, heads, queries, keys] in out's type, for small inputs */
  const posenc_tensor* logsumexp; /* written: [batch, heads, queries], f32 or f64: log of the sum of e^score */
  int64_t chunk; /* n: a query attends only to keys in its own chunk of n positions (Llama 4); 0: no chunks */
  double softcap; /* c: scaled scores become c · tanh(score / c) (Gemma 2); 0: no cap */
  const posenc_temperature* temperature; /* multiplies each query by a factor that depends on its position */
  const posenc_tensor* sinks; /* [heads]: logits that take part in every softmax and have no value (gpt-oss) */
  const posenc_tensor* mask; /* broadcast to [batch, heads, queries, keys]: bool, or numbers added to the scores */
  int32_t repeatable; /* bitwise reproducible gradients on a GPU, slower; on the host always so */
  const posenc_tensor* position_queries; /* as q: dotted with a form's vectors in q's place (relative-logits) */
  const posenc_tensor* log_gates; /* [batch, heads, keys]: logarithms of gates whose sums a form adds (forget-gate) */
  int32_t rounds_rotated; /* f16 and bf16: round rotated q and k to their type; a GPU always does */
  const posenc_tensor* block_table; /* [sequences, pages of each]: k and v are pools of pages; needs key_lengths */
  const posenc_tensor* spans; /* [batch, keys]: equal neighbours other than 0 are a span, whose tokens all attend to each other (images) */
  const posenc_tensor* k_scale; /* multiplies keys of e4m3: f32, [1] or [key heads] */
  const posenc_tensor* v_scale; /* multiplies values of e4m3: f32, [1] or [key heads] */
} posenc_attention_options;
/* clang-format on */

typedef enum {
  POSENC_FIELD_FLAG = 0,            /* int32_t */
  POSENC_FIELD_INTEGER = 1,         /* int64_t */
  POSENC_FIELD_NUMBER = 2,          /* double */
  POSENC_FIELD_OPTIONAL_NUMBER = 3, /* const double* */
  POSENC_FIELD_FORM = 4,            /* const posenc_form* */
  POSENC_FIELD_POSITIONS = 5,       /* const posenc_positions* */
  POSENC_FIELD_TEMPERATURE = 6,     /* const posenc_temperature* */
  POSENC_FIELD_INTEGERS = 7,        /* const posenc_tensor*: i32 or i64, or bool or u8 */
  POSENC_FIELD_PAGES = 8,           /* const posenc_tensor*: i32 or i64, with a row for each sequence */
  POSENC_FIELD_TENSOR = 9,          /* const posenc_tensor* */
  POSENC_FIELD_TOKENS = 10,         /* const posenc_tensor*: with the axes of q */
  POSENC_FIELD_OUTPUT = 11          /* const posenc_tensor*: written */
} posenc_field_kind;

typedef struct {
  const char *name, *help;
  size_t offset; /* in posenc_attention_options */
  posenc_field_kind kind;
} posenc_field;

/* The fields of posenc_attention_options in their order, for bindings that set options by name. */
POSENC_API const posenc_field* posenc_attention_fields(size_t* count);

POSENC_API int posenc_attention(const posenc_tensor* out, const posenc_tensor* q, const posenc_tensor* k,
                                const posenc_tensor* v, const posenc_attention_options* options,
                                const posenc_run* run);

/* Merges attention over other keys into out and logsumexp, in place: partial results over disjoint keys become the result over
   all of them. Each as attention wrote it; on the host. */
POSENC_API int posenc_merge(const posenc_tensor* out, const posenc_tensor* logsumexp, const posenc_tensor* other,
                            const posenc_tensor* other_logsumexp, const posenc_run* run);

typedef struct {
  size_t size;
  const posenc_tensor *q, *k, *v;
  const posenc_tensor *out, *logsumexp; /* the outputs of attention; NULL: recomputed */
} posenc_attention_inputs;

typedef struct { /* NULL: not computed. q, k and v are written; the others are added to, unless noted */
  size_t size;
  const posenc_tensor *q, *k, *v;
  const posenc_tensor *parameters, *query_vectors, *key_vectors;
  const posenc_tensor* sinks;
  const posenc_tensor *value_vectors, *query_offsets;
  const posenc_tensor* position_queries; /* written */
  const posenc_tensor* log_gates;        /* written */
} posenc_attention_gradients;

POSENC_API int posenc_attention_backward(const posenc_attention_gradients* gradients, const posenc_tensor* d_out,
                                         const posenc_attention_inputs* inputs,
                                         const posenc_attention_options* options, const posenc_run* run);

/* The size in bytes of the workspace that such a call needs on a GPU; nothing is computed. On the host, use
   posenc_plan_workspace. */
POSENC_API int posenc_attention_workspace(const posenc_attention_inputs* inputs,
                                          const posenc_attention_options* options, size_t* bytes);

/* Attention prepared for many calls with the same options and shapes, such as the steps of a decoder, on the host. The plan
   copies the options, but not the memory that their tensors refer to, which is read at each call: a decoder updates
   key_lengths, block_table and ids in place. key_lengths and ids must be dense i64, block_table dense i32. The tensors'
   memory, and the tables of the form, must outlive the plan; their descriptions (posenc_tensor, shape) need not. */
typedef struct posenc_plan posenc_plan; /* any number of threads may share it */

/* q, k and v of `like` have the shapes and types of every call; their data is not read. With packed queries over pages, a
   call may have fewer tokens in q and out: what the options have for each query then counts for the first ones. */
POSENC_API int posenc_plan_attention(const posenc_attention_inputs* like, const posenc_attention_options* options,
                                     posenc_plan** out);
/* The size in bytes that posenc_run.workspace must have for a call on `threads` threads (0: as many as posenc_threads
   returns), for any lengths of which none has fewer keys than queries. */
POSENC_API int posenc_plan_workspace(const posenc_plan* plan, int32_t threads, size_t* bytes);
/* attention with the options of the plan. With a workspace, in f32, f16 and bf16 and without weights, it allocates nothing.
   Calls with different workspaces may run concurrently. */
POSENC_API int posenc_attention_planned(const posenc_plan* plan, const posenc_tensor* out, const posenc_tensor* q,
                                        const posenc_tensor* k, const posenc_tensor* v, const posenc_run* run);
POSENC_API void posenc_plan_free(posenc_plan* plan);

/* --- a layer of a model ------------------------------------------------------------------------------------------------ */

typedef struct posenc_layer posenc_layer; /* immutable, like a form */

typedef struct {
  size_t size;
  const char* part; /* "encoder", "decoder", "vision" …: required if several parts have layer i; NULL: the only one */
  const posenc_prepare_options* prepare; /* the length of the sequence, the numerics, trained tables */
  const posenc_tensor* sinks; /* [heads]: the trained logits of a layer with sinks; must outlive the layer */
  int32_t causal; /* 0: as specified by the file; 1 causal, 2 not causal: required if it does not specify */
} posenc_layer_inputs;

/* Layer i of a model, counted from 0; `file` holds the contents of a config.json or .gguf file, `size` bytes. A layer that
   posenc cannot compute is rejected. */
POSENC_API int posenc_layer_read(const char* file, size_t size, int64_t i, const posenc_layer_inputs* inputs,
                                 posenc_layer** out);
/* The layer's position, scale, mask, softcap, sinks and temperature. Copy them and set the fields that change from call to
   call; they are valid as long as the layer. */
POSENC_API const posenc_attention_options* posenc_layer_attention(const posenc_layer* layer);
/* The form to be added to the embeddings once, before the first layer, or NULL. Valid as long as the layer. */
POSENC_API const posenc_form* posenc_layer_addition(const posenc_layer* layer);
/* The position of the first token (RoBERTa and M2M100: 2). */
POSENC_API int64_t posenc_layer_first_position(const posenc_layer* layer);
/* ["…", …]: what else the family does with position, which is left to the caller. */
POSENC_API int posenc_layer_notes(const posenc_layer* layer, char** json);
POSENC_API void posenc_layer_free(posenc_layer* layer);

/* --- models and verdicts: the same JSON that the program prints with --json -------------------------------------------- */

/* `file` holds the contents of a config.json or .gguf file, `size` bytes. */
POSENC_API int posenc_read_model(const char* file, size_t size, char** json);
/* engines: e.g. "hf,vllm"; NULL: the default ones. length 0: the longest that the model supports. */
POSENC_API int posenc_compare_engines(const char* file, size_t size, const char* engines, int64_t length,
                                      char** json);

typedef struct {
  size_t size;
  const posenc_positions* positions; /* of the tokens, or queries; NULL: consecutive from 0 */
  const posenc_positions* keys;      /* for a bias: of the keys; NULL: as the queries, or consecutive */
  int32_t causal;                    /* for a bias: compare only keys at or before their query */
  double tolerance;                  /* 0: the default for the type */
  const posenc_tensor* weights;      /* the trained table of a scheme that has one */
  int64_t length; /* tokens in the whole sequence, for scalings that depend on it; 0: up to the last position */
} posenc_check_options;

/* Whether the scheme, applied to `before`, gives `after`; both on the host. */
POSENC_API int posenc_check(const char* scheme_json, const posenc_tensor* before, const posenc_tensor* after,
                            const posenc_check_options* options, char** json);
/* Which convention turns `before` into `after`. positions NULL: to be determined. */
POSENC_API int posenc_diagnose(const posenc_tensor* before, const posenc_tensor* after,
                               const posenc_positions* positions, char** json);

/* The data of a figure, as `posenc plot --json` prints it. kind: "waves", "heatmap", "decay" …; request_json: {"schemes":
   [{"scheme": "rope", …}], "zoom": [0, 512], "at": 37, "shift": 5, "features": [0, 2], "numerics": "exact", "length": 0,
   "trained": 4096, "factor": 8.0, "lines": false}. Every key has a default; NULL means all defaults. */
POSENC_API int posenc_figure(const char* kind, const char* request_json, char** json);

#ifdef __cplusplus
}
#endif
#endif
