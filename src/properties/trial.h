#pragma once

#include <string>

#include "posenc/properties.h"

namespace posenc::properties {

/// The trial's form, prepared for a sequence of another length; the form itself if the trial has no scheme.
Form form_for(const Trial& trial, std::int64_t length);

/// A finding of this trial: whether the measured value meets the bound. A NaN never does.
Finding decided(Property property, const Trial& trial, double measured, double bound, BoundSense comparison);
Finding does_not_apply(Property property, const Trial& trial, std::string why);

/// The claim in the literature; see the table in claims.cpp.
Claim claim_of(Property property, const Trial& trial);

// One function per property.
Finding unique_rows(const Trial& trial);
Finding bounded_values(const Trial& trial);
Finding same_bytes(const Trial& trial);
Finding any_length(const Trial& trial);
Finding linear_shift(const Trial& trial);
Finding dot_products(const Trial& trial);
Finding monotone(const Trial& trial);
Finding relative_scores(const Trial& trial);
Finding sees_order(const Trial& trial, bool causal);
Finding resolvable_steps(const Trial& trial);
Finding varied_steps(const Trial& trial);
Finding smooth_rows(const Trial& trial);

}  // namespace posenc::properties
