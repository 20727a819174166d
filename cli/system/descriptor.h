#pragma once

#include <unistd.h>

#include <utility>

namespace posenc::cli {

/// An open file that closes itself. If errors on closing matter, take() it first.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.take()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  int take() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace posenc::cli
