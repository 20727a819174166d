#pragma once

#include <string>
#include <vector>

#include "cli/arrays/table_stream.h"

namespace posenc::cli {

/// The cosines and sines of a rotation, both [positions, pairs], yet to be computed.
struct RotationTableJob {
  Scheme scheme;
  Rotation form;
  PositionList positions;
  DataType type = DataType::kF32;

  std::int64_t pairs() const { return pairs_of(form); }
  /// As in a .npy: cosines, then sines.
  Extents shape() const { return {2, positions.count, pairs()}; }
};

/// In .npy [2, positions, pairs]; in .safetensors `cos`, `sin` and the `frequencies`. If the format stores one after
/// the other and they are too long for one block, they are computed in two passes. Refers to the job, which must
/// outlive it.
TableSource source_of(const RotationTableJob& job);

/// As text for people: the pairs with their frequencies and wavelengths, then cosines, then sines, aligned. If it is
/// longer or wider than a screen, the middle is omitted and never computed.
std::string rotation_table_text(const RotationTableJob& job, int digits, int columns, bool colour);

/// Computes the rows of the smallest and the largest position, so that an error there occurs now and not halfway.
/// Throws: Error as tabulate.
void try_ends(const Rotation& form, const PositionList& list);

}  // namespace posenc::cli
