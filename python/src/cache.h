/* Keys and values on their way into a cache, and tokens that move in it. Included by _posenc.c alone. */
#pragma once

#include "arguments.h"

FUNCTION(rotate_into) { /* form or None, cache, slots, k, where, axes, order, cache_order, verb, flags, scale */
  VERB(11);
  posenc_positions where;
  const posenc_form* const form = a[0] == Py_None ? NULL : form_from(a[0]);
  const int flags = (int)PyLong_AsLong(a[9]);
  const char* const verb = PyUnicode_AsUTF8AndSize(a[8], NULL); /* rotate_into, or copy_into */
  const posenc_tensor* const cache = take_in_order(&arrays, a[1], a[7], verb, "cache", IN_PLACE | flags);
  const posenc_tensor* const slots = take(&arrays, a[2], verb, "slots", 0);
  const posenc_tensor* const k = take_in_order(&arrays, a[3], a[6], verb, form == NULL ? "x" : "k", flags);
  const posenc_tensor* const scale = take(&arrays, a[10], verb, "scale", 0);
  take_positions(&arrays, a[4], PyLong_AsLong(a[5]), verb, &where);
  RETURN_CALL(posenc_rotate_into_scaled(form, cache, scale, slots, k, &where, &run));
}

FUNCTION(
    append) { /* form or None, k_cache, v_cache, slots, q, k, v, out, q_norm, k_norm, eps, offset, where, axes, order,
                      cache_order, flags, k_scale, v_scale */
  VERB(19);
  posenc_positions where;
  posenc_new_tokens step = POSENC_INIT(posenc_new_tokens);
  const char* const verb = "append";
  const posenc_form* const form = a[0] == Py_None ? NULL : form_from(a[0]);
  const int flags = (int)PyLong_AsLong(a[16]);
  posenc_key_value cache = {NULL, NULL};
  cache.k = take_in_order(&arrays, a[1], a[15], verb, "k_cache", IN_PLACE | flags);
  cache.v = take_in_order(&arrays, a[2], a[15], verb, "v_cache", IN_PLACE | flags);
  const posenc_tensor* const slots = take(&arrays, a[3], verb, "slots", 0);
  const int in_place = a[7] == a[4];
  step.q = take_in_order(&arrays, a[4], a[14], verb, "q", in_place ? WRITE | flags : flags);
  step.q_out = in_place ? step.q : take_in_order(&arrays, a[7], a[14], verb, "out", WRITE | flags);
  step.k = take_in_order(&arrays, a[5], a[14], verb, "k", flags);
  step.v = take_in_order(&arrays, a[6], a[14], verb, "v", flags);
  step.q_norm = take(&arrays, a[8], verb, "q_norm", flags);
  step.k_norm = take(&arrays, a[9], verb, "k_norm", flags);
  step.k_scale = take(&arrays, a[17], verb, "k_scale", 0);
  step.v_scale = take(&arrays, a[18], verb, "v_scale", 0);
  step.norm_epsilon = PyErr_Occurred() ? 0 : PyFloat_AsDouble(a[10]);
  step.norm_offset = PyErr_Occurred() ? 0 : PyFloat_AsDouble(a[11]);
  take_positions(&arrays, a[12], PyErr_Occurred() ? 1 : PyLong_AsLong(a[13]), verb, &where);
  RETURN_CALL(posenc_append(form, cache, slots, &step, &where, &run));
}

FUNCTION(copy_slots) { /* cache, to, source, order, flags */
  VERB(5);
  const int flags = IN_PLACE | (int)PyLong_AsLong(a[4]);
  const posenc_tensor* const cache = take_in_order(&arrays, a[0], a[3], "copy_slots", "cache", flags);
  const posenc_tensor* const to = take(&arrays, a[1], "copy_slots", "to", 0);
  const posenc_tensor* const source = take(&arrays, a[2], "copy_slots", "from_", 0);
  RETURN_CALL(posenc_copy_slots(cache, to, source, &run));
}

FUNCTION(shift) { /* form, keys, slots or None, by, order, flags */
  VERB(6);
  const posenc_form* const form = form_from(a[0]);
  const int64_t by = PyLong_AsLongLong(a[3]);
  const int flags = IN_PLACE | (int)PyLong_AsLong(a[5]);
  const posenc_tensor* const keys = take_in_order(&arrays, a[1], a[4], "shift", "keys", flags);
  const posenc_tensor* const slots = take(&arrays, a[2], "shift", "slots", 0);
  RETURN_CALL(slots == NULL ? posenc_shift(form, keys, by, &run) : posenc_shift_slots(form, keys, slots, by, &run));
}

FUNCTION(slots_of) { /* out, pages, page_size, first */
  VERB(4);
  const int64_t page_size = PyLong_AsLongLong(a[2]);
  const int64_t first = PyErr_Occurred() ? 0 : PyLong_AsLongLong(a[3]);
  const posenc_tensor* const out = take(&arrays, a[0], "slots_of", "out", WRITE);
  const posenc_tensor* const pages = take(&arrays, a[1], "slots_of", "pages", 0);
  return PyErr_Occurred() ? failed(&arrays) : done(&arrays, posenc_slots_of(out, pages, page_size, first));
}
