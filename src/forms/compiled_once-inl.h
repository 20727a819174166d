#pragma once

// The members of the templates in posenc/compiled_once.h, for sources that instantiate them: template class Boxed<T>;

#include "posenc/compiled_once.h"

namespace posenc {

template <class T> Boxed<T>::Boxed(const Boxed& other)
    : kept_(other.kept_ == nullptr ? nullptr : new T(*other.kept_)) {}
template <class T> Boxed<T>::~Boxed() { delete kept_; }
template <class T> const T& Boxed<T>::operator*() const noexcept {
  static const T none{};
  return kept_ == nullptr ? none : *kept_;
}
template <class T> T& Boxed<T>::operator*() {
  if (kept_ == nullptr) kept_ = new T{};
  return *kept_;
}
template <class T> const T* Boxed<T>::operator->() const noexcept { return &**this; }
template <class T> bool Boxed<T>::operator==(const Boxed& other) const { return **this == *other; }

template <class Variant> OneOf<Variant>::OneOf() noexcept = default;
template <class Variant> OneOf<Variant>::OneOf(const OneOf& other) = default;
template <class Variant> OneOf<Variant>::OneOf(OneOf&& other) noexcept = default;
template <class Variant> OneOf<Variant>& OneOf<Variant>::operator=(const OneOf& other) = default;
template <class Variant> OneOf<Variant>& OneOf<Variant>::operator=(OneOf&& other) noexcept = default;
template <class Variant> OneOf<Variant>::~OneOf() = default;

}  // namespace posenc
