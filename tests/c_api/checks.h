/* What the C programs of this folder check with. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "posenc/posenc_c.h"

static int checks = 0, failures = 0;

#define CHECK(condition)                                                                         \
  do {                                                                                           \
    ++checks;                                                                                    \
    if (!(condition)) {                                                                          \
      ++failures;                                                                                \
      printf("%s:%d: %s  (posenc_error: %s)\n", __FILE__, __LINE__, #condition, posenc_error()); \
    }                                                                                            \
  } while (0)
#define OK(call) CHECK((call) == POSENC_OK)
/* The status, and a part of its message. */
#define REFUSES(call, status, text)              \
  do {                                           \
    CHECK((call) == (status));                   \
    CHECK(strstr(posenc_error(), text) != NULL); \
  } while (0)

__attribute__((unused)) static const posenc_dtype kF32 = {2, 32, 1}, kF64 = {2, 64, 1}, kI64 = {0, 64, 1},
                                                  kI32 = {0, 32, 1}, kBool = {6, 8, 1};

/* A dense tensor on the host. `shape` must outlive it. */
static posenc_tensor tensor(void* data, posenc_dtype type, int ndim, int64_t* shape) {
  const posenc_tensor made = {data, {1, 0}, ndim, type, shape, NULL, 0};
  return made;
}
#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

__attribute__((unused)) static posenc_form* prepared(const char* json) {
  posenc_form* form = NULL;
  OK(posenc_prepare(json, NULL, &form));
  return form;
}

__attribute__((unused)) static int text_has(char* text, const char* part) {
  const int has = text != NULL && strstr(text, part) != NULL;
  posenc_free(text);
  return has;
}
