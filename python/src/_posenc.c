/* posenc._posenc: Python arrays handed to the C API, in place. Limited API of Python 3.9, so one binary serves every
 * later Python; no C types, so that a build for free-threaded Python is the same file. Every function takes its
 * arguments by position: the package's Python functions have the names and defaults. */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "posenc/posenc_c.h"

#include "forms.h"

/* --- verbs ------------------------------------------------------------------------------------------------------------ */

FUNCTION(tabulate) { /* form, out, sines, where, axes, flags */
  VERB(6);
  const posenc_form* const form = form_from(a[0]);
  const int flags = WRITE | (int)PyLong_AsLong(a[5]);
  TENSOR(out, 1, flags);
  TENSOR(sines, 2, flags);
  POSITIONS(where, 3, 4);
  RETURN_CALL(posenc_tabulate(form, out, sines, &where, &run));
}

FUNCTION(add) { /* form, out, x, where, axes, flags */
  VERB(6);
  const posenc_form* const form = form_from(a[0]);
  const int flags = (int)PyLong_AsLong(a[5]), is_in_place = a[1] == a[2];
  const posenc_tensor* const out = take(&arrays, a[1], "add", is_in_place ? "x" : "out", WRITE | flags);
  const posenc_tensor* const x = is_in_place ? out : take(&arrays, a[2], "add", "x", flags);
  POSITIONS(where, 3, 4);
  RETURN_CALL(posenc_add(form, out, x, &where, &run));
}

FUNCTION(add_backward) { /* d_table, d_out, where, axes, offset */
  VERB(5);
  INTEGER(offset, 4);
  TENSOR(d_table, 0, WRITE);
  TENSOR(d_out, 1, 0);
  POSITIONS(where, 2, 3);
  RETURN_CALL(posenc_add_backward(d_table, d_out, &where, offset, &run));
}

FUNCTION(rotate) { /* form, out, x, out_k, k, where, axes, order, flags */
  VERB(9);
  const posenc_form* const form = form_from(a[0]);
  const int flags = (int)PyLong_AsLong(a[8]);
  posenc_query_key out = {NULL, NULL}, x = {NULL, NULL};
  for (int i = 0; i < 2; ++i) { /* queries, then keys */
    PyObject *const to = a[1 + 2 * i], *const from = a[2 + 2 * i];
    if (from == Py_None) break;
    const char* const name = i == 0 ? "x" : "k";
    const posenc_tensor* const made =
        take_in_order(&arrays, to, a[7], "rotate", to == from ? name : "out", WRITE | flags);
    const posenc_tensor* const read = to == from ? made : take_in_order(&arrays, from, a[7], "rotate", name, flags);
    if (made == NULL && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "rotate: out is missing");
    *(i == 0 ? &out.q : &out.k) = made;
    *(i == 0 ? &x.q : &x.k) = read;
  }
  POSITIONS(where, 5, 6);
  RETURN_CALL(posenc_rotate(form, out, x, &where, &run));
}

FUNCTION(rotate_backward) { /* form, d_q, d_k, where, axes, order */
  VERB(6);
  const posenc_form* const form = form_from(a[0]);
  posenc_query_key d;
  d.q = take_in_order(&arrays, a[1], a[5], "rotate_backward", "d_out", WRITE);
  d.k = take_in_order(&arrays, a[2], a[5], "rotate_backward", "d_out (keys)", WRITE);
  POSITIONS(where, 3, 4);
  RETURN_CALL(posenc_rotate_backward(form, d, &where, &run));
}

FUNCTION(rerotate) { /* before, after, x, where, axes, order, flags */
  VERB(7);
  const posenc_form* const before = form_from(a[0]);
  const posenc_form* const after = before == NULL ? NULL : form_from(a[1]);
  const int flags = IN_PLACE | (int)PyLong_AsLong(a[6]);
  TENSOR_IN_ORDER(x, 2, 5, flags);
  POSITIONS(where, 3, 4);
  RETURN_CALL(posenc_rerotate(before, after, x, &where, &run));
}

