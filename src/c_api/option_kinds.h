#pragma once

#include <algorithm>
#include <cstddef>

#include "posenc/option_set.h"
#include "posenc/posenc_c.h"

// How the list of AttentionOptions::fields becomes posenc_attention_options: a member for each option, in its order.
namespace posenc::c_api {

/// The options that C does not have: there, strides define the order of axes, and lengths are on the host.
inline constexpr OptionSet kOnlyInCpp(&AttentionOptions::axes, &AttentionOptions::device_key_lengths,
                                      &AttentionOptions::device_block_table);

/// The member of an option of type T: its type, in C's words, and its kind.
template <class T> struct InC {
  using Type = const posenc_tensor*;
  static constexpr const char* kText = "const posenc_tensor* ";
  static constexpr posenc_field_kind kKind = POSENC_FIELD_INTEGERS;
};
template <> struct InC<ConstTensorView> : InC<void> {
  static constexpr posenc_field_kind kKind = POSENC_FIELD_TENSOR;
};
template <> struct InC<TensorView> : InC<void> { static constexpr posenc_field_kind kKind = POSENC_FIELD_OUTPUT; };
template <> struct InC<std::span<const std::int32_t>> : InC<void> {
  static constexpr posenc_field_kind kKind = POSENC_FIELD_PAGES;
};
template <> struct InC<bool> {
  using Type = std::int32_t;
  static constexpr const char* kText = "int32_t ";
  static constexpr posenc_field_kind kKind = POSENC_FIELD_FLAG;
};
template <> struct InC<std::int64_t> {
  using Type = std::int64_t;
  static constexpr const char* kText = "int64_t ";
  static constexpr posenc_field_kind kKind = POSENC_FIELD_INTEGER;
};
template <> struct InC<double> {
  using Type = double;
  static constexpr const char* kText = "double ";
  static constexpr posenc_field_kind kKind = POSENC_FIELD_NUMBER;
};
template <> struct InC<std::optional<double>> {
  using Type = const double*;
  static constexpr const char* kText = "const double* ";
  static constexpr posenc_field_kind kKind = POSENC_FIELD_OPTIONAL_NUMBER;
};
template <> struct InC<Form> {
  using Type = const posenc_form*;
  static constexpr const char* kText = "const posenc_form* ";
  static constexpr posenc_field_kind kKind = POSENC_FIELD_FORM;
};
template <> struct InC<std::optional<Positions>> {
  using Type = const posenc_positions*;
  static constexpr const char* kText = "const posenc_positions* ";
  static constexpr posenc_field_kind kKind = POSENC_FIELD_POSITIONS;
};
template <> struct InC<std::optional<Temperature>> {
  using Type = const posenc_temperature*;
  static constexpr const char* kText = "const posenc_temperature* ";
  static constexpr posenc_field_kind kKind = POSENC_FIELD_TEMPERATURE;
};

/// Calls visit(name, member, help, offset) for each option that C has; returns the size of the struct.
template <class Visit> constexpr std::size_t each_in_c(const Visit& visit) {
  std::size_t end = sizeof(std::size_t), alignment = alignof(std::size_t);
  AttentionOptions::fields([&]<class T>(const char* name, T AttentionOptions::*member, const char* help) {
    if constexpr (!std::is_same_v<T, std::optional<Axes>>) {  // a type that C does not have
      using C = typename InC<T>::Type;
      if (kOnlyInCpp.has(member)) return;
      const std::size_t offset = (end + alignof(C) - 1) / alignof(C) * alignof(C);
      visit(name, member, help, offset);
      end = offset + sizeof(C);
      alignment = std::max(alignment, alignof(C));
    }
  });
  return (end + alignment - 1) / alignment * alignment;
}

}  // namespace posenc::c_api
