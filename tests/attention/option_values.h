#pragma once

#include "posenc/attention.h"

// A value other than the default for an option of each type; none of them is read.
namespace posenc::tests {

inline constexpr std::int64_t kNumbers[] = {1};
inline constexpr std::int32_t kPages[] = {0};
inline constexpr float kElements[] = {0};

inline void give(bool& flag) { flag = true; }
inline void give(std::int64_t& number) { number = 1; }
inline void give(double& number) { number = 1; }
inline void give(Form& form) { form = Rotation{}; }
inline void give(std::optional<Axes>& axes) { axes = Axes::kBhsd; }
inline void give(std::span<const std::int64_t>& numbers) { numbers = kNumbers; }
inline void give(std::span<const std::int32_t>& pages) { pages = kPages; }
inline void give(ConstTensorView& view) { view.data = kElements; }
inline void give(TensorView& view) { view.data = const_cast<float*>(kElements); }
template <class T> void give(std::optional<T>& value) { value.emplace(); }

}  // namespace posenc::tests
