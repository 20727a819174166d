#include "c_api/arguments.h"

#include <algorithm>
#include <limits>

#include "posenc/backend.h"

namespace posenc::c_api {
namespace {

enum : std::int32_t { kHostMemory = 1, kCudaMemory = 2, kPinnedMemory = 3 };
enum : std::uint8_t { kInteger = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kBool = 6, kE4M3Code = 10 };

// The bytes of a cache are e4m3: numpy, and engines that keep caches of several formats, have no other name for them.
bool holds_bytes(std::string_view what) {
  return what == "the cache" || what == "the cache of keys" || what == "the cache of values" || what == "k" ||
         what == "v";
}

DataType type_of(const posenc_dtype& type, const char* verb, const char* what) {
  if (type.lanes == 1) {
    if (type.code == kUnsigned && type.bits == 8 && std::strcmp(what, "mask") == 0) return DataType::kBool;
    if (type.code == kUnsigned && type.bits == 8 && holds_bytes(what)) return DataType::kE4M3;
    if (type.code == kE4M3Code && type.bits == 8) return DataType::kE4M3;
    if (type.code == kFloat && type.bits == 32) return DataType::kF32;
    if (type.code == kFloat && type.bits == 64) return DataType::kF64;
    if (type.code == kFloat && type.bits == 16) return DataType::kF16;
    if (type.code == kBfloat && type.bits == 16) return DataType::kBF16;
    if (type.code == kInteger && type.bits == 64) return DataType::kI64;
    if (type.code == kBool && type.bits == 8) return DataType::kBool;
  }
  // what DLPack calls a vector: the bytes of a block
  if (type.code == kUnsigned && type.bits == 8 && type.lanes == sizeof(Q8Block)) return DataType::kQ8_0;
  refuse(POSENC_UNSUPPORTED,
         fmt::format("{}: {} has elements of DLPack type (code {}, {} bits, {} lanes), which is not f32, f64, f16, "
                     "bf16, e4m3, q8_0, i64 or bool",
                     verb, what, type.code, type.bits, type.lanes));
}

Device device_of(const posenc_device& device, const char* verb, const char* what) {
  if (device.type == kHostMemory || device.type == kPinnedMemory) return Device::kHost;
  if (device.type == kCudaMemory) return Device::kCuda;
  refuse(POSENC_DEVICE, fmt::format("{}: {} is on a device of DLPack type {}; posenc computes on the host (1) and on "
                                    "CUDA (2)",
                                    verb, what, device.type));
}

// A tensor of blocks with a shape and strides of elements. They stay small enough to be checked later.
void expand_blocks(TensorView& view, const char* verb, const char* what) {
  const std::int64_t block = elements_of_block(view.type);
  const int last = view.shape.rank - 1;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / Q8Block::kElements;
  for (int axis = 0; block > 1 && axis <= last; ++axis) {
    std::int64_t& number = axis == last ? view.shape[axis] : view.strides[axis];
    if (number > kMost || number < -kMost) {
      refuse(fmt::format("{}: {} has blocks past the end of memory", verb, what));
    }
    number *= block;
  }
}

// Shape, strides and address, for any element type.
TensorView shape_of(const posenc_tensor& tensor, DataType type, std::int64_t size, const char* verb,
                    const char* what) {
  if (tensor.ndim < 0 || tensor.ndim > Extents::kMax) {
    refuse(fmt::format("{}: {} has {} dimensions; at most {} are supported", verb, what, tensor.ndim, Extents::kMax));
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) refuse(fmt::format("{}: {} has no shape", verb, what));
  Extents shape, strides;
  for (int axis = 0; axis < tensor.ndim; ++axis) shape.push_back(tensor.shape[axis]);
  const std::int64_t count = count_of(shape);
  if (count < 0) refuse(fmt::format("{}: {} has the impossible shape {}", verb, what, to_string(shape)));
  if (tensor.strides == nullptr) {
    strides = dense_strides(shape);
  } else {
    for (int axis = 0; axis < tensor.ndim; ++axis) strides.push_back(tensor.strides[axis]);
    // The stride of an axis with one element has no meaning, and torch exports 1; dense strides are the fast case in
    // kernels.
    for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
      if (shape[axis] != 1) continue;
      if (axis == tensor.ndim - 1 || __builtin_mul_overflow(shape[axis + 1], strides[axis + 1], &strides[axis])) {
        strides[axis] = 1;
      }
    }
  }
  if (tensor.data == nullptr && count > 0) refuse(fmt::format("{}: {} has no data", verb, what));
  auto* const data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  const std::int64_t alignment = type == DataType::kQ8_0 ? std::int64_t{alignof(Q8Block)} : size;
  if (count > 0 && reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(alignment) != 0) {
    refuse(fmt::format("{}: {} is not aligned: its first element must be at a multiple of {} bytes", verb, what,
                       alignment));
  }
  TensorView view(data, type, shape, strides);
  view.device = device_of(tensor.device, verb, what);
  expand_blocks(view, verb, what);
  return view;
}

// Calls visit(element address) for each element, the last axis fastest.
template <class Visit> void for_each(const TensorView& view, std::int64_t size, const Visit& visit) {
  const std::int64_t count = count_of(view.shape);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = 0, rest = i;
    for (int axis = view.shape.rank - 1; axis >= 0; --axis) {
      offset += rest % view.shape[axis] * view.strides[axis];
      rest /= view.shape[axis];
    }
    visit(static_cast<const char*>(view.data) + offset * size);
  }
}

