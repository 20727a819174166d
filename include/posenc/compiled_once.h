#pragma once

// Templates for headers that many files include: their members are compiled once for each type, by the source that
// includes src/forms/compiled_once-inl.h and instantiates them, and not again in every file that includes the header.

#include <type_traits>
#include <utility>
#include <variant>

namespace posenc {

/// Whether S is an alternative of a variant. Does not instantiate the variant, as std::is_constructible would.
template <class S, class Variant> inline constexpr bool kIsAlternative = false;
template <class S, class... Kinds>
inline constexpr bool kIsAlternative<S, std::variant<Kinds...>> = (std::is_same_v<S, Kinds> || ...);

/// A T on the heap with value semantics, or none, which reads as T(). T may be incomplete. If it is a variant, an
/// alternative converts: rope.scaling = YarnScaling{.factor = 4}; std::visit(f, *rope.scaling).
template <class T> class Boxed {
 public:
  Boxed() noexcept = default;
  template <class S>
  requires(std::is_same_v<S, T> || kIsAlternative<S, T>)
      Boxed(S value)  // NOLINT(google-explicit-constructor): as std::optional's
      : kept_(new T(std::move(value))) {}
  Boxed(const Boxed& other);
  Boxed(Boxed&& other) noexcept : kept_(std::exchange(other.kept_, nullptr)) {}
  Boxed& operator=(Boxed other) noexcept {
    std::swap(kept_, other.kept_);
    return *this;
  }
  ~Boxed();
  bool has_value() const noexcept { return kept_ != nullptr; }
  explicit operator bool() const noexcept { return has_value(); }
  const T& operator*() const noexcept;
  T& operator*();  ///< stores T() first if there is none
  const T* operator->() const noexcept;
  void reset() noexcept { *this = {}; }
  bool operator==(const Boxed& other) const;  ///< of what they read as

 private:
  T* kept_ = nullptr;  // owned
};

/// A std::variant: std::visit, std::get and std::get_if work on it as on any.
template <class Variant> struct OneOf : Variant {
  OneOf() noexcept;
  template <class S>
  requires kIsAlternative<S, Variant> OneOf(S value)  // NOLINT(google-explicit-constructor): as std::variant's
      : Variant(std::move(value)) {}
  OneOf(const OneOf& other);
  OneOf(OneOf&& other) noexcept;
  OneOf& operator=(const OneOf& other);
  OneOf& operator=(OneOf&& other) noexcept;
  ~OneOf();
};

}  // namespace posenc
