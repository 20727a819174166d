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

// Worked examples: the data in content/stories, computed step by step with the library. A story is a plain value that is
// independent of how it is displayed: the terminal, a page, JSON and Markdown all show the same one.

/// How the cells of a matrix are computed; matrices are referred to by their names in the story.
struct GivenCells {};  ///< data of the story
struct WaveCells {
  std::vector<double> positions, frequencies;
};  ///< sin, cos, sin, cos … of position × frequency
struct SumCells {
  std::string left, right;
};  ///< left + right
/// (left · right) / divisor; with `transposed`, (left · rightᵀ) / divisor.
struct ProductCells {
  std::string left, right;
  bool transposed = false;
  double divisor = 1.0;
  std::string divisor_name = {};
};
/// Rows of e^(score / divisor) / Σ. With `causal`, a row includes only the columns up to its own index.
struct SoftmaxCells {
  std::string scores;
  bool causal = false;
  double divisor = 1.0;
  std::string divisor_name = {};
};
/// Features 2i and 2i + 1 of each row, rotated by the angle of that row and pair.
struct RotatedCells {
  std::string of, angles;
};
/// A named number.
struct CellFactor {
  std::string name;
  double value = 0;
};
/// The numbers a cell is computed from: value = function(Σ over terms of the product of their factors) / divisor.
struct CellTerms {
  std::string formula;
  std::vector<std::vector<CellFactor>> terms = {};
  std::string function = {};  ///< "sin", "cos", "√", "abs" or "floor" of the sum, or empty
  std::optional<CellFactor> divisor = {};
  std::vector<CellFactor> divisor_terms = {};  ///< their sum is the divisor, as in a softmax; may be empty
};
/// Each cell has its own terms; cells are in row order. A cell without terms is a constant.
struct ComputedCells {
  std::vector<CellTerms> cells;
};
using CellRecipe =
    std::variant<GivenCells, WaveCells, SumCells, ProductCells, SoftmaxCells, RotatedCells, ComputedCells>;

/// A table of numbers with named rows and columns.
struct StoryMatrix {
  std::string name;     ///< "K'", unique in its story
  std::string caption;  ///< "K' = X' · W_K: what each broadcasts"
  std::vector<std::string> rows = {}, columns = {};
  std::vector<double> values = {};  ///< row by row; NaN: there is no such cell
  int digits = 3;                   ///< decimals shown
  CellRecipe recipe = GivenCells{};

  double at(std::size_t row, std::size_t column) const { return values[row * columns.size() + column]; }
};

/// A number that is different in the text that a story follows.
struct Misprint {
  std::string matrix, row, column;  ///< a cell; for a fact, matrix and column are empty
  double value = 0;                 ///< the correct number
  std::string printed = {};         ///< the number in the text
  bool is_rounding = false;         ///< off by less than two units of the last digit: intermediate rounding
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
  bool significant = false;  ///< `digits` are significant digits: for residuals
};
struct StoryFacts {
  std::vector<StoryFact> facts;
};
struct StoryFormula {
  std::string text;
};
/// Every number that is different in the text that a story follows, in one table at the end.
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
  std::string source;  ///< further reading: "Vaswani et al. 2017, Attention Is All You Need, §3.5"
  std::vector<StoryStep> steps = {};
  std::string figure = {};  ///< a command that draws what the story is about: "plot dots …", or empty
  std::string python = {};  ///< the same numbers in a few lines of numpy, for the story's own data
};

struct StoryOptions {
  std::string text = {};           ///< the reader's own sentence, for stories that take one
  std::string other = {};          ///< a second sentence to compare with: the same words in another order
  std::vector<double> start = {};  ///< the reader's own vector for position 0, for stories that take one
  // Options of the sinusoids, for stories that take them (frank-and-alex).
  std::optional<double> base = {};         ///< of the frequencies
  std::optional<std::int64_t> width = {};  ///< number of features: the first ones of the story's
  bool concatenated = false;               ///< [X P] instead of X + P
  std::optional<int> digits = {};          ///< decimals, instead of the story's own choice
  /// Calls a function that raises Error and returns the message, because the library itself does not catch exceptions.
  /// Unset: the story omits the message.
  std::function<std::string(const std::function<void()>&)> message_of = {};
};

struct StoryCard {
  std::string name, title, summary;
};
/// Every story, in recommended reading order.
std::vector<StoryCard> stories();

/// Throws: Error for an unknown name, with a suggestion; for an option that the story does not take; for a text that is
///   not 2 to 12 words of UTF-8; for digits that are not 0 to 17.
Story tell_story(std::string_view name, const StoryOptions& options = {});

/// The scores of every two words of a sentence, as the story dog-bites-man computes them from your own words, without
/// positions (its S1) or with them (S1').
struct SentenceScores {
  std::vector<std::string> words;  ///< repeated ones with a number: "the.2"
  std::vector<double> scores;      ///< [words, words]
};
/// Throws: Error unless `text` has 2 to 12 words.
SentenceScores sentence_scores(std::string_view text, bool with_positions);

/// "K'" → the matrix of that name, or nullptr.
const StoryMatrix* find_matrix(const Story& story, std::string_view name);

/// A cell and the numbers it is computed from.
struct CellExpansion {
  std::string matrix, row, column;
  double value = 0;
  int digits = 3;
  CellTerms parts = {};  ///< without terms: the cell is given, or a constant
  std::optional<Misprint> misprint = {};
};
/// `cell` is "MATRIX ROW COLUMN" or "MATRIX[ROW, COLUMN]", as expansions print it. A label may be abbreviated to its
/// end or beginning if that is unambiguous: "K' Frank upscale" is the column knows-upscale.
/// Throws: Error for a cell that does not exist; the message lists those that do.
CellExpansion expand_cell(const Story& story, std::string_view cell);

/// {"story","title","summary","source","figure","python","steps":[{"heading","text","blocks":[{"kind":"matrix",…}]}]}, in full precision.
Json to_json(const Story& story);
/// {"matrix","row","column","value","formula","terms":[[{"name","value"}]],"function","divisor","divisor_terms",
/// "misprint"}.
Json to_json(const CellExpansion& cell);

/// "K'[Frank, knows-upscale]", or the name of a fact.
std::string misprint_place(const Misprint& misprint);
/// With as many digits as the printed number; if it is not an integer, with at least two decimals: 6.28 if 2 was printed.
std::string correct_number(const Misprint& misprint);
/// With a fixed number of decimals; zero has no sign.
std::string shown_number(double value, int digits);
/// As it is displayed: "0.0316", "yes", "512".
std::string shown_fact(const StoryFact& fact);

}  // namespace posenc