template <class T> std::vector<std::int64_t> converted(const TensorView& view) {
  std::vector<std::int64_t> values;
  values.reserve(count_of(view.shape));
  for_each(view, sizeof(T), [&](const char* address) {
    T value;
    std::memcpy(&value, address, sizeof(T));
    values.push_back(value);
  });
  return values;
}

}  // namespace

void require(const void* pointer, const char* verb, const char* what) {
  if (pointer == nullptr) refuse(fmt::format("{}: {} is missing (NULL)", verb, what));
}

TensorView view_of(const posenc_tensor* tensor, const char* verb, const char* what) {
  if (tensor == nullptr) return {};
  const DataType type = type_of(tensor->dtype, verb, what);
  const TensorView view = shape_of(*tensor, type, size_of(type), verb, what);
  if (view.device == Device::kHost) return view;
  const std::vector<std::string_view> here = backends();
  if (std::find(here.begin(), here.end(), "cuda") == here.end()) {
    refuse(POSENC_DEVICE,
           fmt::format("{}: {} is on cuda, which cannot run here: {}", verb, what, why_absent("cuda")));
  }
  return view;
}

TensorView needed_view(const posenc_tensor* tensor, const char* verb, const char* what) {
  require(tensor, verb, what);
  return view_of(tensor, verb, what);
}

TensorView host_view(const posenc_tensor* tensor, const char* verb, const char* what) {
  require(tensor, verb, what);
  const DataType type = type_of(tensor->dtype, verb, what);
  const TensorView view = shape_of(*tensor, type, size_of(type), verb, what);
  if (view.device != Device::kHost) refuse(POSENC_DEVICE, fmt::format("{}: {} must be in host memory", verb, what));
  return view;
}

TensorView integers_view(const posenc_tensor& tensor, const char* verb, const char* what) {
  const posenc_dtype& type = tensor.dtype;
  const bool is_word = type.code == kInteger && (type.bits == 64 || type.bits == 32);
  const bool is_byte = type.bits == 8 && (type.code == kBool || type.code == kUnsigned);
  if (type.lanes != 1 || !(is_word || is_byte)) {
    refuse(POSENC_UNSUPPORTED,
           fmt::format("{}: {} must be integers (i64, i32, u8 or bool), but has DLPack type (code "
                       "{}, {} bits)",
                       verb, what, type.code, type.bits));
  }
  const TensorView view = shape_of(tensor, DataType::kI64, type.bits / 8, verb, what);
  for (int axis = 0; axis < view.shape.rank; ++axis) {
    const std::int64_t steps = view.shape[axis] - 1,
                       most = (std::int64_t{1} << 56) / std::max<std::int64_t>(steps, 1);
    if (steps < 1 || (view.strides[axis] >= -most && view.strides[axis] <= most)) continue;
    refuse(fmt::format("{}: {} has strides past the end of memory: shape {}, strides {}", verb, what,
                       to_string(view.shape), to_string(view.strides)));
  }
  return view;
}