FUNCTION(bias) { /* form, out, queries, keys, axes, flags */
  VERB(6);
  const posenc_form* const form = form_from(a[0]);
  TENSOR(out, 1, WRITE | (int)PyLong_AsLong(a[5]));
  POSITIONS(queries, 2, 4);
  POSITIONS(keys, 3, 4);
  RETURN_CALL(posenc_bias(form, out, &queries, &keys, &run));
}

FUNCTION(bias_backward) { /* form, d_parameters, d_out, queries, keys, axes */
  VERB(6);
  const posenc_form* const form = form_from(a[0]);
  TENSOR(d_parameters, 1, WRITE);
  TENSOR(d_out, 2, 0);
  POSITIONS(queries, 3, 5);
  POSITIONS(keys, 4, 5);
  RETURN_CALL(posenc_bias_backward(form, d_parameters, d_out, &queries, &keys, &run));
}

#include "attention.h"
#include "cache.h"
#include "layer.h"

/* --- models and verdicts ---------------------------------------------------------------------------------------------- */

FUNCTION(read_model) { /* the bytes of a file */
  VERB(1);
  char* file = NULL;
  Py_ssize_t size = 0;
  PyBytes_AsStringAndSize(a[0], &file, &size);
  RETURN_TEXT(posenc_read_model(file, (size_t)size, &text));
}
FUNCTION(compare_engines) { /* bytes, engines, length */
  VERB(3);
  char* file = NULL;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(a[0], &file, &size)) return NULL;
  const char* const engines = text_or_null(a[1]);
  INTEGER(length, 2);
  RETURN_TEXT(posenc_compare_engines(file, (size_t)size, engines, length, &text));
}
FUNCTION(check) { /* json, before, after, where, keys, axes, causal, tolerance, weights, flags, order, length */
  VERB(12);
  posenc_check_options options = POSENC_INIT(posenc_check_options);
  posenc_positions where, keys;
  const char* const scheme = PyUnicode_AsUTF8AndSize(a[0], NULL);
  const long axes = PyLong_AsLong(a[5]);
  const int flags = (int)PyLong_AsLong(a[9]);
  options.causal = PyObject_IsTrue(a[6]);
  options.tolerance = PyFloat_AsDouble(a[7]);
  options.length = PyLong_AsLongLong(a[11]);
  TENSOR_IN_ORDER(before, 1, 10, flags);
  TENSOR_IN_ORDER(after, 2, 10, flags);
  take_positions(&arrays, a[3], axes, "check", &where);
  options.positions = &where;
  if (a[4] != Py_None) {
    take_positions(&arrays, a[4], axes, "check", &keys);
    options.keys = &keys;
  }
  options.weights = take(&arrays, a[8], "check", "weights", 0);
  RETURN_TEXT(posenc_check(scheme, before, after, &options, &text));
}
FUNCTION(diagnose) { /* before, after, ids, axes, flags, order */
  VERB(6);
  posenc_positions where;
  const int flags = (int)PyLong_AsLong(a[4]), has_ids = a[2] != Py_None;
  TENSOR_IN_ORDER(before, 0, 5, flags);
  TENSOR_IN_ORDER(after, 1, 5, flags);
  if (has_ids) take_positions(&arrays, a[2], PyLong_AsLong(a[3]), "diagnose", &where);
  RETURN_TEXT(posenc_diagnose(before, after, has_ids ? &where : NULL, &text));
}

FUNCTION(figure) { /* kind, request as JSON */
  VERB(2);
  const char* const kind = PyUnicode_AsUTF8AndSize(a[0], NULL);
  const char* const request = PyUnicode_AsUTF8AndSize(a[1], NULL);
  RETURN_TEXT(posenc_figure(kind, request, &text));
}

/* --- positions, settings ---------------------------------------------------------------------------------------------- */

