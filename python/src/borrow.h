/* Python arrays as tensors of the C API, in place: numpy and memoryview by the buffer protocol, torch and others by
 * DLPack. Included by _posenc.c alone. */
#pragma once

#include "limited.h"

/* --- DLPack, as github.com/dmlc/dlpack declares it (version 1.3) ---------------------------------------------------- */

typedef struct DLManagedTensor {
  posenc_tensor tensor;
  void* context;
  void (*deleter)(struct DLManagedTensor*);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(struct DLManagedTensorVersioned*);
  uint64_t flags; /* bit 0: read-only */
  posenc_tensor tensor;
} DLManagedTensorVersioned;
typedef struct ExchangeApi { /* what type(x).__dlpack_c_exchange_api__ points to */
  uint32_t major, minor;
  struct ExchangeApi* previous;
  void *allocate, *managed_from_object, *managed_to_object;
  int (*tensor_from_object)(void* object, posenc_tensor* out);
  int (*current_stream)(int32_t device_type, int32_t device_id, void** out);
} ExchangeApi;

enum { kHost = 1, kCuda = 2, kMaxRank = 8 };

/* --- what is known of a type, found out once ------------------------------------------------------------------------- */

typedef enum { PLAIN, TORCH, CUPY, JAX } Library;
typedef struct {
  PyTypeObject* type; /* a reference of ours */
  Library library;
  const ExchangeApi* api; /* NULL: it has none */
} TypeFacts;

static PyObject *posenc_Error, *name_dlpack, *name_api, *name_requires_grad, *name_is_cuda, *name_module, *kw_stream,
    *kw_max_version, *minus_one, *version_1_1, *empty_tuple;

static const TypeFacts* facts_of(PyTypeObject* type) {
  static TypeFacts known[16];
  static unsigned count = 0;
  for (unsigned i = 0; i < 16 && i < count; ++i) {
    if (known[i].type == type) return &known[i];
  }
  TypeFacts* const facts = &known[count % 16];
  Py_XDECREF((PyObject*)facts->type);
  ++count;
  facts->type = (PyTypeObject*)new_reference((PyObject*)type);
  facts->library = PLAIN;
  facts->api = NULL;
  PyObject* const module = PyObject_GetAttr((PyObject*)type, name_module);
  const char* const text = module != NULL && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
  if (text != NULL) {
    if (strncmp(text, "torch", 5) == 0) facts->library = TORCH;
    if (strncmp(text, "cupy", 4) == 0) facts->library = CUPY;
    if (strncmp(text, "jax", 3) == 0) facts->library = JAX;
  }
  Py_XDECREF(module);
  PyErr_Clear();
  PyObject* const capsule = PyObject_GetAttr((PyObject*)type, name_api);
  if (capsule != NULL && PyCapsule_IsValid(capsule, "dlpack_exchange_api")) {
    const ExchangeApi* const api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    if (api != NULL && api->major == 1) facts->api = api;
  }
  Py_XDECREF(capsule);
  PyErr_Clear();
  if (PyType_IsSubtype(type, &PyBaseObject_Type) && facts->library == PLAIN) {
    /* a subclass of torch.Tensor (Parameter …) is a tensor too */
    PyObject* const bases = PyObject_GetAttrString((PyObject*)type, "__mro__");
    for (Py_ssize_t i = 1; bases != NULL && i < PyTuple_Size(bases); ++i) {
      PyObject* const base = PyTuple_GetItem(bases, i);
      PyObject* const place = base == NULL ? NULL : PyObject_GetAttr(base, name_module);
      const char* const base_text =
          place != NULL && PyUnicode_Check(place) ? PyUnicode_AsUTF8AndSize(place, NULL) : NULL;
      if (base_text != NULL && strncmp(base_text, "torch", 5) == 0) facts->library = TORCH;
      Py_XDECREF(place);
    }
    Py_XDECREF(bases);
    PyErr_Clear();
  }
  return facts;
}

