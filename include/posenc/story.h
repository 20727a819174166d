#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/json.h"

namespace posenc {

// Worked examples: the data of content/stories, carried through the library step by step. A story is a value that
// knows nothing of how it is shown: a terminal, a page, JSON and Markdown are made from the same one.

/// How the cells of a matrix come about; matrices are named as the story names them.
struct GivenCells {};  ///< data of the story
struct WaveCells {
  std::vector<double> positions, frequencies;
};  ///< sin, cos, sin, cos … of position × frequency
struct SumCells {
  std::string left, right;
};  ///< left + right
/// (left · right) / divisor, or left · rightᵀ where `transposed`.
struct ProductCells {
  std::string left, right;
  bool transposed = false;
  double divisor = 1.0;
  std::string divisor_name = {};
};
/// Rows of e^(score / divisor) / Σ. A causal one sees the columns up to its own row.
struct SoftmaxCells {
  std::string scores;
  bool causal = false;
  double divisor = 1.0;
  std::string divisor_name = {};
};
/// Features 2i and 2i + 1 of a vector, rotated by the angle of row and pair.
struct RotatedCells {
  std::string of, angles;
};
struct MeasuredCells {
  std::string formula;
};  ///< computed in one go, with nothing to open
using CellRecipe =
    std::variant<GivenCells, WaveCells, SumCells, ProductCells, SoftmaxCells, RotatedCells, MeasuredCells>;

/// A table of numbers with names on both sides.
struct StoryMatrix {
  std::string name;     ///< "K'", unique in its story
  std::string caption;  ///< "K' = X' · W_K: what each broadcasts"
  std::vector<std::string> rows = {}, columns = {};
  std::vector<double> values = {};  ///< row by row; NaN: there is no such cell
  int digits = 3;                   ///< after the point, when shown
  CellRecipe recipe = GivenCells{};

  double at(std::size_t row, std::size_t column) const { return values[row * columns.size() + column]; }
};

/// A number that the text a story comes from printed otherwise.
struct Misprint {
  std::string matrix, row, column;  ///< a cell, or a fact: then matrix and column are empty
  double value = 0;                 ///< what it is
  std::string printed = {};         ///< what stood there
  bool is_rounding = false;         ///< within two of the last digit: rounded, or cut off, on the way
};

struct StoryNote {
  std::string text;
  std::vector<Misprint> misprints = {};
};

/// "smallest distance = 0.0316".
struct StoryFact {
  std::string name;
  std::variant<double, std::int64_t, bool, std::string> value;
  int digits = 3;            ///< of a double
  bool significant = false;  ///< digits are counted from the first that is not 0: for residuals
};
struct StoryFacts {
  std::vector<StoryFact> facts;
};
struct StoryFormula {
  std::string text;
};

using StoryBlock = std::variant<StoryMatrix, StoryNote, StoryFacts, StoryFormula>;
struct StoryStep {
  std::string heading;
  std::string text;
  std::vector<StoryBlock> blocks = {};
};
struct Story {
  std::string name, title, summary;
  std::vector<StoryStep> steps = {};
};

struct StoryOptions {
  std::string text = {};           ///< a sentence of one's own, for stories that take one
  std::optional<int> digits = {};  ///< after the point, in place of the story's own choice
  /// Runs something that raises Error and gives its message; the library itself cannot catch. Unset: the story goes
  /// without that message.
  std::function<std::string(const std::function<void()>&)> message_of = {};
};

struct StoryCard {
  std::string name, title, summary;
};
/// Every story, in the order in which they are best read.
std::vector<StoryCard> stories();

/// Throws: Error for an unknown name, with a suggestion; for a text where the story takes none, or one that is not 2
/// to
///   12 words of UTF-8; for digits that are not 0 to 17.
Story tell_story(std::string_view name, const StoryOptions& options = {});

/// "K'" → the matrix of that name, or nullptr.
const StoryMatrix* find_matrix(const Story& story, std::string_view name);

struct CellFactor {
  std::string name;
  double value = 0;
};
/// A cell, opened: value = function(Σ over terms of the product of its factors) / divisor.
struct CellExpansion {
  std::string matrix, row, column;
  double value = 0;
  int digits = 3;
  std::string formula;
  std::vector<std::vector<CellFactor>> terms = {};  ///< none: the cell is given, or was measured in one go
  std::string function = {};                        ///< "sin" or "cos", of the sum; else empty
  std::optional<CellFactor> divisor = {};
  std::optional<Misprint> misprint = {};
};
/// `cell` is "MATRIX ROW COLUMN". A label may be cut short to its end or beginning where that leaves one: "K' Frank
/// upscale" is the column knows-upscale.
/// Throws: Error for a cell that is not there, with what there is.
CellExpansion expand_cell(const Story& story, std::string_view cell);

/// {"story","title","summary","steps":[{"heading","text","blocks":[{"kind":"matrix",…}]}]}: numbers in full.
Json to_json(const Story& story);
/// {"matrix","row","column","value","formula","terms":[[{"name","value"}]],"function","divisor","misprint"}.
Json to_json(const CellExpansion& cell);

/// Fixed digits after the point; a zero has no sign.
std::string shown_number(double value, int digits);
/// As it is to be read: "0.0316", "yes", "512".
std::string shown_fact(const StoryFact& fact);

}  // namespace posenc