FUNCTION(packed_positions) { /* out, lengths */
  VERB(2);
  TENSOR(out, 0, WRITE);
  TENSOR(lengths, 1, 0);
  return PyErr_Occurred() ? failed(&arrays) : done(&arrays, posenc_packed_positions(out, lengths));
}
FUNCTION(grid_positions) { /* out, extents */
  VERB(2);
  TENSOR(out, 0, WRITE);
  TENSOR(extents, 1, 0);
  return PyErr_Occurred() ? failed(&arrays) : done(&arrays, posenc_grid_positions(out, extents));
}
FUNCTION(positions_from_mask) { /* out, mask, rule, padding */
  VERB(4);
  const char* const rule = text_or_null(a[2]);
  INTEGER(padding, 3);
  TENSOR(out, 0, WRITE);
  TENSOR(mask, 1, 0);
  return PyErr_Occurred() ? failed(&arrays) : done(&arrays, posenc_positions_from_mask(out, mask, rule, padding));
}
TEXT_FUNCTION(schemes)
FUNCTION(scheme_json) {
  VERB(1);
  const char* const scheme = PyUnicode_AsUTF8AndSize(a[0], NULL);
  RETURN_TEXT(posenc_scheme_json(scheme, &text));
}
TEXT_FUNCTION(backends)
TEXT_FUNCTION(backend)
FUNCTION(force_backend) {
  ARGUMENTS(1);
  const char* const name = PyUnicode_AsUTF8AndSize(a[0], NULL);
  return name == NULL ? NULL : done(NULL, posenc_force_backend(name));
}
FUNCTION(threads) {
  ARGUMENTS(0);
  int count = 0;
  const int status = posenc_threads(&count);
  return status == POSENC_OK ? PyLong_FromLong(count) : raise_status(status);
}
FUNCTION(set_threads) {
  ARGUMENTS(1);
  const long count = PyLong_AsLong(a[0]);
  return PyErr_Occurred() ? NULL
                          : done(NULL, posenc_set_threads(count > 1 << 20 ? 1 << 20
                                                          : count < -1    ? -1
                                                                          : (int)count));
}
FUNCTION(call_threads) { /* threads of this thread's calls from now on; returns what it was */
  ARGUMENTS(1);
  const long count = PyLong_AsLong(a[0]);
  if (PyErr_Occurred()) return NULL;
  if (count < 0 || count > 1024) {
    PyErr_Format(posenc_Error, "use: threads must be between 0 and 1024 but is %ld", count);
    return NULL;
  }
  const long before = threads_of_calls;
  threads_of_calls = (int32_t)count;
  return PyLong_FromLong(before);
}
FUNCTION(synchronize) { /* stream, as an integer */
  ARGUMENTS(1);
  void* const stream = PyLong_AsVoidPtr(a[0]);
  if (PyErr_Occurred()) return NULL;
  WITHOUT_GIL(posenc_synchronize(stream));
  return done(NULL, status);
}
FUNCTION(version) {
  ARGUMENTS(0);
  return PyUnicode_FromString(posenc_version());
}

