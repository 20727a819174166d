/* posenc._posenc: Python arrays handed to the C API, in place. Limited API of Python 3.9, so one binary serves every
 * later Python; no C types, so that a build for free-threaded Python is the same file. Every function takes its
 * arguments by position: the package's Python functions have the names and defaults. */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "posenc/posenc_c.h"

#include "arguments.h"

/* --- forms: a capsule with the form and the arrays that it reads ------------------------------------------------------ */

#define FORM "posenc.form.1" /* the number is POSENC_C_ABI: a form of another posenc is refused */

typedef struct {
  posenc_form* form;
  Borrowed tables[3]; /* weights, key_weights, value_weights */
  PyObject* owner;    /* of a form inside something else, as a layer's; NULL: the form is ours */
} Form;

static void free_form(PyObject* capsule) {
  Form* const form = PyCapsule_GetPointer(capsule, FORM);
  if (form->owner == NULL) posenc_form_free(form->form);
  Py_XDECREF(form->owner);
  for (int i = 0; i < 3; ++i) give_back(&form->tables[i]);
  PyMem_Free(form);
}
static const posenc_form* form_from(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, FORM)) return ((Form*)PyCapsule_GetPointer(capsule, FORM))->form;
  PyErr_SetString(PyExc_TypeError, "the form must be what prepare() of this posenc made");
  return NULL;
}

/* A form that lives in `owner`, or None. */
static PyObject* form_inside(PyObject* owner, const posenc_form* inside) {
  if (inside == NULL) Py_RETURN_NONE;
  Form* const form = PyMem_Calloc(1, sizeof(Form));
  if (form == NULL) return PyErr_NoMemory();
  form->form = (posenc_form*)inside; /* read alone */
  PyObject* const capsule = PyCapsule_New(form, FORM, free_form);
  if (capsule == NULL) {
    PyMem_Free(form);
    return NULL;
  }
  form->owner = new_reference(owner);
  return capsule;
}

/* What makes a form of up to three tensors that it keeps reading; those that are not given are NULL. */
typedef int (*Maker)(const void* context, const posenc_tensor* const tables[3], posenc_form** out);

static PyObject* new_form(Maker make, const void* context, PyObject* const given[3], const char* verb,
                          const char* const names[3]) {
  Form* const form = PyMem_Calloc(1, sizeof(Form));
  if (form == NULL) return PyErr_NoMemory();
  PyObject* capsule = NULL;
  const posenc_tensor* tables[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; ++i) {
    if (given[i] == Py_None) continue;
    if (borrow(given[i], &form->tables[i], verb, names[i], KEEP)) goto fail;
    tables[i] = &form->tables[i].tensor;
  }
  WITHOUT_GIL(make(context, tables, &form->form));
  if (status != POSENC_OK) {
    raise_status(status);
    goto fail;
  }
  capsule = PyCapsule_New(form, FORM, free_form);
  if (capsule != NULL) return capsule;
  posenc_form_free(form->form);
fail:
  for (int i = 0; i < 3; ++i) give_back(&form->tables[i]);
  PyMem_Free(form);
  return NULL;
}

typedef struct {
  const char* json;
  posenc_prepare_options prepare;
} Preparation;

typedef struct {
  const posenc_form* form;
  int64_t head;
} HeadOfForm;

static int make_prepared(const void* context, const posenc_tensor* const tables[3], posenc_form** out) {
  const Preparation* const p = context;
  posenc_prepare_options options = p->prepare;
  options.weights = tables[0], options.key_weights = tables[1], options.value_weights = tables[2];
  return posenc_prepare(p->json, &options, out);
}
static int make_table(const void* context, const posenc_tensor* const tables[3], posenc_form** out) {
  return posenc_prepare_table(tables[0], tables[1], context, out);
}
static int make_bound(const void* context, const posenc_tensor* const tables[3], posenc_form** out) {
  return posenc_form_bind_all(context, tables[0], tables[1], tables[2], out);
}
static int make_adjoint(const void* context, const posenc_tensor* const tables[3], posenc_form** out) {
  (void)tables;
  return posenc_form_adjoint(context, out);
}
static int make_inverse(const void* context, const posenc_tensor* const tables[3], posenc_form** out) {
  (void)tables;
  return posenc_form_inverse(context, out);
}
static int make_for_keys(const void* context, const posenc_tensor* const tables[3], posenc_form** out) {
  (void)tables;
  return posenc_form_for_keys(context, out);
}
static const char* const kTableNames[] = {"weights", "key_weights", "value_weights"};

