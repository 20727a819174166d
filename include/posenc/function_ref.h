#pragma once

namespace posenc {

/// A reference to a callable, valid for the duration of a call; it owns nothing and allocates nothing.
template <class Signature> class FunctionRef;
template <class Result, class... Arguments> class FunctionRef<Result(Arguments...)> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a lambda is passed as it is
  template <class Function> FunctionRef(const Function& function) noexcept
      : object_(&function), call_([](const void* object, Arguments... arguments) -> Result {
          return (*static_cast<const Function*>(object))(static_cast<Arguments&&>(arguments)...);
        }) {}
  Result operator()(Arguments... arguments) const { return call_(object_, static_cast<Arguments&&>(arguments)...); }

 private:
  const void* object_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace posenc
