/* The arguments of a call, and what a status becomes in Python. Included by _posenc.c alone. */
#pragma once

#include "borrow.h"

/* --- arguments -------------------------------------------------------------------------------------------------------- */

/* All arrays of one call, given back together. */
typedef struct {
  Borrowed items[32];
  int count;
} Arrays;

static void release(Arrays* arrays) {
  for (int i = 0; i < arrays->count; ++i) give_back(&arrays->items[i]);
}

/* The tensor of an argument; NULL with an exception, or NULL without one where it is None. After an exception nothing more
   is taken, so that a verb takes all its arguments before it looks. */
static const posenc_tensor* take(Arrays* arrays, PyObject* x, const char* verb, const char* name, int flags) {
  if (x == Py_None || PyErr_Occurred()) return NULL;
  Borrowed* const b = &arrays->items[arrays->count++];
  return borrow(x, b, verb, name, flags) ? NULL : &b->tensor;
}
static const posenc_tensor* take_in_order(Arrays* arrays, PyObject* x, PyObject* order, const char* verb,
                                          const char* name, int flags) {
  const posenc_tensor* const tensor = take(arrays, x, verb, name, flags);
  if (tensor == NULL || order == Py_None) return tensor;
  return reorder(&arrays->items[arrays->count - 1], order, verb, name) ? NULL : tensor;
}

/* Where tokens are: an integer is the first of consecutive positions, anything else ids. */
static int take_positions_as(Arrays* arrays, PyObject* where, long axes, const char* verb, const char* name,
                             posenc_positions* out, int flags) {
  *out = POSENC_INIT(posenc_positions);
  out->axes = (int32_t)axes;
  if (PyErr_Occurred()) return -1;
  if (PyLong_Check(where)) {
    out->first = PyLong_AsLongLong(where);
    return PyErr_Occurred() ? -1 : 0;
  }
  if (PyIndex_Check(where) && !PyObject_HasAttr(where, name_dlpack)) { /* a number of numpy, say */
    PyObject* const index = PyNumber_Index(where);
    if (index != NULL) {
      out->first = PyLong_AsLongLong(index);
      Py_DECREF(index);
      return PyErr_Occurred() ? -1 : 0;
    }
    /* an array of numpy before 1.22, which has no __dlpack__, and an __index__ that only a scalar fulfils */
    if (!PyErr_ExceptionMatches(PyExc_TypeError) || !PyObject_CheckBuffer(where)) return -1;
    PyErr_Clear();
  }
  out->ids = take(arrays, where, verb, name, flags);
  return out->ids == NULL ? -1 : 0;
}
static int take_positions(Arrays* arrays, PyObject* where, long axes, const char* verb, posenc_positions* out) {
  return take_positions_as(arrays, where, axes, verb, "ids", out, 0);
}

static _Thread_local int32_t threads_of_calls = 0; /* of this thread; 0: the process's */

static posenc_run run_of(const Arrays* arrays) {
  posenc_run run = POSENC_INIT(posenc_run);
  run.threads = threads_of_calls;
  for (int i = 0; i < arrays->count; ++i) {
    if (arrays->items[i].stream != NULL) run.stream = arrays->items[i].stream;
  }
  return run;
}

static PyObject* raise_status(int status) {
  PyObject* const type = status == POSENC_INVALID       ? posenc_Error
                         : status == POSENC_NO_MEMORY   ? PyExc_MemoryError
                         : status == POSENC_UNSUPPORTED ? PyExc_NotImplementedError
                                                        : PyExc_RuntimeError;
  PyErr_SetString(type, posenc_error());
  return NULL;
}
static PyObject* done(Arrays* arrays, int status) {
  if (arrays != NULL) release(arrays);
  if (status != POSENC_OK) return raise_status(status);
  Py_RETURN_NONE;
}
static PyObject* failed(Arrays* arrays) {
  release(arrays);
  return NULL;
}
static PyObject* text_and_free(int status, char* text) {
  if (status != POSENC_OK) return raise_status(status);
  PyObject* const made = PyUnicode_FromString(text);
  posenc_free(text);
  return made;
}
static int has_count(Py_ssize_t given, Py_ssize_t wanted) {
  if (given == wanted) return 1;
  PyErr_Format(PyExc_TypeError, "%zd arguments are needed, %zd were given", wanted, given);
  return 0;
}
static const char* text_or_null(PyObject* x) { return x == Py_None ? NULL : PyUnicode_AsUTF8AndSize(x, NULL); }

/* Runs a call of the C API while other Python threads go on. */
#define WITHOUT_GIL(call)                 \
  int status;                             \
  Py_BEGIN_ALLOW_THREADS status = (call); \
  Py_END_ALLOW_THREADS

#define FUNCTION(name) static PyObject* name(PyObject* module, PyObject* const* a, Py_ssize_t n)
#define ARGUMENTS(count) \
  (void)module;          \
  (void)a;               \
  if (!has_count(n, count)) return NULL
/* A function that takes arrays, and the call of the C API with which it ends. */
#define VERB(wanted) \
  ARGUMENTS(wanted); \
  Arrays arrays;     \
  arrays.count = 0
#define RETURN_CALL(call)                       \
  if (PyErr_Occurred()) return failed(&arrays); \
  const posenc_run run = run_of(&arrays);       \
  WITHOUT_GIL(call);                            \
  return done(&arrays, status)
/* The same, for a call that makes a `text`. */
#define RETURN_TEXT(call)                       \
  if (PyErr_Occurred()) return failed(&arrays); \
  char* text = NULL;                            \
  WITHOUT_GIL(call);                            \
  release(&arrays);                             \
  return text_and_free(status, text)
#define TEXT_FUNCTION(name)            \
  FUNCTION(name) {                     \
    VERB(0);                           \
    RETURN_TEXT(posenc_##name(&text)); \
  }

/* Arguments of a verb by their number, each under the name that errors say. */
#define INTEGER(name, at) const int64_t name = PyLong_AsLongLong(a[at])
#define TENSOR(name, at, flags) const posenc_tensor* const name = take(&arrays, a[at], __func__, #name, flags)
#define TENSOR_IN_ORDER(name, at, order, flags) \
  const posenc_tensor* const name = take_in_order(&arrays, a[at], a[order], __func__, #name, flags)
#define POSITIONS(name, at, axes) \
  posenc_positions name;          \
  take_positions(&arrays, a[at], PyLong_AsLong(a[axes]), __func__, &name)
