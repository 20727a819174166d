#include "formats/safetensors_dtype.h"

#include <array>

namespace posenc {
namespace {

constexpr std::array<SafetensorsDtype, 22> kSafetensorsDtypes = {{
    {"F32", 32, DataType::kF32},
    {"F64", 64, DataType::kF64},
    {"F16", 16, DataType::kF16},
    {"BF16", 16, DataType::kBF16},
    {"I64", 64, DataType::kI64},
    {"BOOL", 8, {}},
    {"U8", 8, {}},
    {"I8", 8, {}},
    {"U16", 16, {}},
    {"I16", 16, {}},
    {"U32", 32, {}},
    {"I32", 32, {}},
    {"U64", 64, {}},
    {"C64", 64, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"F4", 4, {}},
}};

}  // namespace

const SafetensorsDtype* find_safetensors_dtype(std::string_view name) {
  for (const SafetensorsDtype& dtype : kSafetensorsDtypes) {
    if (dtype.name == name) return &dtype;
  }
  return nullptr;
}

// In the order of DataType.
const SafetensorsDtype& safetensors_dtype_of(DataType type) {
  return kSafetensorsDtypes[static_cast<std::size_t>(type)];
}

std::int64_t safetensors_bytes(const SafetensorsDtype& dtype, const Extents& shape) {
  std::int64_t bound = dtype.bits;
  bool empty = false;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] == 0) empty = true;
    if (shape[axis] != 0 && __builtin_mul_overflow(bound, shape[axis], &bound)) return -1;
  }
  if (empty) return 0;
  return bound % 8 == 0 ? bound / 8 : -2;
}

}  // namespace posenc
