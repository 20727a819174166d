#include "forms/compiled_once-inl.h"

#include <memory>

#include "posenc/forms.h"

namespace posenc {

struct SharedNumbers {
  std::shared_ptr<const void> data;
  bool operator==(const SharedNumbers&) const = default;
};

template class Boxed<SharedNumbers>;
template struct OneOf<AdditionSource::variant>;
template struct OneOf<RotationSource::variant>;
template struct OneOf<BiasTerms>;
template struct OneOf<Form::variant>;

namespace {

template <class T> Boxed<SharedNumbers> shared_of(std::vector<T> numbers) {
  const auto memory = std::make_shared<const std::vector<T>>(std::move(numbers));
  return SharedNumbers{{memory, memory->data()}};
}

}  // namespace

Boxed<SharedNumbers> shared(std::vector<float> numbers) { return shared_of(std::move(numbers)); }
Boxed<SharedNumbers> shared(std::vector<double> numbers) { return shared_of(std::move(numbers)); }
const void* data_of(const Boxed<SharedNumbers>& numbers) noexcept { return numbers->data.get(); }

}  // namespace posenc
