#pragma once

#include <array>
#include <string_view>
#include <type_traits>

namespace posenc {

/// The names of an enumeration's values, in order, as they are written in JSON and flags.
/// Specialised beside each enumeration.
template <class Enum> struct ChoiceNames;

template <class T>
concept Choice = std::is_enum_v<T> && requires {
  ChoiceNames<T>::value;
};

template <Choice E> constexpr std::string_view choice_name(E choice) {
  return ChoiceNames<E>::value[static_cast<std::size_t>(choice)];
}

}  // namespace posenc