/* What is asked of torch for each tensor, found out once. to_dlpack orders no streams: the call runs on the tensor's own. */
static PyObject *torch_to_dlpack, *torch_is_neg, *torch_data_ptr, *torch_stride;
static PyTypeObject* torch_tensor;
static PyObject *name_dtype, *name_shape, *name_is_cpu;
static struct {
  const char* name;
  posenc_dtype type;
  PyObject* object;
} torch_types[] = {{"float32", {2, 32, 1}, NULL}, {"bfloat16", {4, 16, 1}, NULL}, {"float16", {2, 16, 1}, NULL},
                   {"float64", {2, 64, 1}, NULL}, {"int64", {0, 64, 1}, NULL},    {"int32", {0, 32, 1}, NULL},
                   {"uint8", {1, 8, 1}, NULL},    {"bool", {6, 8, 1}, NULL}};
enum { kTorchTypes = sizeof torch_types / sizeof *torch_types };

static PyObject* attribute_or_null(PyObject* owner, const char* name) {
  PyObject* const found = owner == NULL ? NULL : PyObject_GetAttrString(owner, name);
  if (found == NULL) PyErr_Clear();
  return found;
}

static void meet_torch(void) {
  static int is_known = 0;
  if (is_known) return;
  is_known = 1;
  name_dtype = PyUnicode_InternFromString("dtype");
  name_shape = PyUnicode_InternFromString("shape");
  name_is_cpu = PyUnicode_InternFromString("is_cpu");
  PyObject* const core = PyImport_ImportModule("torch._C");
  PyObject* const torch = PyImport_ImportModule("torch");
  PyErr_Clear();
  PyObject* const base = attribute_or_null(core, "_TensorBase");
  torch_to_dlpack = attribute_or_null(core, "_to_dlpack");
  torch_is_neg = attribute_or_null(base, "is_neg");
  torch_stride = attribute_or_null(base, "stride");
  torch_data_ptr = attribute_or_null(base, "data_ptr");
  for (int i = 0; i < kTorchTypes; ++i) torch_types[i].object = attribute_or_null(torch, torch_types[i].name);
  torch_tensor = (PyTypeObject*)attribute_or_null(torch, "Tensor");
  if (torch_is_neg == NULL || torch_stride == NULL || torch_data_ptr == NULL) torch_tensor = NULL;
  Py_XDECREF(base);
  Py_XDECREF(core);
  Py_XDECREF(torch);
}

/* --- borrowing an array ---------------------------------------------------------------------------------------------- */

enum {
  WRITE = 1,
  BF16 = 2,     /* 16-bit integers hold bfloat16 */
  KEEP = 4,     /* beyond the call */
  IN_PLACE = 9, /* written, and a copy would not do, as a cache */
};
typedef struct {
  posenc_tensor tensor;
  PyObject* capsule; /* DLPack's, which owns the memory */
  Py_buffer view;
  int has_view;
  void* stream; /* of the array's library, where it is on a GPU */
  int64_t shape[kMaxRank], strides[kMaxRank];
} Borrowed;

static void give_back(Borrowed* b) {
  Py_CLEAR(b->capsule);
  if (b->has_view) PyBuffer_Release(&b->view);
  b->has_view = 0;
}

static int is_true(PyObject* x, PyObject* attribute) {
  PyObject* const value = PyObject_GetAttr(x, attribute);
  if (value == NULL) {
    PyErr_Clear();
    return 0;
  }
  const int truth = PyObject_IsTrue(value);
  Py_DECREF(value);
  return truth == 1;
}

static int refuse_read_only(const char* verb, const char* name, int flags) {
  PyErr_Format(PyExc_ValueError, "%s: %s is read-only; %s", verb, name,
               (flags & IN_PLACE) == IN_PLACE ? "it is written in place, where it is" : "pass out= or a copy");
  return -1;
}

/* A format character of the struct module → a DLPack type; 0 where there is none. */
static int type_from_format(const char* format, Py_ssize_t size, int flags, posenc_dtype* type) {
  if (strcmp(format, "T{e:scale:(32)b:values:}") == 0) { /* a block of q8_0, posenc.q8_0 in numpy */
    *type = (posenc_dtype){1, 8, (uint16_t)size};
    return 1;
  }
  if (*format == '<' || *format == '=' || *format == '@' || *format == '|') ++format;
  if (format[0] == '\0' || format[1] != '\0') return 0;
  type->lanes = 1;
  type->bits = (uint8_t)(8 * size);
  switch (*format) {
    case 'f':
    case 'd':
    case 'e':
      type->code = 2;
      return 1;
    case 'q':
    case 'l':
    case 'i':
      type->code = 0;
      return size == 4 || size == 8;
    case 'B':
      type->code = 1;
      return 1;
    case '?':
      type->code = 6;
      return 1;
    case 'H':
    case 'h':
      type->code = 4;
      return (flags & BF16) != 0;
    default:
      return 0;
  }
}

