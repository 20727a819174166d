/* Keys and values on their way into a cache, and tokens that move in it. Included by _posenc.c alone. */
#pragma once

#include "arguments.h"

FUNCTION(rotate_into) { /* form or None, cache, slots, k, where, axes, order, cache_order, verb, flags */
  ARGUMENTS(10);
  Arrays arrays;
  arrays.count = 0;
  posenc_positions where;
  const posenc_form* form = NULL;
  if (a[0] != Py_None && (form = form_from(a[0])) == NULL) return NULL;
  const long axes = PyLong_AsLong(a[5]), flags = PyLong_AsLong(a[9]);
  const char* const verb = PyUnicode_AsUTF8AndSize(a[8], NULL); /* rotate_into, or copy_into */
  if (PyErr_Occurred()) return NULL;
  const posenc_tensor* const cache = take_in_order(&arrays, a[1], a[7], verb, "cache", IN_PLACE | (int)flags);
  const posenc_tensor* const slots = PyErr_Occurred() ? NULL : take(&arrays, a[2], verb, "slots", 0);
  const char* const name = form == NULL ? "x" : "k";
  const posenc_tensor* const k = PyErr_Occurred() ? NULL : take_in_order(&arrays, a[3], a[6], verb, name, (int)flags);
  if (PyErr_Occurred() || take_positions(&arrays, a[4], axes, verb, &where)) return failed(&arrays);
  const posenc_run run = run_of(&arrays);
  WITHOUT_GIL(posenc_rotate_into(form, cache, slots, k, &where, &run));
  return done(&arrays, status);
}

FUNCTION(copy_slots) { /* cache, to, source, order, flags */
  ARGUMENTS(5);
  Arrays arrays;
  arrays.count = 0;
  const long flags = PyLong_AsLong(a[4]);
  if (PyErr_Occurred()) return NULL;
  const posenc_tensor* const cache = take_in_order(&arrays, a[0], a[3], "copy_slots", "cache", IN_PLACE | (int)flags);
  const posenc_tensor* const to = PyErr_Occurred() ? NULL : take(&arrays, a[1], "copy_slots", "to", 0);
  const posenc_tensor* const source = PyErr_Occurred() ? NULL : take(&arrays, a[2], "copy_slots", "from_", 0);
  if (PyErr_Occurred()) return failed(&arrays);
  const posenc_run run = run_of(&arrays);
  WITHOUT_GIL(posenc_copy_slots(cache, to, source, &run));
  return done(&arrays, status);
}

FUNCTION(shift) { /* form, keys, slots or None, by, order, flags */
  ARGUMENTS(6);
  Arrays arrays;
  arrays.count = 0;
  const posenc_form* const form = form_from(a[0]);
  const int64_t by = PyLong_AsLongLong(a[3]);
  const long flags = PyLong_AsLong(a[5]);
  if (form == NULL || PyErr_Occurred()) return NULL;
  const posenc_tensor* const keys = take_in_order(&arrays, a[1], a[4], "shift", "keys", IN_PLACE | (int)flags);
  const posenc_tensor* const slots = PyErr_Occurred() ? NULL : take(&arrays, a[2], "shift", "slots", 0);
  if (PyErr_Occurred()) return failed(&arrays);
  const posenc_run run = run_of(&arrays);
  WITHOUT_GIL(slots == NULL ? posenc_shift(form, keys, by, &run) : posenc_shift_slots(form, keys, slots, by, &run));
  return done(&arrays, status);
}

FUNCTION(slots_of) { /* out, pages, page_size, first */
  ARGUMENTS(4);
  Arrays arrays;
  arrays.count = 0;
  const int64_t page_size = PyLong_AsLongLong(a[2]);
  const int64_t first = PyErr_Occurred() ? 0 : PyLong_AsLongLong(a[3]);
  if (PyErr_Occurred()) return NULL;
  const posenc_tensor* const out = take(&arrays, a[0], "slots_of", "out", WRITE);
  const posenc_tensor* const pages = PyErr_Occurred() ? NULL : take(&arrays, a[1], "slots_of", "pages", 0);
  return PyErr_Occurred() ? failed(&arrays) : done(&arrays, posenc_slots_of(out, pages, page_size, first));
}
