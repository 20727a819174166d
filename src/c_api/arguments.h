#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "c_api/status.h"
#include "posenc/attention.h"
#include "posenc/forms.h"
#include "posenc/model.h"
#include "posenc/posenc_c.h"
#include "posenc/positions.h"
#include "posenc/scheme.h"
#include "posenc/tensor.h"

/// A form, and what is needed to prepare it again with another table.
struct posenc_form {
  posenc::Form form;
  posenc::Scheme scheme = posenc::None{};
  posenc::PrepareOptions prepare = {};  // without tables
  bool is_prepared = false;             // by posenc_prepare, from the scheme and the options above
};

// Conditions that C++ types ensure and C types do not are checked here, once for every verb.
namespace posenc::c_api {

/// A copy of the caller's struct in which fields unknown to its version are 0.
template <class Struct> Struct known(const Struct* given, const char* name) {
  Struct own = {};
  if (given != nullptr) {
    if (given->size < sizeof(given->size) || given->size > sizeof(Struct)) {
      refuse(
          fmt::format("{}: size is {}, but this library knows {} bytes: set it with POSENC_INIT, and use a library "
                      "that is no older than its header",
                      name, given->size, sizeof(Struct)));
    }
    std::memcpy(&own, given, given->size);
  }
  own.size = sizeof(Struct);
  return own;
}

/// Rejects a null pointer where a value is required.
void require(const void* pointer, const char* verb, const char* what);

/// The view of a caller's tensor; without data if `tensor` is NULL.
TensorView view_of(const posenc_tensor* tensor, const char* verb, const char* what);
/// The same, but required.
TensorView needed_view(const posenc_tensor* tensor, const char* verb, const char* what);
/// The same, in host memory.
TensorView host_view(const posenc_tensor* tensor, const char* verb, const char* what);

/// The address of a caller's integers (i64, i32, u8 or bool); the type of the view has no meaning.
TensorView integers_view(const posenc_tensor& tensor, const char* verb, const char* what);
/// Whether its elements are contiguous.
bool is_dense(const TensorView& view) noexcept;

/// A caller's integers: read in place if they are dense i64, otherwise converted (i32, bool and u8 too).
class Integers {
 public:
  Integers() = default;
  Integers(const posenc_tensor* tensor, const char* verb, const char* what);
  Integers(Integers&&) = default;  // a moved vector keeps its elements in place
  Integers& operator=(Integers&&) = default;
  std::span<const std::int64_t> values() const { return values_; }
  Device device() const { return device_; }
  bool is_in_place() const { return own_.empty(); }

 private:
  std::vector<std::int64_t> own_;
  std::span<const std::int64_t> values_;
  Device device_ = Device::kHost;
};

/// A caller's positions, with the ids they refer to.
struct HeldPositions {
  Integers ids;
  Positions value;
  HeldPositions(const posenc_positions* positions, const char* verb);
  HeldPositions(const HeldPositions&) = delete;
  HeldPositions& operator=(const HeldPositions&) = delete;
};

Run run_of(const posenc_run* run);

/// Integers in host memory.
Integers host_integers(const posenc_tensor* tensor, const char* verb, const char* what);

/// A block table entry as the library stores it: a value that no cache can have stays invalid.
std::int32_t page_of(std::int64_t page) noexcept;

PrepareOptions prepare_options_of(const posenc_prepare_options* from);
/// A config.json, or a .gguf file by its first four bytes.
Model model_from(const char* file, size_t size);

const Form& form_of(const posenc_form* form, const char* verb);
/// The form as a Rotation, Bias or Addition; rejects any other, saying what it is.
template <class Kind> const Kind& form_as(const posenc_form* form, const char* verb);
template <> const Rotation& form_as<Rotation>(const posenc_form* form, const char* verb);
template <> const Bias& form_as<Bias>(const posenc_form* form, const char* verb);
template <> const Addition& form_as<Addition>(const posenc_form* form, const char* verb);
const char* kind_of(const Form& form) noexcept;

/// A copy to be released by posenc_free.
char* text_from(const std::string& text);

}  // namespace posenc::c_api
