/* Attention, its gradients and plans. Included by _posenc.c alone. */
#pragma once

#include <stdatomic.h>

#include "arguments.h"

/* --- attention -------------------------------------------------------------------------------------------------------- */

typedef struct {
  posenc_attention_options value;
  posenc_positions queries, keys;
  posenc_temperature temperature;
  double scale;
} Options;

/* o is (form, causal, window, scale, query_positions, key_positions, keys_are_rotated, query_lengths, key_lengths,
   packed, packed_keys, key_mask, axes, chunk, softcap, temperature, sinks, mask, position_queries,
   log_gates, rounds_rotated, block_table, repeatable). `flags`: KEEP, where they are read after the call too. */
static int take_options(Arrays* arrays, PyObject* o, PyObject* order, const char* verb, Options* out, int flags) {
  enum { OPTIONS = 23 };
  if (!PyTuple_Check(o) || PyTuple_Size(o) != OPTIONS) {
    PyErr_SetString(PyExc_TypeError, "23 options are needed");
    return -1;
  }
#define OPTION(i) PyTuple_GetItem(o, i)
  posenc_attention_options* const v = &out->value;
  *v = POSENC_INIT(posenc_attention_options);
  if (OPTION(0) != Py_None && (v->position = form_from(OPTION(0))) == NULL) return -1;
  v->causal = PyObject_IsTrue(OPTION(1));
  v->window = PyLong_AsLongLong(OPTION(2));
  v->keys_are_rotated = PyObject_IsTrue(OPTION(6));
  v->rounds_rotated = PyObject_IsTrue(OPTION(20));
  v->repeatable = PyObject_IsTrue(OPTION(22));
  const long axes = PyLong_AsLong(OPTION(12));
  if (OPTION(3) != Py_None) {
    out->scale = PyFloat_AsDouble(OPTION(3));
    v->scale = &out->scale;
  }
  if (PyErr_Occurred()) return -1;
  if (OPTION(4) != Py_None) {
    if (take_positions_as(arrays, OPTION(4), axes, verb, "query_positions", &out->queries, flags)) return -1;
    v->query_positions = &out->queries;
  }
  if (OPTION(5) != Py_None) {
    if (take_positions_as(arrays, OPTION(5), axes, verb, "key_positions", &out->keys, flags)) return -1;
    v->key_positions = &out->keys;
  }
  const posenc_tensor** const lists[] = {&v->query_lengths, &v->key_lengths, &v->packed, &v->packed_keys,
                                         &v->key_mask};
  static const char* const kNames[] = {"query_lengths", "key_lengths", "packed", "packed_keys", "key_mask"};
  for (int i = 0; i < 5; ++i) {
    *lists[i] = take(arrays, OPTION(7 + i), verb, kNames[i], flags);
    if (PyErr_Occurred()) return -1;
  }
  v->block_table = take(arrays, OPTION(21), verb, "block_table", flags);
  if (PyErr_Occurred()) return -1;
  v->chunk = PyLong_AsLongLong(OPTION(13));
  v->softcap = PyFloat_AsDouble(OPTION(14));
  if (PyErr_Occurred()) return -1;
  PyObject* const temperature = OPTION(15); /* (scale, length, shift, rule) */
  if (temperature != Py_None && PyTuple_Check(temperature)) {
    out->temperature = POSENC_INIT(posenc_temperature);
    if (!PyArg_ParseTuple(temperature, "dLL|i", &out->temperature.scale, &out->temperature.length,
                          &out->temperature.shift, &out->temperature.rule))
      return -1;
    v->temperature = &out->temperature;
  }
  v->sinks = take(arrays, OPTION(16), verb, "sinks", flags);
  if (PyErr_Occurred()) return -1;
  v->mask = take(arrays, OPTION(17), verb, "mask", flags);
  if (PyErr_Occurred()) return -1;
  v->position_queries = take_in_order(arrays, OPTION(18), order, verb, "position_queries", flags);
  if (PyErr_Occurred()) return -1;
  v->log_gates = take(arrays, OPTION(19), verb, "log_gates", flags);
  return PyErr_Occurred() ? -1 : 0;
}

/* out, q, k and v, in their orders: a paged cache has one of its own. */
static int take_four(Arrays* arrays, PyObject* const four[4], PyObject* order, PyObject* cache_order,
                     const char* verb, const posenc_tensor* out[4], int flags) {
  static const char* const kNames[] = {"out", "q", "k", "v"};
  for (int i = 0; i < 4; ++i) {
    PyObject* const its_order = i >= 2 && cache_order != Py_None ? cache_order : order;
    out[i] = take_in_order(arrays, four[i], its_order, verb, kNames[i], flags | (i == 0 ? WRITE : 0));
    if (PyErr_Occurred()) return -1;
  }
  return 0;
}

