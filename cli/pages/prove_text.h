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

/// Every scheme and every property: all that the table needs.
std::vector<Proven> prove_every_scheme(const ProveOptions& options = {});

/// "✓ 0.33": whether it holds, and the number; with ! if that is not what is claimed.
std::string finding_cell(const Finding& finding);
/// The scheme's name, with * if trained numbers were drawn at random.
std::string proven_label(const Proven& proven);
/// Schemes in rows, properties in columns, in as many blocks as needed: a mark and a number in each cell.
std::string properties_table(const std::vector<Proven>& proven, int columns, bool colour);
/// The meaning of that table's columns, one line each.
std::string properties_legend(int columns, bool colour);

/// One scheme in sentences, with its matrix and its angles.
std::string findings_text(const Proven& proven, int columns, bool colour);

Json findings_json(const Proven& proven);

}  // namespace posenc::cli
