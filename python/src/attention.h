/* Attention, its gradients and plans. Included by _posenc.c alone. */
#pragma once

#include <stdatomic.h>

#include "arguments.h"

/* --- attention -------------------------------------------------------------------------------------------------------- */

/* The library's own list of options, and their names as Python's. */
enum { MOST_OPTIONS = 64 };
static const posenc_field* option_fields = NULL;
static size_t option_count = 0;
static PyObject* option_names[MOST_OPTIONS];

static int list_options(void) { /* when the module is loaded */
  option_fields = posenc_attention_fields(&option_count);
  size_t known = 0; /* a newer library may have more than this struct has room for */
  while (known < option_count && known < MOST_OPTIONS &&
         option_fields[known].offset < sizeof(posenc_attention_options))
    ++known;
  option_count = known;
  for (size_t i = 0; i < option_count; ++i) {
    option_names[i] = PyUnicode_InternFromString(option_fields[i].name);
    if (option_names[i] == NULL) return -1;
  }
  return 0;
}

typedef struct {
  posenc_attention_options value;
  union {
    posenc_positions positions;
    posenc_temperature temperature;
    double number;
  } held[MOST_OPTIONS]; /* what the value refers to */
} Options;

/* How the arrays of options are taken: the axes of positions, the order of q's axes, flags of all (KEEP) and of outputs. */
typedef struct {
  long axes;
  PyObject* order;
  int flags, output_flags;
} Taking;

static int take_option(Arrays* arrays, size_t i, PyObject* x, const Taking* how, const char* verb, Options* out) {
  void* const at = (char*)&out->value + option_fields[i].offset;
  const char* const name = option_fields[i].name;
  switch (option_fields[i].kind) {
    case POSENC_FIELD_FLAG:
      *(int32_t*)at = PyObject_IsTrue(x);
      break;
    case POSENC_FIELD_INTEGER:
      *(int64_t*)at = PyLong_AsLongLong(x);
      break;
    case POSENC_FIELD_NUMBER:
      *(double*)at = PyFloat_AsDouble(x);
      break;
    case POSENC_FIELD_OPTIONAL_NUMBER:
      out->held[i].number = PyFloat_AsDouble(x);
      *(const double**)at = &out->held[i].number;
      break;
    case POSENC_FIELD_FORM:
      *(const posenc_form**)at = form_from(x);
      break;
    case POSENC_FIELD_POSITIONS:
      *(const posenc_positions**)at = &out->held[i].positions;
      return take_positions_as(arrays, x, how->axes, verb, name, &out->held[i].positions, how->flags);
    case POSENC_FIELD_TEMPERATURE: { /* (scale, length, shift, rule) */
      posenc_temperature* const factor = &out->held[i].temperature;
      *factor = POSENC_INIT(posenc_temperature);
      *(const posenc_temperature**)at = factor;
      return PyArg_ParseTuple(x, "dLL|i", &factor->scale, &factor->length, &factor->shift, &factor->rule) ? 0 : -1;
    }
    case POSENC_FIELD_TOKENS:
      *(const posenc_tensor**)at = take_in_order(arrays, x, how->order, verb, name, how->flags);
      break;
    case POSENC_FIELD_OUTPUT:
      *(const posenc_tensor**)at = take(arrays, x, verb, name, how->flags | how->output_flags | WRITE);
      break;
    default:
      *(const posenc_tensor**)at = take(arrays, x, verb, name, how->flags);
  }
  return PyErr_Occurred() ? -1 : 0;
}

/* A dict of options by name; None: not set. */
static int take_options(Arrays* arrays, PyObject* given, const Taking* how, const char* verb, Options* out) {
  out->value = POSENC_INIT(posenc_attention_options);
  if (PyErr_Occurred()) return -1;
  if (!PyDict_Check(given)) {
    PyErr_Format(PyExc_TypeError, "%s: options must be a dict", verb);
    return -1;
  }
  Py_ssize_t found = 0;
  for (size_t i = 0; i < option_count; ++i) {
    PyObject* const x = PyDict_GetItemWithError(given, option_names[i]);
    if (x == NULL && PyErr_Occurred()) return -1;
    if (x == NULL) continue;
    ++found;
    if (x != Py_None && take_option(arrays, i, x, how, verb, out)) return -1;
  }
  if (found == PyDict_Size(given)) return 0;
  PyErr_Format(PyExc_TypeError, "%s: %R holds an option that the library does not have", verb, given);
  return -1;
}

