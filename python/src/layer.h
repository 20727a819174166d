/* A layer of a model: the library's options of attention as a tuple. Included by _posenc.c alone. */
#pragma once

#include "arguments.h"

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

/* (form, addition, causal, window, chunk, scale, softcap, temperature, first_position, notes as JSON) */
static PyObject* layer_tuple(PyObject* capsule, const posenc_layer* layer) {
  const posenc_attention_options* const o = posenc_layer_attention(layer);
  const posenc_temperature* const warm = o->temperature;
  char* notes = NULL;
  const int status = posenc_layer_notes(layer, &notes);
  if (status != POSENC_OK) return raise_status(status);
  PyObject *const form = form_inside(capsule, o->position), *const addition =
                                                                form_inside(capsule, posenc_layer_addition(layer));
  PyObject* const scale = o->scale == NULL ? Py_NewRef(Py_None) : PyFloat_FromDouble(*o->scale);
  PyObject* const temperature = warm == NULL ? Py_NewRef(Py_None)
                                             : Py_BuildValue("(dLLi)", warm->scale, (long long)warm->length,
                                                             (long long)warm->shift, (int)warm->rule);
  PyObject* const made =
      form == NULL || addition == NULL || scale == NULL || temperature == NULL
          ? NULL
          : Py_BuildValue("(OOiLLOdOLs)", form, addition, (int)o->causal, (long long)o->window, (long long)o->chunk,
                          scale, o->softcap, temperature, (long long)posenc_layer_first_position(layer), notes);
  posenc_free(notes);
  Py_XDECREF(form);
  Py_XDECREF(addition);
  Py_XDECREF(scale);
  Py_XDECREF(temperature);
  return made;
}

FUNCTION(
    layer) { /* file, index, part, length, numerics, weights, key_weights, value_weights, sinks, causal: 0, 1, 2 */
  ARGUMENTS(10);
  char* file = NULL;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(a[0], &file, &size)) return NULL;
  posenc_situation now = POSENC_INIT(posenc_situation);
  posenc_layer_inputs inputs = POSENC_INIT(posenc_layer_inputs);
  const int64_t index = PyLong_AsLongLong(a[1]);
  if (!PyErr_Occurred()) inputs.part = text_or_null(a[2]);
  if (!PyErr_Occurred()) now.length = PyLong_AsLongLong(a[3]);
  if (!PyErr_Occurred()) now.numerics = text_or_null(a[4]);
  if (!PyErr_Occurred()) inputs.causal = (int32_t)PyLong_AsLong(a[9]);
  if (PyErr_Occurred()) return NULL;
  Layer* const made = PyMem_Calloc(1, sizeof(Layer));
  PyObject* const capsule = made == NULL ? PyErr_NoMemory() : PyCapsule_New(made, LAYER, free_layer);
  if (capsule == NULL) {
    PyMem_Free(made);
    return NULL;
  }
  const posenc_tensor** const tables[] = {&now.weights, &now.key_weights, &now.value_weights, &inputs.sinks};
  static const char* const kNames[] = {"weights", "key_weights", "value_weights", "sinks"};
  for (int i = 0; i < 4; ++i) {
    *tables[i] = take(&made->kept, a[5 + i], "layer", kNames[i], KEEP);
    if (PyErr_Occurred()) goto fail;
  }
  inputs.now = &now;
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