FUNCTION(
    prepare) { /* json, length, numerics, table_type, arithmetic, weights, key_weights, value_weights, denominators */
  ARGUMENTS(9);
  Preparation p = {.json = PyUnicode_AsUTF8AndSize(a[0], NULL), .prepare = POSENC_INIT(posenc_prepare_options)};
  if (p.json == NULL) return NULL;
  p.prepare.length = PyLong_AsLongLong(a[1]);
  p.prepare.numerics = text_or_null(a[2]);
  p.prepare.table_type = text_or_null(a[3]);
  p.prepare.arithmetic = text_or_null(a[4]);
  if (PyErr_Occurred()) return NULL;
  Arrays arrays; /* the denominators, which are read now */
  arrays.count = 0;
  p.prepare.denominators = take(&arrays, a[8], "prepare", "denominators", 0);
  if (PyErr_Occurred()) return failed(&arrays);
  PyObject* const form = new_form(make_prepared, &p, a + 5, "prepare", kTableNames);
  release(&arrays);
  return form;
}
FUNCTION(prepare_table) { /* cosines, sines, layout */
  ARGUMENTS(3);
  const char* const layout = text_or_null(a[2]);
  if (PyErr_Occurred()) return NULL;
  PyObject* const tables[] = {a[0], a[1], Py_None};
  static const char* const kNames[] = {"cosines", "sines", ""};
  return new_form(make_table, layout, tables, "prepare_table", kNames);
}
FUNCTION(bind) { /* form, weights, key_weights, value_weights */
  ARGUMENTS(4);
  const posenc_form* const form = form_from(a[0]);
  return form == NULL ? NULL : new_form(make_bound, form, a + 1, "bind", kTableNames);
}
FUNCTION(derive) { /* form, "adjoint" | "inverse" | "for_keys" */
  ARGUMENTS(2);
  const posenc_form* const form = form_from(a[0]);
  const char* const which = PyUnicode_AsUTF8AndSize(a[1], NULL);
  if (form == NULL || which == NULL) return NULL;
  const Maker make = *which == 'a' ? make_adjoint : *which == 'i' ? make_inverse : make_for_keys;
  PyObject* const none[] = {Py_None, Py_None, Py_None};
  return new_form(make, form, none, which, kTableNames);
}
static int make_head(const void* context, const posenc_tensor* const tables[3], posenc_form** out) {
  (void)tables;
  const HeadOfForm* const one = context;
  return posenc_form_head(one->form, one->head, out);
}
FUNCTION(head) { /* form, head */
  ARGUMENTS(2);
  HeadOfForm one = {.form = form_from(a[0])};
  if (one.form == NULL) return NULL;
  one.head = PyLong_AsLongLong(a[1]);
  if (PyErr_Occurred()) return NULL;
  PyObject* const none[] = {Py_None, Py_None, Py_None};
  return new_form(make_head, &one, none, "head", kTableNames);
}
FUNCTION(form_json) {
  VERB(1);
  const posenc_form* const form = form_from(a[0]);
  RETURN_TEXT(posenc_form_json(form, &text));
}

/* --- verbs ------------------------------------------------------------------------------------------------------------ */

FUNCTION(tabulate) { /* form, out, sines, where, axes, flags */
  VERB(6);
  posenc_positions where;
  const posenc_form* const form = form_from(a[0]);
  const int flags = WRITE | (int)PyLong_AsLong(a[5]);
  const posenc_tensor* const out = take(&arrays, a[1], "tabulate", "out", flags);
  const posenc_tensor* const sines = take(&arrays, a[2], "tabulate", "sines", flags);
  take_positions(&arrays, a[3], PyLong_AsLong(a[4]), "tabulate", &where);
  RETURN_CALL(posenc_tabulate(form, out, sines, &where, &run));
}

