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

/// The member of an option of type T in C.
template <class C, posenc_field_kind kind> struct Member {
  using Type = C;
  static constexpr posenc_field_kind kKind = kind;
};
template <class T> struct InC;
template <> struct InC<bool> : Member<std::int32_t, POSENC_FIELD_FLAG> {};
template <> struct InC<std::int64_t> : Member<std::int64_t, POSENC_FIELD_INTEGER> {};
template <> struct InC<double> : Member<double, POSENC_FIELD_NUMBER> {};
template <> struct InC<std::optional<double>> : Member<const double*, POSENC_FIELD_OPTIONAL_NUMBER> {};
template <> struct InC<Form> : Member<const posenc_form*, POSENC_FIELD_FORM> {};
template <> struct InC<std::optional<Positions>> : Member<const posenc_positions*, POSENC_FIELD_POSITIONS> {};
template <> struct InC<std::optional<Temperature>> : Member<const posenc_temperature*, POSENC_FIELD_TEMPERATURE> {};
template <> struct InC<std::span<const std::int64_t>> : Member<const posenc_tensor*, POSENC_FIELD_INTEGERS> {};
template <> struct InC<std::span<const std::int32_t>> : Member<const posenc_tensor*, POSENC_FIELD_PAGES> {};
template <> struct InC<ConstTensorView> : Member<const posenc_tensor*, POSENC_FIELD_TENSOR> {};
template <> struct InC<TensorView> : Member<const posenc_tensor*, POSENC_FIELD_OUTPUT> {};

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