static int borrow_buffer(PyObject* x, Borrowed* b, const char* verb, const char* name, int flags) {
  if (PyObject_GetBuffer(x, &b->view, PyBUF_STRIDES | PyBUF_FORMAT)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "%s: %s has elements that Python cannot export; for bfloat16 in numpy, pass "
                 "x.view(numpy.uint16) and dtype=\"bf16\"",
                 verb, name);
    return -1;
  }
  b->has_view = 1;
  const Py_buffer* const view = &b->view;
  const char* const format = view->format == NULL ? "B" : view->format;
  if (*format == '>' || *format == '!') {
    PyErr_Format(PyExc_TypeError, "%s: %s is big-endian (format '%s'); convert it to the machine's byte order first",
                 verb, name, format);
    return -1;
  }
  if (!type_from_format(format, view->itemsize, flags, &b->tensor.dtype)) {
    PyErr_Format(PyExc_TypeError,
                 "%s: %s has elements of format '%s', which is not f32, f64, f16, bf16 or an integer%s", verb, name,
                 format, *format == 'H' ? "; if they hold bfloat16, pass dtype=\"bf16\"" : "");
    return -1;
  }
  if (view->ndim > kMaxRank) {
    PyErr_Format(posenc_Error, "%s: %s has %d dimensions; at most %d are supported", verb, name, view->ndim,
                 kMaxRank);
    return -1;
  }
  if ((flags & WRITE) && view->readonly) return refuse_read_only(verb, name, flags);
  b->tensor.data = view->buf;
  b->tensor.device.type = kHost;
  b->tensor.ndim = view->ndim;
  for (int i = 0; i < view->ndim; ++i) {
    if (view->strides[i] % view->itemsize != 0) {
      PyErr_Format(posenc_Error, "%s: %s has strides that are no multiple of its elements' size", verb, name);
      return -1;
    }
    b->shape[i] = view->shape[i];
    b->strides[i] = view->strides[i] / view->itemsize;
  }
  return 0;
}

/* The integers of a tuple, which is given up. The number of them, or -1. */
static int take_integers(PyObject* tuple, int64_t out[kMaxRank]) {
  const Py_ssize_t count = tuple == NULL ? -1 : PyTuple_Size(tuple);
  for (Py_ssize_t i = 0; i < count && i < kMaxRank; ++i) out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
  Py_XDECREF(tuple);
  return PyErr_Occurred() ? -1 : (int)count;
}

/* A plain tensor of torch on the host, by its own attributes: torch before 2.11 takes 1.3 us to make a capsule, these
   take 0.4. Borrowed for this call alone. 1: done; 0: not this way (another device, a subclass, a type that posenc does
   not know): the capsule says why; -1: an exception. */
static int borrow_torch(PyObject* x, Borrowed* b) {
  if (Py_TYPE(x) != torch_tensor || !is_true(x, name_is_cpu)) return 0;
  PyObject* const type = PyObject_GetAttr(x, name_dtype);
  Py_XDECREF(type); /* torch keeps it */
  int known = 0;
  while (known < kTorchTypes && torch_types[known].object != type) ++known;
  if (type == NULL || known == kTorchTypes) {
    PyErr_Clear();
    return 0;
  }
  const int rank = take_integers(PyObject_GetAttr(x, name_shape), b->shape);
  if (rank < 0) return -1;
  if (rank > kMaxRank) return 0;
  if (take_integers(PyObject_CallFunctionObjArgs(torch_stride, x, NULL), b->strides) != rank) {
    PyErr_Clear(); /* sparse: it has none */
    return 0;
  }
  PyObject* const address = PyObject_CallFunctionObjArgs(torch_data_ptr, x, NULL);
  void* const data = address == NULL ? NULL : PyLong_AsVoidPtr(address);
  Py_XDECREF(address);
  PyErr_Clear();
  if (data == NULL) return 0;
  b->tensor.data = data;
  b->tensor.device.type = kHost;
  b->tensor.ndim = rank;
  b->tensor.dtype = torch_types[known].type;
  return 1;
}

