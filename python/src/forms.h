/* Forms: a capsule with the form and the arrays that it reads. Included by _posenc.c alone. */
#pragma once

#include "arguments.h"

#define FORM "posenc.form.1" /* the number is POSENC_C_ABI: a form of another posenc is refused */

typedef struct {
  posenc_form* form;
  Borrowed tables[3]; /* weights, key_weights, value_weights */
  PyObject* owner;    /* of a form inside something else, as a layer's; NULL: the form is ours */
  PyObject* source;   /* the form that it was made of, whose tables it reads; NULL: none */
} Form;

static void free_form(PyObject* capsule) {
  Form* const form = PyCapsule_GetPointer(capsule, FORM);
  if (form->owner == NULL) posenc_form_free(form->form);
  Py_XDECREF(form->owner);
  Py_XDECREF(form->source);
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
/* A form made of another one alone. */
typedef struct {
  const posenc_form* form;
  int (*derive)(const posenc_form* form, posenc_form** out); /* NULL: some heads of it */
  int is_slice;
  int64_t head, heads;
} Derivation;

static int make_derived(const void* context, const posenc_tensor* const tables[3], posenc_form** out) {
  (void)tables;
  const Derivation* const d = context;
  if (d->derive != NULL) return d->derive(d->form, out);
  return d->is_slice ? posenc_form_slice_heads(d->form, d->head, d->heads, out)
                     : posenc_form_head(d->form, d->head, out);
}
static PyObject* new_derived(PyObject* source, const Derivation* derivation, const char* verb) {
  PyObject* const none[] = {Py_None, Py_None, Py_None};
  PyObject* const made = PyErr_Occurred() ? NULL : new_form(make_derived, derivation, none, verb, kTableNames);
  if (made != NULL) ((Form*)PyCapsule_GetPointer(made, FORM))->source = new_reference(source);
  return made;
}
FUNCTION(derive) { /* form, "adjoint" | "inverse" | "for_keys" */
  ARGUMENTS(2);
  Derivation d = {.form = form_from(a[0])};
  const char* const which = d.form == NULL ? NULL : PyUnicode_AsUTF8AndSize(a[1], NULL);
  if (which == NULL) return NULL;
  d.derive = *which == 'a' ? posenc_form_adjoint : *which == 'i' ? posenc_form_inverse : posenc_form_for_keys;
  return new_derived(a[0], &d, which);
}
FUNCTION(head) { /* form, head */
  ARGUMENTS(2);
  Derivation d = {.form = form_from(a[0])};
  if (d.form != NULL) d.head = PyLong_AsLongLong(a[1]);
  return new_derived(a[0], &d, "head");
}
FUNCTION(slice_heads) { /* form, first, count */
  ARGUMENTS(3);
  Derivation d = {.form = form_from(a[0]), .is_slice = 1};
  if (d.form != NULL) d.head = PyLong_AsLongLong(a[1]);
  if (!PyErr_Occurred()) d.heads = PyLong_AsLongLong(a[2]);
  return new_derived(a[0], &d, "slice_heads");
}
FUNCTION(form_json) {
  VERB(1);
  const posenc_form* const form = form_from(a[0]);
  RETURN_TEXT(posenc_form_json(form, &text));
}
