#include "posenc/schemes/rope_scaling.h"

namespace posenc {
namespace {

const RopeScaling kNoScaling = NoScaling{};

}  // namespace

OwnedScaling::OwnedScaling(const OwnedScaling& other)
    : kept_(other.kept_ == nullptr ? nullptr : new RopeScaling(*other.kept_)) {}
OwnedScaling::OwnedScaling(OwnedScaling&& other) noexcept : kept_(std::exchange(other.kept_, nullptr)) {}
OwnedScaling& OwnedScaling::operator=(const OwnedScaling& other) { return *this = OwnedScaling(other); }
OwnedScaling& OwnedScaling::operator=(OwnedScaling&& other) noexcept {
  std::swap(kept_, other.kept_);
  return *this;
}
OwnedScaling::~OwnedScaling() { delete kept_; }
const RopeScaling& OwnedScaling::operator*() const noexcept { return kept_ == nullptr ? kNoScaling : *kept_; }
RopeScaling& OwnedScaling::operator*() {
  if (kept_ == nullptr) kept_ = new RopeScaling;
  return *kept_;
}
const RopeScaling* OwnedScaling::operator->() const noexcept { return &**this; }
OwnedScaling::operator const RopeScaling&() const noexcept { return **this; }
bool OwnedScaling::operator==(const OwnedScaling& other) const { return **this == *other; }

}  // namespace posenc