static int borrow_capsule(PyObject* x, const TypeFacts* facts, Borrowed* b, const char* verb, const char* name,
                          int flags) {
  const int is_cuda = facts->library == TORCH && is_true(x, name_is_cuda);
  if (facts->library == TORCH && torch_to_dlpack != NULL) { /* what torch's __dlpack__ calls once it has checked */
    b->capsule = PyObject_CallFunctionObjArgs(torch_to_dlpack, x, NULL);
    const DLManagedTensor* const managed = b->capsule == NULL ? NULL : PyCapsule_GetPointer(b->capsule, "dltensor");
    if (managed == NULL) return -1;
    b->tensor = managed->tensor;
    return 0;
  }
  PyObject* const method = PyObject_GetAttr(x, name_dlpack);
  if (method == NULL) {
    PyErr_Clear();
    PyObject* const type = name_of_type(Py_TYPE(x));
    PyErr_Format(PyExc_TypeError, "%s: %s must be an array (numpy, torch, memoryview or the like) but is of type %S",
                 verb, name, type);
    Py_XDECREF(type);
    return -1;
  }
  PyObject* options = NULL;
  if (is_cuda) { /* the call is ordered on the tensor's own stream: nothing to wait for */
    options = PyDict_New();
    if (options != NULL) PyDict_SetItem(options, kw_stream, minus_one);
  }
  PyObject* capsule = PyObject_Call(method, empty_tuple, options);
  const int is_unversioned = capsule != NULL && PyCapsule_IsValid(capsule, "dltensor");
  const int must_ask = (flags & WRITE) && is_unversioned && facts->library != TORCH && facts->library != CUPY;
  if ((capsule == NULL && PyErr_ExceptionMatches(PyExc_BufferError)) ||
      must_ask) { /* a versioned one says what is read-only */
    PyErr_Clear();
    Py_CLEAR(capsule);
    if (options == NULL) options = PyDict_New();
    if (options != NULL) PyDict_SetItem(options, kw_max_version, version_1_1);
    capsule = PyObject_Call(method, empty_tuple, options);
  }
  Py_XDECREF(options);
  Py_DECREF(method);
  if (capsule == NULL) return -1;
  b->capsule = capsule;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    const DLManagedTensorVersioned* const managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (managed->major != 1) {
      PyErr_Format(PyExc_BufferError, "%s: %s speaks DLPack %u; posenc knows version 1", verb, name, managed->major);
      return -1;
    }
    if ((flags & WRITE) && (managed->flags & 1)) return refuse_read_only(verb, name, flags);
    b->tensor = managed->tensor;
    return 0;
  }
  const DLManagedTensor* const managed = PyCapsule_GetPointer(capsule, "dltensor");
  if (managed == NULL) return -1;
  if (must_ask) {
    PyErr_Format(PyExc_TypeError, "%s: %s cannot be written: its library does not say whether it is read-only", verb,
                 name);
    return -1;
  }
  b->tensor = managed->tensor;
  return 0;
}

