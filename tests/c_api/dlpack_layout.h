/* DLTensor and what it is made of, as https://github.com/dmlc/dlpack declares them in version 1 of include/dlpack/dlpack.h:
 * written down here a second time so that a test can compare. */
#pragma once

#include <stdint.h>

typedef struct {
  int32_t device_type; /* an enumeration in DLPack, of this size */
  int32_t device_id;
} DLDevice;
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;