FUNCTION(options) { /* [(name, kind, help), …] */
  ARGUMENTS(0);
  PyObject* const list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < option_count; ++i) {
    const posenc_field* const field = &option_fields[i];
    PyObject* const one = Py_BuildValue("(sis)", field->name, (int)field->kind, field->help);
    const int status = one == NULL ? -1 : PyList_Append(list, one);
    Py_XDECREF(one);
    if (status) return NULL;
  }
  return list;
}

/* out, q, k and v, in their orders: a paged cache has one of its own. */
static int take_four(Arrays* arrays, PyObject* const four[4], PyObject* order, PyObject* cache_order,
                     const char* verb, const posenc_tensor* out[4], int flags) {
  static const char* const kNames[] = {"out", "q", "k", "v"};
  for (int i = 0; i < 4; ++i) {
    PyObject* const its_order = i >= 2 && cache_order != Py_None ? cache_order : order;
    out[i] = take_in_order(arrays, four[i], its_order, verb, kNames[i], flags | (i == 0 ? WRITE : 0));
  }
  return PyErr_Occurred() ? -1 : 0;
}

FUNCTION(attention) { /* out, q, k, v, options, axes, order, cache_order, flags */
  VERB(9);
  Options options;
  const int flags = (int)PyLong_AsLong(a[8]);
  const Taking how = {PyLong_AsLong(a[5]), a[6], 0, flags};
  const posenc_tensor* four[4];
  take_four(&arrays, a, a[6], a[7], "attention", four, flags);
  take_options(&arrays, a[4], &how, "attention", &options);
  RETURN_CALL(posenc_attention(four[0], four[1], four[2], four[3], &options.value, &run));
}

FUNCTION(merge) { /* out, logsumexp, other, other_logsumexp, order, flags */
  VERB(6);
  const int flags = (int)PyLong_AsLong(a[5]);
  const posenc_tensor* const out = take_in_order(&arrays, a[0], a[4], "merge", "out", IN_PLACE | flags);
  const posenc_tensor* const sums = take(&arrays, a[1], "merge", "logsumexp", IN_PLACE);
  const posenc_tensor* const other = take_in_order(&arrays, a[2], a[4], "merge", "other", flags);
  const posenc_tensor* const other_sums = take(&arrays, a[3], "merge", "other_logsumexp", 0);
  RETURN_CALL(posenc_merge(out, sums, other, other_sums, &run));
}

FUNCTION(attention_backward) { /* d_out, q, k, v, out, logsumexp, options, axes, order, gradients: (q, k, v,
   position_queries, parameters, sinks, query_vectors, key_vectors, value_vectors, query_offsets, log_gates) */
  VERB(10);
  Options options;
  const Taking how = {PyLong_AsLong(a[7]), a[8], 0, 0};
  static const char* const kNames[] = {"d_out", "q", "k", "v", "out"};
  enum { IN_ORDER = 4, GRADIENTS = 11 }; /* the first of the gradients have q's order of axes */
  const posenc_tensor* inputs[5];
  for (int i = 0; i < 5; ++i) {
    inputs[i] = take_in_order(&arrays, a[i], a[8], "attention_backward", kNames[i], 0);
  }
  posenc_attention_inputs from = POSENC_INIT(posenc_attention_inputs);
  posenc_attention_gradients to = POSENC_INIT(posenc_attention_gradients);
  from.q = inputs[1], from.k = inputs[2], from.v = inputs[3], from.out = inputs[4];
  from.logsumexp = take(&arrays, a[5], "attention_backward", "logsumexp", 0);
  if (!PyTuple_Check(a[9]) || PyTuple_Size(a[9]) != GRADIENTS) {
    PyErr_SetString(PyExc_TypeError, "11 gradients are needed");
    return failed(&arrays);
  }
  const posenc_tensor** const places[GRADIENTS] = {&to.q,
                                                   &to.k,
                                                   &to.v,
                                                   &to.position_queries,
                                                   &to.parameters,
                                                   &to.sinks,
                                                   &to.query_vectors,
                                                   &to.key_vectors,
                                                   &to.value_vectors,
                                                   &to.query_offsets,
                                                   &to.log_gates};
  for (int i = 0; i < GRADIENTS; ++i) {
    *places[i] = take_in_order(&arrays, PyTuple_GetItem(a[9], i), i >= IN_ORDER ? Py_None : a[8],
                               "attention_backward", "a gradient", WRITE);
  }
  take_options(&arrays, a[6], &how, "attention_backward", &options);
  RETURN_CALL(posenc_attention_backward(&to, inputs[0], &from, &options.value, &run));
}

/* --- plans: a capsule with the plan, the arrays that it reads at each call, and a workspace --------------------------- */

#define PLAN "posenc.plan.1"

