/* What the package uses beyond CPython's limited API of 3.9. Every CPython since 3.3 exports these functions with these
 * signatures, and Py_buffer has had this layout since 3.3 (Include/object.h there, Include/pybuffer.h in 3.11); they joined the
 * limited API in 3.10 and 3.11. What is newer than 3.9 (Py_NewRef, PyModule_AddObjectRef, PyType_GetName) is written here in
 * terms of what 3.9 has: later headers declare it all the same. Included by borrow.h alone. */
#pragma once

typedef struct {
  void* buf;
  PyObject* obj;
  Py_ssize_t len, itemsize;
  int readonly, ndim;
  char* format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void* internal;
} Py_buffer;
PyAPI_FUNC(int) PyObject_CheckBuffer(PyObject* x);
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject* x, Py_buffer* view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer* view);
PyAPI_FUNC(const char*) PyUnicode_AsUTF8AndSize(PyObject* text, Py_ssize_t* size);
#define PyBUF_FORMAT 0x0004
#define PyBUF_STRIDES 0x0018
#define METH_FASTCALL 0x0080

static PyObject* new_reference(PyObject* x) {
  Py_INCREF(x);
  return x;
}

static PyObject* name_of_type(PyTypeObject* type) { return PyObject_GetAttrString((PyObject*)type, "__name__"); }

/* PyModule_AddObject takes the reference only if it succeeds. */
static int add_to_module(PyObject* module, const char* name, PyObject* value) {
  Py_INCREF(value);
  if (PyModule_AddObject(module, name, value) == 0) return 0;
  Py_DECREF(value);
  return -1;
}
