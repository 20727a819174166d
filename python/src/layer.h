/* A layer of a model: the library's options of attention by name. Included by _posenc.c alone. */
#pragma once

#include "attention.h"

#define LAYER "posenc.layer.1"

typedef struct {
  posenc_layer* layer;
  Arrays kept; /* trained tables and sinks, which its forms and options read */
} Layer;

static void free_layer(PyObject* capsule) {
  Layer* const made = PyCapsule_GetPointer(capsule, LAYER);
  posenc_layer_free(made->layer);
  release(&made->kept);
  PyMem_Free(made);
}

/* The value of an option, or None: a layer has none whose values are arrays of a call, nor flags that are not set. */
static PyObject* option_value(const posenc_attention_options* options, const posenc_field* field) {
  const void* const at = (const char*)options + field->offset;
  switch (field->kind) {
    case POSENC_FIELD_FLAG:
      return new_reference(*(const int32_t*)at ? Py_True : Py_None);
    case POSENC_FIELD_INTEGER:
      return PyLong_FromLongLong(*(const int64_t*)at);
    case POSENC_FIELD_NUMBER:
      return PyFloat_FromDouble(*(const double*)at);
    case POSENC_FIELD_OPTIONAL_NUMBER: {
      const double* const number = *(const double* const*)at;
      return number == NULL ? new_reference(Py_None) : PyFloat_FromDouble(*number);
    }
    case POSENC_FIELD_TEMPERATURE: {
      const posenc_temperature* const warm = *(const posenc_temperature* const*)at;
      if (warm == NULL) return new_reference(Py_None);
      return Py_BuildValue("(dLLi)", warm->scale, (long long)warm->length, (long long)warm->shift, (int)warm->rule);
    }
    default:
      return new_reference(Py_None);
  }
}
static PyObject* options_of(const posenc_attention_options* options) {
  PyObject* const dict = PyDict_New();
  for (size_t i = 0; dict != NULL && i < option_count; ++i) {
    PyObject* const value = option_value(options, &option_fields[i]);
    const int status = value == NULL ? -1 : PyDict_SetItem(dict, option_names[i], value);
    Py_XDECREF(value);
    if (status) {
      Py_DECREF(dict);
      return NULL;
    }
  }
  return dict;
}

/* (form, addition, options by name, first_position, notes as JSON) */
static PyObject* layer_tuple(PyObject* capsule, const posenc_layer* layer) {
  const posenc_attention_options* const o = posenc_layer_attention(layer);
  char* notes = NULL;
  const int status = posenc_layer_notes(layer, &notes);
  if (status != POSENC_OK) return raise_status(status);
  PyObject* const form = form_inside(capsule, o->position);
  PyObject* const addition = form_inside(capsule, posenc_layer_addition(layer));
  PyObject* const options = options_of(o);
  PyObject* const made =
      form == NULL || addition == NULL || options == NULL
          ? NULL
          : Py_BuildValue("(OOOLs)", form, addition, options, (long long)posenc_layer_first_position(layer), notes);
  posenc_free(notes);
  Py_XDECREF(form);
  Py_XDECREF(addition);
  Py_XDECREF(options);
  return made;
}

FUNCTION(
    layer) { /* file, index, part, length, numerics, weights, key_weights, value_weights, sinks, causal: 0, 1, 2 */
  ARGUMENTS(10);
  char* file = NULL;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(a[0], &file, &size)) return NULL;
  posenc_prepare_options options = POSENC_INIT(posenc_prepare_options);
  posenc_layer_inputs inputs = POSENC_INIT(posenc_layer_inputs);
  const int64_t index = PyLong_AsLongLong(a[1]);
  if (!PyErr_Occurred()) inputs.part = text_or_null(a[2]);
  if (!PyErr_Occurred()) options.length = PyLong_AsLongLong(a[3]);
  if (!PyErr_Occurred()) options.numerics = text_or_null(a[4]);
  if (!PyErr_Occurred()) inputs.causal = (int32_t)PyLong_AsLong(a[9]);
  if (PyErr_Occurred()) return NULL;
  Layer* const made = PyMem_Calloc(1, sizeof(Layer));
  PyObject* const capsule = made == NULL ? PyErr_NoMemory() : PyCapsule_New(made, LAYER, free_layer);
  if (capsule == NULL) {
    PyMem_Free(made);
    return NULL;
  }
  const posenc_tensor** const tables[] = {&options.weights, &options.key_weights, &options.value_weights,
                                          &inputs.sinks};
  static const char* const kNames[] = {"weights", "key_weights", "value_weights", "sinks"};
  for (int i = 0; i < 4; ++i) {
    *tables[i] = take(&made->kept, a[5 + i], "layer", kNames[i], KEEP);
    if (PyErr_Occurred()) goto fail;
  }
  inputs.prepare = &options;
  WITHOUT_GIL(posenc_layer_read(file, (size_t)size, index, &inputs, &made->layer));
  if (status != POSENC_OK) {
    raise_status(status);
    goto fail;
  }
  PyObject* const result = layer_tuple(capsule, made->layer);
  Py_DECREF(capsule); /* its forms keep it */
  return result;
fail:
  Py_DECREF(capsule);
  return NULL;
}