typedef struct {
  posenc_plan* plan;
  Arrays kept;
  PyObject *form, *order, *cache_order;
  void* workspace;
  size_t bytes;
  int32_t threads;
  int flags;
  atomic_flag is_busy; /* the workspace is one call's at a time */
} Plan;

static void free_plan_parts(Plan* plan) {
  posenc_plan_free(plan->plan);
  release(&plan->kept);
  Py_XDECREF(plan->form);
  Py_XDECREF(plan->order);
  Py_XDECREF(plan->cache_order);
  PyMem_Free(plan->workspace);
  PyMem_Free(plan);
}
static void free_plan(PyObject* capsule) { free_plan_parts(PyCapsule_GetPointer(capsule, PLAN)); }
static Plan* plan_from(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, PLAN)) return PyCapsule_GetPointer(capsule, PLAN);
  PyErr_SetString(PyExc_TypeError, "the plan must be what plan_attention() of this posenc made");
  return NULL;
}

static int threads_or_default(long given, int32_t* out) {
  int count = (int)given;
  if (count == 0) count = threads_of_calls;
  const int status = count == 0 ? posenc_threads(&count) : POSENC_OK;
  *out = count;
  return status;
}

FUNCTION(plan) { /* q, k, v, options, axes, order, cache_order, threads, flags */
  ARGUMENTS(9);
  const char* const verb = "plan_attention";
  const long threads = PyLong_AsLong(a[7]), flags = PyLong_AsLong(a[8]);
  const Taking how = {PyLong_AsLong(a[4]), a[5], KEEP, (int)flags};
  if (PyErr_Occurred()) return NULL;
  if (threads < 0 || threads > 1024) {
    PyErr_Format(posenc_Error, "plan_attention: threads must be between 0 and 1024 but is %ld", threads);
    return NULL;
  }
  Plan* const made = PyMem_Calloc(1, sizeof(Plan));
  if (made == NULL) return PyErr_NoMemory();
  atomic_flag_clear(&made->is_busy);
  made->order = new_reference(a[5]), made->cache_order = new_reference(a[6]), made->flags = (int)flags;
  Arrays like; /* for this call alone: their shapes count */
  like.count = 0;
  Options options;
  posenc_attention_inputs inputs = POSENC_INIT(posenc_attention_inputs);
  PyObject* const four_given[] = {Py_None, a[0], a[1], a[2]};
  const posenc_tensor* four[4];
  if (take_four(&like, four_given, a[5], a[6], verb, four, made->flags) ||
      take_options(&made->kept, a[3], &how, verb, &options)) {
    goto fail;
  }
  made->form = PyDict_GetItemString(a[3], "position");
  Py_XINCREF(made->form);
  inputs.q = four[1], inputs.k = four[2], inputs.v = four[3];
  int status = posenc_plan_attention(&inputs, &options.value, &made->plan);
  if (status == POSENC_OK) status = threads_or_default(threads, &made->threads);
  if (status == POSENC_OK) status = posenc_plan_workspace(made->plan, made->threads, &made->bytes);
  if (status != POSENC_OK) {
    raise_status(status);
    goto fail;
  }
  made->workspace = PyMem_Malloc(made->bytes);
  if (made->workspace == NULL) {
    PyErr_NoMemory();
    goto fail;
  }
  PyObject* const capsule = PyCapsule_New(made, PLAN, free_plan);
  if (capsule == NULL) goto fail;
  release(&like);
  return capsule;
fail:
  release(&like);
  free_plan_parts(made);
  return NULL;
}
FUNCTION(plan_facts) { /* (bytes of its workspace, threads) */
  ARGUMENTS(1);
  const Plan* const plan = plan_from(a[0]);
  return plan == NULL ? NULL : Py_BuildValue("(ni)", (Py_ssize_t)plan->bytes, (int)plan->threads);
}
FUNCTION(attend) { /* plan, out, q, k, v */
  ARGUMENTS(5);
  Plan* const plan = plan_from(a[0]);
  if (plan == NULL) return NULL;
  Arrays arrays;
  arrays.count = 0;
  const posenc_tensor* four[4];
  if (take_four(&arrays, a + 1, plan->order, plan->cache_order, "attention", four, plan->flags))
    return failed(&arrays);
  posenc_run run = POSENC_INIT(posenc_run);
  run.threads = plan->threads;
  const int is_ours = !atomic_flag_test_and_set(&plan->is_busy); /* else another thread's call has it: allocate */
  if (is_ours) run.workspace = plan->workspace, run.workspace_size = plan->bytes;
  WITHOUT_GIL(posenc_attention_planned(plan->plan, four[0], four[1], four[2], four[3], &run));
  if (is_ours) atomic_flag_clear(&plan->is_busy);
  return done(&arrays, status);
}
