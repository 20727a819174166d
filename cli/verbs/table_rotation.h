#pragma once

#include <string>
#include <vector>

#include "cli/arrays/table_stream.h"

namespace posenc::cli {

/// The cosines and sines of a rotation, both [positions, pairs], that are still to be made.
struct RotationTableJob {
  Scheme scheme;
  Rotation form;
  PositionList positions;
  DataType type = DataType::kF32;

  std::int64_t pairs() const { return pairs_of(form); }
  /// As it stands in a .npy: cosines, then sines.
  Extents shape() const { return {2, positions.count, pairs()}; }
};

/// In .npy [2, positions, pairs]; in .safetensors `cos`, `sin` and the `frequencies`. What is one after the other in the
/// format, and too long for one block, is made in two passes. It looks at the job, which must outlive it.
TableSource source_of(const RotationTableJob& job);

/// As people read it: the pairs with their frequencies and wavelengths, then cosines, then sines, column under
/// column. Where it is longer or wider than a screen, the middle is left out and never computed.
std::string rotation_table_text(const RotationTableJob& job, int digits, int columns, bool colour);

/// Makes the rows of the smallest and the largest position: what cannot be done there fails now and not halfway.
/// Throws: Error as tabulate.
void try_ends(const Rotation& form, const PositionList& list);

}  // namespace posenc::cli
