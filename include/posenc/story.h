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
/// A named number.
struct CellFactor {
  std::string name;
  double value = 0;
};
/// One cell, down to its numbers: value = function(Σ over terms of the product of its factors) / divisor.
struct CellTerms {
  std::string formula;
  std::vector<std::vector<CellFactor>> terms = {};
  std::string function = {};  ///< "sin", "cos", "√", "abs" or "floor" of the sum; else empty
  std::optional<CellFactor> divisor = {};
  std::vector<CellFactor> divisor_terms = {};  ///< that the divisor is the sum of, as in a softmax; else empty
};
/// Every cell carries its own terms, row by row. A cell without terms is a constant.
struct ComputedCells {
  std::vector<CellTerms> cells;
};
using CellRecipe =
    std::variant<GivenCells, WaveCells, SumCells, ProductCells, SoftmaxCells, RotatedCells, ComputedCells>;

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

/// A number that differs in the text a story follows.
struct Misprint {
  std::string matrix, row, column;  ///< a cell, or a fact: then matrix and column are empty
  double value = 0;                 ///< the correct number
  std::string printed = {};         ///< the number in the text
  bool is_rounding = false;         ///< less than two units of the last digit: rounded or truncated on the way
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
/// Every number that differs in the text a story follows, in one table at the end.
struct StoryErrata {
  std::string text;  ///< which text: "the article …"
  std::vector<Misprint> misprints;
};

using StoryBlock = std::variant<StoryMatrix, StoryNote, StoryFacts, StoryFormula, StoryErrata>;
struct StoryStep {
  std::string heading;
  std::string text;
  std::vector<StoryBlock> blocks = {};
};
struct Story {
  std::string name, title, summary;
  std::string source;  ///< where to read on: "Vaswani et al. 2017, Attention Is All You Need, §3.5"
  std::vector<StoryStep> steps = {};
};

struct StoryOptions {
  std::string text = {};           ///< the reader's own sentence, for stories that take one
  std::string other = {};          ///< a second one to compare it with: the same words in another order
  std::vector<double> start = {};  ///< the reader's own vector for position 0, for stories that take one
  // Of the positions, for stories that take them (frank-and-alex).
  std::optional<double> base = {};         ///< of the frequencies
  std::optional<std::int64_t> width = {};  ///< features of a row: the first ones of the story's own
  bool concatenated = false;               ///< [X P] in place of X + P
  std::optional<int> digits = {};          ///< after the point, in place of the story's own choice
  /// Runs something that raises Error and gives its message; the library itself cannot catch. Unset: the story goes
  /// without that message.
  std::function<std::string(const std::function<void()>&)> message_of = {};
};

struct StoryCard {
  std::string name, title, summary;
};
/// Every story, in the order in which they are best read.
std::vector<StoryCard> stories();

/// Throws: Error for an unknown name, with a suggestion; for an option that the story does not take; for a text that is
///   not 2 to 12 words of UTF-8; for digits that are not 0 to 17.
Story tell_story(std::string_view name, const StoryOptions& options = {});

/// "K'" → the matrix of that name, or nullptr.
const StoryMatrix* find_matrix(const Story& story, std::string_view name);

/// A cell, opened.
struct CellExpansion {
  std::string matrix, row, column;
  double value = 0;
  int digits = 3;
  CellTerms parts = {};  ///< without terms: the cell is given, or a constant
  std::optional<Misprint> misprint = {};
};
/// `cell` is "MATRIX ROW COLUMN" or "MATRIX[ROW, COLUMN]", as expansions print it. A label may be abbreviated to its
/// end or beginning if that is unambiguous: "K' Frank upscale" is the column knows-upscale.
/// Throws: Error for a cell that is not there, with what there is.
CellExpansion expand_cell(const Story& story, std::string_view cell);

/// {"story","title","summary","source","steps":[{"heading","text","blocks":[{"kind":"matrix",…}]}]}: numbers in full.
Json to_json(const Story& story);
/// {"matrix","row","column","value","formula","terms":[[{"name","value"}]],"function","divisor","divisor_terms",
/// "misprint"}.
Json to_json(const CellExpansion& cell);

/// "K'[Frank, knows-upscale]", or the name of a fact.
std::string misprint_place(const Misprint& misprint);
/// With the digits of the printed number; a number that is not whole has at least two: 6.28 where 2 was printed.
std::string correct_number(const Misprint& misprint);
/// Fixed digits after the point; a zero has no sign.
std::string shown_number(double value, int digits);
/// As it is to be read: "0.0316", "yes", "512".
std::string shown_fact(const StoryFact& fact);

}  // namespace posenc