/* The text that inspect.signature reads; the stub has the same names, with types. */
#define METHOD(name, arguments) \
  { #name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, #name "($module, " arguments ")\n--\n\n" }
static PyMethodDef methods[] = {
    METHOD(prepare,
           "json, length, numerics, table_type, arithmetic, weights, key_weights, value_weights, denominators, /"),
    METHOD(prepare_table, "cosines, sines, layout, /"),
    METHOD(bind, "form, weights, key_weights, value_weights, /"),
    METHOD(derive, "form, which, /"),
    METHOD(head, "form, head, /"),
    METHOD(slice_heads, "form, first, count, /"),
    METHOD(form_json, "form, /"),
    METHOD(tabulate, "form, out, sines, where, axes, flags, /"),
    METHOD(add, "form, out, x, where, axes, flags, /"),
    METHOD(add_backward, "d_table, d_out, where, axes, offset, /"),
    METHOD(rotate, "form, out, x, out_k, k, where, axes, order, flags, /"),
    METHOD(rotate_backward, "form, d_q, d_k, where, axes, order, /"),
    METHOD(rerotate, "before, after, x, where, axes, order, flags, /"),
    METHOD(shift, "form, keys, slots, by, order, flags, /"),
    METHOD(rotate_into, "form, cache, slots, k, where, axes, order, cache_order, verb, flags, scale, /"),
    METHOD(append,
           "form, k_cache, v_cache, slots, q, k, v, out, q_norm, k_norm, eps, offset, where, axes, order, "
           "cache_order, flags, k_scale, v_scale, /"),
    METHOD(copy_slots, "cache, to, source, order, flags, /"),
    METHOD(slots_of, "out, pages, page_size, first, /"),
    METHOD(call_threads, "count, /"),
    METHOD(bias, "form, out, queries, keys, axes, flags, /"),
    METHOD(bias_backward, "form, d_parameters, d_out, queries, keys, axes, /"),
    METHOD(attention, "out, q, k, v, options, axes, order, cache_order, flags, /"),
    METHOD(plan, "q, k, v, options, axes, order, cache_order, threads, flags, /"),
    METHOD(plan_facts, "plan, /"),
    METHOD(attend, "plan, out, q, k, v, /"),
    METHOD(merge, "out, logsumexp, other, other_logsumexp, order, flags, /"),
    METHOD(attention_backward, "d_out, q, k, v, out, logsumexp, options, axes, order, gradients, /"),
    METHOD(read_model, "file, /"),
    METHOD(layer, "file, index, part, length, numerics, weights, key_weights, value_weights, sinks, causal, /"),
    METHOD(compare_engines, "file, engines, length, /"),
    METHOD(check, "json, before, after, where, keys, axes, causal, tolerance, weights, flags, order, length, /"),
    METHOD(diagnose, "before, after, ids, axes, flags, order, /"),
    METHOD(figure, "kind, request, /"),
    METHOD(packed_positions, "out, lengths, /"),
    METHOD(grid_positions, "out, extents, /"),
    METHOD(positions_from_mask, "out, mask, rule, padding, /"),
    METHOD(schemes, ""),
    METHOD(options, ""),
    METHOD(scheme_json, "text, /"),
    METHOD(backends, ""),
    METHOD(backend, ""),
    METHOD(force_backend, "name, /"),
    METHOD(threads, ""),
    METHOD(set_threads, "count, /"),
    METHOD(synchronize, "stream, /"),
    METHOD(version, ""),
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "posenc._posenc", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__posenc(void) {
  if (posenc_abi() != POSENC_C_ABI) {
    PyErr_Format(PyExc_ImportError, "posenc: libposenc_c has ABI %d, but this package needs %d", posenc_abi(),
                 POSENC_C_ABI);
    return NULL;
  }
  name_dlpack = PyUnicode_InternFromString("__dlpack__");
  name_api = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  name_requires_grad = PyUnicode_InternFromString("requires_grad");
  name_is_cuda = PyUnicode_InternFromString("is_cuda");
  name_module = PyUnicode_InternFromString("__module__");
  kw_stream = PyUnicode_InternFromString("stream");
  kw_max_version = PyUnicode_InternFromString("max_version");
  minus_one = PyLong_FromLong(-1);
  version_1_1 = Py_BuildValue("(ii)", 1, 1);
  empty_tuple = PyTuple_New(0);
  posenc_Error = PyErr_NewExceptionWithDoc(
      "posenc.Error", "What posenc refuses: the text names operation, value and rule.", PyExc_ValueError, NULL);
  PyObject* const module = PyModule_Create(&definition);
  if (module == NULL || empty_tuple == NULL || version_1_1 == NULL || posenc_Error == NULL) return NULL;
  if (add_to_module(module, "Error", posenc_Error) || list_options()) return NULL;
  return module;
}