FUNCTION(add) { /* form, out, x, where, axes, flags */
  VERB(6);
  posenc_positions where;
  const posenc_form* const form = form_from(a[0]);
  const int flags = (int)PyLong_AsLong(a[5]), is_in_place = a[1] == a[2];
  const posenc_tensor* const out = take(&arrays, a[1], "add", is_in_place ? "x" : "out", WRITE | flags);
  const posenc_tensor* const x = is_in_place ? out : take(&arrays, a[2], "add", "x", flags);
  take_positions(&arrays, a[3], PyLong_AsLong(a[4]), "add", &where);
  RETURN_CALL(posenc_add(form, out, x, &where, &run));
}

FUNCTION(add_backward) { /* d_table, d_out, where, axes, offset */
  VERB(5);
  posenc_positions where;
  const int64_t offset = PyLong_AsLongLong(a[4]);
  const posenc_tensor* const d_table = take(&arrays, a[0], "add_backward", "d_table", WRITE);
  const posenc_tensor* const d_out = take(&arrays, a[1], "add_backward", "d_out", 0);
  take_positions(&arrays, a[2], PyLong_AsLong(a[3]), "add_backward", &where);
  RETURN_CALL(posenc_add_backward(d_table, d_out, &where, offset, &run));
}

FUNCTION(rotate) { /* form, out, x, out_k, k, where, axes, order, flags */
  VERB(9);
  posenc_positions where;
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
  take_positions(&arrays, a[5], PyLong_AsLong(a[6]), "rotate", &where);
  RETURN_CALL(posenc_rotate(form, out, x, &where, &run));
}

FUNCTION(rotate_backward) { /* form, d_q, d_k, where, axes, order */
  VERB(6);
  posenc_positions where;
  const posenc_form* const form = form_from(a[0]);
  posenc_query_key d;
  d.q = take_in_order(&arrays, a[1], a[5], "rotate_backward", "d_out", WRITE);
  d.k = take_in_order(&arrays, a[2], a[5], "rotate_backward", "d_out (keys)", WRITE);
  take_positions(&arrays, a[3], PyLong_AsLong(a[4]), "rotate_backward", &where);
  RETURN_CALL(posenc_rotate_backward(form, d, &where, &run));
}

FUNCTION(rerotate) { /* before, after, x, where, axes, order, flags */
  VERB(7);
  posenc_positions where;
  const posenc_form* const before = form_from(a[0]);
  const posenc_form* const after = before == NULL ? NULL : form_from(a[1]);
  const int flags = IN_PLACE | (int)PyLong_AsLong(a[6]);
  const posenc_tensor* const x = take_in_order(&arrays, a[2], a[5], "rerotate", "x", flags);
  take_positions(&arrays, a[3], PyLong_AsLong(a[4]), "rerotate", &where);
  RETURN_CALL(posenc_rerotate(before, after, x, &where, &run));
}

FUNCTION(bias) { /* form, out, queries, keys, axes, flags */
  VERB(6);
  posenc_positions queries, keys;
  const posenc_form* const form = form_from(a[0]);
  const long axes = PyLong_AsLong(a[4]);
  const posenc_tensor* const out = take(&arrays, a[1], "bias", "out", WRITE | (int)PyLong_AsLong(a[5]));
  take_positions(&arrays, a[2], axes, "bias", &queries);
  take_positions(&arrays, a[3], axes, "bias", &keys);
  RETURN_CALL(posenc_bias(form, out, &queries, &keys, &run));
}

