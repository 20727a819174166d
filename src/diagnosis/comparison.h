#pragma once

#include <vector>

#include "diagnosis/expected.h"

namespace posenc::diagnosis {

struct Tensors {
  ConstTensorView before, after;
};

/// Compares a tensor with what is expected of it, element by element.
class Comparison {
 public:
  Comparison(const Tensors& two, const Form& form, const CheckPositions& positions, const CheckOptions& options);

  /// Throws: Error if every score is masked.
  CheckResult compare(const Expected& expected) const;
  /// The expected scores with a constant added for each query, the one that fits its keys best.
  Expected shifted_to_queries(const Expected& expected) const;

  /// Which elements are masked scores, which are not compared; empty: none.
  std::vector<bool> skipped(const std::vector<double>& before) const;
  /// Which elements are not where they should be.
  std::vector<bool> misses(const Expected& expected) const;
  double tolerance() const { return tolerance_; }
  double floor() const { return floor_; }

 private:
  double room_of(const Expected& expected, std::size_t i) const;
  bool is_ahead(const Extents& index) const;
  bool is_skipped(const Extents& index, double before, double got) const;

  ConstTensorView after_;
  DataType before_type_;
  CheckOptions options_;
  const CheckPositions& positions_;
  bool is_bias_ = false;
  double tolerance_ = 0, floor_ = 0;
};

}  // namespace posenc::diagnosis