bool is_dense(const TensorView& view) noexcept {
  return view.strides == dense_strides(view.shape) || count_of(view.shape) <= 1;
}

Integers::Integers(const posenc_tensor* tensor, const char* verb, const char* what) {
  if (tensor == nullptr) return;
  const TensorView view = integers_view(*tensor, verb, what);
  const bool is_wide = tensor->dtype.bits == 64, is_narrow = tensor->dtype.bits == 32;
  device_ = view.device;
  if (is_wide && is_dense(view)) {
    values_ = {static_cast<const std::int64_t*>(view.data), static_cast<std::size_t>(count_of(view.shape))};
    return;
  }
  if (device_ != Device::kHost) {
    refuse(POSENC_UNSUPPORTED, fmt::format("{}: {} on a GPU must be dense i64", verb, what));
  }
  own_ = is_wide     ? converted<std::int64_t>(view)
         : is_narrow ? converted<std::int32_t>(view)
                     : converted<std::uint8_t>(view);
  values_ = own_;
}

Integers host_integers(const posenc_tensor* tensor, const char* verb, const char* what) {
  Integers made(tensor, verb, what);
  if (made.device() != Device::kHost) {
    refuse(POSENC_DEVICE, fmt::format("{}: {} must be in host memory", verb, what));
  }
  return made;
}

std::int32_t page_of(std::int64_t page) noexcept {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(page, -1, std::numeric_limits<std::int32_t>::max()));
}

HeldPositions::HeldPositions(const posenc_positions* positions, const char* verb) {
  const posenc_positions given = known(positions, "posenc_positions");
  if (given.axes < 0 || given.axes > 8) {
    refuse(fmt::format("{}: a position has 1 to 8 axes but {} are given", verb, given.axes));
  }
  ids = Integers(given.ids, verb, "ids");
  value = {
      .first = given.first, .ids = ids.values(), .axes = given.axes == 0 ? 1 : given.axes, .device = ids.device()};
  // The library treats an empty list as "consecutive", but ids for no tokens are still ids.
  if (given.ids != nullptr && ids.values().empty()) value.first = 0;
}

Run run_of(const posenc_run* run) {
  const posenc_run given = known(run, "posenc_run");
  if (given.workspace == nullptr && given.workspace_size != 0) {
    refuse(fmt::format("posenc_run: workspace_size is {} but workspace is NULL", given.workspace_size));
  }
  return Run{.stream = given.stream,
             .threads = given.threads,
             .workspace = {static_cast<std::byte*>(given.workspace), given.workspace_size},
             .pool = {.run = given.pool, .context = given.pool_context}};
}

const char* kind_of(const Form& form) noexcept {
  constexpr const char* kKinds[] = {"nothing", "addition", "rotation", "bias"};
  return kKinds[form.index()];
}

const Form& form_of(const posenc_form* form, const char* verb) {
  require(form, verb, "the form");
  return form->form;
}

namespace {

template <class Kind> const Kind& form_that_is(const posenc_form* form, const char* verb, const char* wanted) {
  constexpr const char* kFound[] = {"that of no position", "an addition", "a rotation", "a bias"};
  const Form& all = form_of(form, verb);
  if (const auto* const one = std::get_if<Kind>(&all)) return *one;
  refuse(fmt::format("{}: the form must be {} but is {}", verb, wanted, kFound[all.index()]));
}

}  // namespace

template <> const Rotation& form_as<Rotation>(const posenc_form* form, const char* verb) {
  return form_that_is<Rotation>(form, verb, "a rotation");
}
template <> const Bias& form_as<Bias>(const posenc_form* form, const char* verb) {
  return form_that_is<Bias>(form, verb, "a bias");
}
template <> const Addition& form_as<Addition>(const posenc_form* form, const char* verb) {
  return form_that_is<Addition>(form, verb, "an addition");
}

}  // namespace posenc::c_api
