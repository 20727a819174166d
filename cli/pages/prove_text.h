#pragma once

#include <string>
#include <vector>

#include "posenc/json.h"
#include "posenc/properties.h"

namespace posenc::cli {

/// The measurements of one scheme.
struct Proven {
  Scheme scheme;
  bool has_random_weights = false;
  std::vector<Finding> findings;  // in the order of the cards
  std::vector<Finding> numerics;  // exact and float32 angles; empty if there are none or they were not requested
  ShiftMap one_further;           // the matrix of one step; empty if too wide to show
  TokenCost cost = {};            // if requested
};

/// Measures every property of every scheme, for the table.
std::vector<Proven> prove_every_scheme(const ProveOptions& options = {});

/// "✓ 0.33": whether the property holds, and the number; followed by ! if that is not expected.
std::string finding_cell(const Finding& finding);
/// The scheme's name, followed by * if its trained parameters are random.
std::string proven_label(const Proven& proven);
/// A table with schemes in rows and properties in columns, split into blocks that fit. Each cell has a mark and a
/// number.
std::string properties_table(const std::vector<Proven>& proven, int columns, bool colour);
/// The meaning of the table's columns, one line each.
std::string properties_legend(int columns, bool colour);

/// The findings for one scheme in sentences, with its matrix and its angles.
std::string findings_text(const Proven& proven, int columns, bool colour);

Json findings_json(const Proven& proven);

}  // namespace posenc::cli