/* Afterwards b->tensor looks at x's own memory. The caller gives it back, whatever this returns. */
static int borrow(PyObject* x, Borrowed* b, const char* verb, const char* name, int flags) {
  memset(b, 0, sizeof *b);
  const TypeFacts* const facts = facts_of(Py_TYPE(x));
  if (facts->library == JAX && (flags & WRITE)) {
    PyErr_Format(PyExc_TypeError, "%s: %s is a jax array, which cannot be written; %s", verb, name,
                 (flags & IN_PLACE) == IN_PLACE ? "keep it in numpy or torch" : "pass numpy.array(x)");
    return -1;
  }
  if (facts->library == TORCH && is_true(x, name_requires_grad)) {
    PyErr_Format(PyExc_ValueError, "%s: %s requires grad; use posenc.torch, or pass x.detach()", verb, name);
    return -1;
  }
  if (facts->library == TORCH) meet_torch();
  if (facts->library == TORCH && torch_is_neg != NULL) {
    /* A view that torch negates when it reads it: its memory has the other sign. */
    PyObject* const answer = PyObject_CallFunctionObjArgs(torch_is_neg, x, NULL);
    if (answer == NULL) return -1;
    Py_DECREF(answer);
    if (answer == Py_True) {
      PyErr_Format(PyExc_ValueError, "%s: %s is a lazily negated view; pass x.resolve_neg()", verb, name);
      return -1;
    }
  }
  int is_own = 0; /* shape and strides are in b already */
  const int by_attributes = facts->library == TORCH && facts->api == NULL && !(flags & KEEP) ? borrow_torch(x, b) : 0;
  if (by_attributes != 0) {
    if (by_attributes < 0) return -1;
    is_own = 1;
  } else if (facts->api != NULL && facts->api->tensor_from_object != NULL && !(flags & KEEP)) {
    if (facts->api->tensor_from_object(x, &b->tensor)) return -1;
  } else if (facts->library == PLAIN && PyObject_CheckBuffer(x)) {
    if (borrow_buffer(x, b, verb, name, flags)) return -1;
    is_own = 1;
  } else if (borrow_capsule(x, facts, b, verb, name, flags)) {
    return -1;
  }
  posenc_tensor* const t = &b->tensor;
  if (t->ndim > kMaxRank) {
    PyErr_Format(posenc_Error, "%s: %s has %d dimensions; at most %d are supported", verb, name, (int)t->ndim,
                 kMaxRank);
    return -1;
  }
  if (!is_own) {
    int64_t dense = 1;
    for (int i = t->ndim - 1; i >= 0; --i) {
      b->shape[i] = t->shape[i];
      b->strides[i] = t->strides == NULL ? dense : t->strides[i];
      dense *= t->shape[i];
    }
  }
  if ((flags & BF16) && t->dtype.bits == 16 && t->dtype.code < 2) t->dtype.code = 4;
  t->shape = b->shape;
  t->strides = b->strides;
  if (t->device.type == kCuda) {
    if (facts->api != NULL) return facts->api->current_stream(kCuda, t->device.id, &b->stream);
    PyObject* const module = PyImport_ImportModule("posenc._streams");
    PyObject* const stream = module == NULL ? NULL : PyObject_CallMethod(module, "stream_of", "O", x);
    Py_XDECREF(module);
    if (stream == NULL) return -1;
    b->stream = PyLong_AsVoidPtr(stream);
    Py_DECREF(stream);
    if (PyErr_Occurred()) return -1;
  }
  return 0;
}

/* Brings the axes into the library's order, [batch, heads, sequence, features]. `order` names them as they are in memory. */
static int reorder(Borrowed* b, PyObject* order, const char* verb, const char* name) {
  Py_ssize_t length = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(order, &length);
  if (text == NULL) return -1;
  const int rank = b->tensor.ndim;
  if (strcmp(text, "bhsd") == 0 && rank <= 4) return 0; /* the default; the first axes may be missing */
  static const char* const kOrders[] = {"sd", "hsd", "shd", "thd", "bhsd", "bshd"};
  int is_known = 0;
  for (size_t i = 0; i < sizeof kOrders / sizeof *kOrders; ++i) is_known |= strcmp(text, kOrders[i]) == 0;
  if (!is_known) {
    PyErr_Format(posenc_Error, "%s: order is '%s'; choose from: sd, hsd, shd, thd, bhsd, bshd", verb, text);
    return -1;
  }
  if (length != rank) {
    PyErr_Format(posenc_Error, "%s: order is '%s', but %s has %d axes", verb, text, name, rank);
    return -1;
  }
  if (length >= 3 && text[length - 2] == 'h') { /* the sequence before the heads */
    const int s = rank - 3, h = rank - 2;
    const int64_t extent = b->shape[s], stride = b->strides[s];
    b->shape[s] = b->shape[h], b->strides[s] = b->strides[h];
    b->shape[h] = extent, b->strides[h] = stride;
  }
  return 0;
}
