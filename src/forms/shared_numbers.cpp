#include <memory>
#include <utility>

#include "posenc/forms.h"

namespace posenc {

struct SharedNumbers::Kept {
  std::shared_ptr<const void> memory;
  const void* data;
};

namespace {

template <class T> auto* kept_numbers(std::vector<T> numbers, auto* kept) {
  auto memory = std::make_shared<const std::vector<T>>(std::move(numbers));
  kept->data = memory->data();
  kept->memory = std::move(memory);
  return kept;
}

}  // namespace

SharedNumbers::SharedNumbers(std::vector<float> numbers) : kept_(kept_numbers(std::move(numbers), new Kept)) {}
SharedNumbers::SharedNumbers(std::vector<double> numbers) : kept_(kept_numbers(std::move(numbers), new Kept)) {}
SharedNumbers::SharedNumbers(const SharedNumbers& other)
    : kept_(other.kept_ == nullptr ? nullptr : new Kept(*other.kept_)) {}
SharedNumbers::SharedNumbers(SharedNumbers&& other) noexcept : kept_(std::exchange(other.kept_, nullptr)) {}
SharedNumbers& SharedNumbers::operator=(SharedNumbers other) noexcept {
  std::swap(kept_, other.kept_);
  return *this;
}
SharedNumbers::~SharedNumbers() { delete kept_; }
const void* SharedNumbers::data() const noexcept { return kept_ == nullptr ? nullptr : kept_->data; }

}  // namespace posenc