FUNCTION(bias_backward) { /* form, d_parameters, d_out, queries, keys, axes */
  VERB(6);
  posenc_positions queries, keys;
  const posenc_form* const form = form_from(a[0]);
  const long axes = PyLong_AsLong(a[5]);
  const posenc_tensor* const d_parameters = take(&arrays, a[1], "bias_backward", "d_parameters", WRITE);
  const posenc_tensor* const d_out = take(&arrays, a[2], "bias_backward", "d_out", 0);
  take_positions(&arrays, a[3], axes, "bias_backward", &queries);
  take_positions(&arrays, a[4], axes, "bias_backward", &keys);
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
  const int64_t length = PyLong_AsLongLong(a[2]);
  RETURN_TEXT(posenc_compare_engines(file, (size_t)size, engines, length, &text));
}
FUNCTION(check) { /* json, before, after, where, keys, axes, causal, tolerance, weights, flags, order */
  VERB(11);
  posenc_check_options options = POSENC_INIT(posenc_check_options);
  posenc_positions where, keys;
  const char* const scheme = PyUnicode_AsUTF8AndSize(a[0], NULL);
  const long axes = PyLong_AsLong(a[5]);
  const int flags = (int)PyLong_AsLong(a[9]);
  options.causal = PyObject_IsTrue(a[6]);
  options.tolerance = PyFloat_AsDouble(a[7]);
  const posenc_tensor* const before = take_in_order(&arrays, a[1], a[10], "check", "before", flags);
  const posenc_tensor* const after = take_in_order(&arrays, a[2], a[10], "check", "after", flags);
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
  const posenc_tensor* const before = take_in_order(&arrays, a[0], a[5], "diagnose", "before", flags);
  const posenc_tensor* const after = take_in_order(&arrays, a[1], a[5], "diagnose", "after", flags);
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
  const posenc_tensor* const out = take(&arrays, a[0], "packed_positions", "out", WRITE);
  const posenc_tensor* const lengths = take(&arrays, a[1], "packed_positions", "lengths", 0);
  return PyErr_Occurred() ? failed(&arrays) : done(&arrays, posenc_packed_positions(out, lengths));
}
FUNCTION(grid_positions) { /* out, extents */
  VERB(2);
  const posenc_tensor* const out = take(&arrays, a[0], "grid_positions", "out", WRITE);
  const posenc_tensor* const extents = take(&arrays, a[1], "grid_positions", "extents", 0);
  return PyErr_Occurred() ? failed(&arrays) : done(&arrays, posenc_grid_positions(out, extents));
}
FUNCTION(positions_from_mask) { /* out, mask, rule, padding */
  VERB(4);
  const char* const rule = text_or_null(a[2]);
  const int64_t padding = PyLong_AsLongLong(a[3]);
  const posenc_tensor* const out = take(&arrays, a[0], "positions_from_mask", "out", WRITE);
  const posenc_tensor* const mask = take(&arrays, a[1], "positions_from_mask", "mask", 0);
  return PyErr_Occurred() ? failed(&arrays) : done(&arrays, posenc_positions_from_mask(out, mask, rule, padding));
}
FUNCTION(schemes) {
  VERB(0);
  RETURN_TEXT(posenc_schemes(&text));
}
FUNCTION(scheme_json) {
  VERB(1);
  const char* const scheme = PyUnicode_AsUTF8AndSize(a[0], NULL);
  RETURN_TEXT(posenc_scheme_json(scheme, &text));
}
FUNCTION(backends) {
  VERB(0);
  RETURN_TEXT(posenc_backends(&text));
}
FUNCTION(backend) {
  VERB(0);
  RETURN_TEXT(posenc_backend(&text));
}
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
    METHOD(form_json, "form, /"),
    METHOD(tabulate, "form, out, sines, where, axes, flags, /"),
    METHOD(add, "form, out, x, where, axes, flags, /"),
    METHOD(add_backward, "d_table, d_out, where, axes, offset, /"),
    METHOD(rotate, "form, out, x, out_k, k, where, axes, order, flags, /"),
    METHOD(rotate_backward, "form, d_q, d_k, where, axes, order, /"),
    METHOD(rerotate, "before, after, x, where, axes, order, flags, /"),
    METHOD(shift, "form, keys, slots, by, order, flags, /"),
    METHOD(rotate_into, "form, cache, slots, k, where, axes, order, cache_order, verb, flags, /"),
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
    METHOD(check, "json, before, after, where, keys, axes, causal, tolerance, weights, flags, order, /"),
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