FUNCTION(attention) { /* out, q, k, v, options, order, cache_order, logsumexp, weights, flags */
  ARGUMENTS(10);
  Arrays arrays;
  arrays.count = 0;
  Options options;
  const int flags = (int)PyLong_AsLong(a[9]);
  const posenc_tensor* four[4];
  if (PyErr_Occurred()) return NULL;
  if (take_four(&arrays, a, a[5], a[6], "attention", four, flags)) return failed(&arrays);
  if (take_options(&arrays, a[4], a[5], "attention", &options, 0)) return failed(&arrays);
  options.value.logsumexp = take(&arrays, a[7], "attention", "logsumexp", WRITE);
  if (!PyErr_Occurred()) options.value.weights = take(&arrays, a[8], "attention", "weights", WRITE | flags);
  if (PyErr_Occurred()) return failed(&arrays);
  const posenc_run run = run_of(&arrays);
  WITHOUT_GIL(posenc_attention(four[0], four[1], four[2], four[3], &options.value, &run));
  return done(&arrays, status);
}

FUNCTION(attention_backward) { /* d_out, q, k, v, out, logsumexp, options, order, gradients: (q, k, v,
   position_queries, parameters, sinks, query_vectors, key_vectors, value_vectors, query_offsets, log_gates) */
  ARGUMENTS(9);
  Arrays arrays;
  arrays.count = 0;
  Options options;
  static const char* const kNames[] = {"d_out", "q", "k", "v", "out"};
  enum { IN_ORDER = 4, GRADIENTS = 11 }; /* the first of the gradients have q's order of axes */
  const posenc_tensor *inputs[5], *gradients[GRADIENTS];
  for (int i = 0; i < 5; ++i) {
    inputs[i] = take_in_order(&arrays, a[i], a[7], "attention_backward", kNames[i], 0);
    if (PyErr_Occurred()) return failed(&arrays);
  }
  posenc_attention_inputs from = POSENC_INIT(posenc_attention_inputs);
  posenc_attention_gradients to = POSENC_INIT(posenc_attention_gradients);
  from.q = inputs[1], from.k = inputs[2], from.v = inputs[3], from.out = inputs[4];
  from.logsumexp = take(&arrays, a[5], "attention_backward", "logsumexp", 0);
  if (PyErr_Occurred()) return failed(&arrays);
  if (!PyTuple_Check(a[8]) || PyTuple_Size(a[8]) != GRADIENTS) {
    PyErr_SetString(PyExc_TypeError, "11 gradients are needed");
    return failed(&arrays);
  }
  for (int i = 0; i < GRADIENTS; ++i) {
    gradients[i] = take_in_order(&arrays, PyTuple_GetItem(a[8], i), i >= IN_ORDER ? Py_None : a[7],
                                 "attention_backward", "a gradient", WRITE);
    if (PyErr_Occurred()) return failed(&arrays);
  }
  to.q = gradients[0], to.k = gradients[1], to.v = gradients[2], to.position_queries = gradients[3];
  to.parameters = gradients[4], to.sinks = gradients[5], to.query_vectors = gradients[6];
  to.key_vectors = gradients[7], to.value_vectors = gradients[8], to.query_offsets = gradients[9];
  to.log_gates = gradients[10];
  if (take_options(&arrays, a[6], a[7], "attention_backward", &options, 0)) return failed(&arrays);
  const posenc_run run = run_of(&arrays);
  WITHOUT_GIL(posenc_attention_backward(&to, inputs[0], &from, &options.value, &run));
  return done(&arrays, status);
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

FUNCTION(plan) { /* q, k, v, options, order, cache_order, logsumexp, weights, threads, flags */
  ARGUMENTS(10);
  const char* const verb = "plan_attention";
  const long threads = PyLong_AsLong(a[8]), flags = PyLong_AsLong(a[9]);
  if (PyErr_Occurred()) return NULL;
  if (threads < 0 || threads > 1024) {
    PyErr_Format(posenc_Error, "plan_attention: threads must be between 0 and 1024 but is %ld", threads);
    return NULL;
  }
  Plan* const made = PyMem_Calloc(1, sizeof(Plan));
  if (made == NULL) return PyErr_NoMemory();
  atomic_flag_clear(&made->is_busy);
  made->order = Py_NewRef(a[4]), made->cache_order = Py_NewRef(a[5]), made->flags = (int)flags;
  Arrays like; /* for this call alone: their shapes count */
  like.count = 0;
  Options options;
  posenc_attention_inputs inputs = POSENC_INIT(posenc_attention_inputs);
  PyObject* const four_given[] = {Py_None, a[0], a[1], a[2]};
  const posenc_tensor* four[4];
  if (take_four(&like, four_given, a[4], a[5], verb, four, made->flags) ||
      take_options(&made->kept, a[3], a[4], verb, &options, KEEP)) {
    goto fail;
  }
  made->form = Py_NewRef(PyTuple_GetItem(a[3], 0));
  options.value.logsumexp = take(&made->kept, a[6], verb, "logsumexp", WRITE | KEEP);
  if (!PyErr_Occurred()) options.value.weights = take(&made->kept, a[7], verb, "weights", WRITE | KEEP | made->flags);
  if (PyErr_Occurred()) goto fail;
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
