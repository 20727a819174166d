#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "posenc/error.h"
#include "posenc/scheme.h"
#include "posenc/story.h"

namespace posenc {
namespace {

// Splits "K' Frank upscale" or "K'[Frank, upscale]": brackets and commas separate words, as spaces do.
std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kBetween = " \t[],";
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(kBetween);
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    words.push_back(text.substr(0, text.find_first_of(kBetween)));
    text.remove_prefix(words.back().size());
  }
}

std::vector<std::string_view> matrix_names(const Story& story) {
  std::vector<std::string_view> names;
  for (const StoryStep& step : story.steps) {
    for (const StoryBlock& block : step.blocks) {
      if (const auto* const matrix = std::get_if<StoryMatrix>(&block)) names.emplace_back(matrix->name);
    }
  }
  return names;
}

// The index of the label that equals the word; else of the only label that ends in "-WORD"; else of the only one that
// begins with the word.
std::optional<std::size_t> place_of(std::string_view word, const std::vector<std::string>& labels) {
  const auto exact = std::find(labels.begin(), labels.end(), word);
  if (exact != labels.end()) return static_cast<std::size_t>(exact - labels.begin());
  for (const bool is_ending : {true, false}) {
    std::optional<std::size_t> found;
    int matches = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const bool fits = is_ending ? labels[i].ends_with(fmt::format("-{}", word)) : labels[i].starts_with(word);
      if (!fits) continue;
      found = i;
      ++matches;
    }
    if (matches == 1) return found;
  }
  return std::nullopt;
}

std::size_t require_place(std::string_view word, const std::vector<std::string>& labels, std::string_view kind,
                          const StoryMatrix& matrix) {
  if (const std::optional<std::size_t> place = place_of(word, labels)) return *place;
  raise(fmt::format("cell: {} has no {} '{}' ({})", matrix.name, kind, word,
                    suggestion(word, {labels.begin(), labels.end()})));
}

const StoryMatrix& require_matrix(const Story& story, std::string_view name) {
  if (const StoryMatrix* const matrix = find_matrix(story, name)) return *matrix;
  const std::vector<std::string_view> names = matrix_names(story);
  raise(fmt::format("cell: {} has no matrix '{}' ({})", story.name, name, suggestion(name, names)));
}

struct Place {
  const Story& story;
  const StoryMatrix& matrix;
  std::size_t row, column;
};

CellFactor cell_of(const StoryMatrix& matrix, std::size_t row, std::size_t column) {
  return {fmt::format("{}[{}, {}]", matrix.name, matrix.rows[row], matrix.columns[column]), matrix.at(row, column)};
}

void open(CellTerms& cell, const GivenCells&, const Place&) { cell.formula = "given"; }

void open(CellTerms& cell, const ComputedCells& recipe, const Place& at) {
  cell = recipe.cells[at.row * at.matrix.columns.size() + at.column];
}

void open(CellTerms& cell, const WaveCells& recipe, const Place& at) {
  cell.function = at.column % 2 == 0 ? "sin" : "cos";
  cell.formula = fmt::format("{}(position × frequency of pair {})", cell.function, at.column / 2);
  cell.terms = {{{"position", recipe.positions[at.row]}, {"frequency", recipe.frequencies[at.column / 2]}}};
}

void open(CellTerms& cell, const SumCells& recipe, const Place& at) {
  cell.formula = fmt::format("{} + {}", recipe.left, recipe.right);
  for (const std::string& name : {recipe.left, recipe.right}) {
    cell.terms.push_back({cell_of(require_matrix(at.story, name), at.row, at.column)});
  }
}

void open(CellTerms& cell, const ProductCells& recipe, const Place& at) {
  const StoryMatrix& left = require_matrix(at.story, recipe.left);
  const StoryMatrix& right = require_matrix(at.story, recipe.right);
  cell.formula = fmt::format("{} · {}{}", left.name, right.name, recipe.transposed ? "ᵀ" : "");
  for (std::size_t i = 0; i < left.columns.size(); ++i) {
    cell.terms.push_back(
        {cell_of(left, at.row, i), recipe.transposed ? cell_of(right, at.column, i) : cell_of(right, i, at.column)});
  }
  if (recipe.divisor_name.empty()) return;
  cell.formula = fmt::format("({}) / {}", cell.formula, recipe.divisor_name);
  cell.divisor = CellFactor{recipe.divisor_name, recipe.divisor};
}

void open(CellTerms& cell, const SoftmaxCells& recipe, const Place& at) {
  const StoryMatrix& scores = require_matrix(at.story, recipe.scores);
  if (recipe.causal && at.column > at.row) {
    cell.formula = "hidden by the causal mask";
    return;
  }
  const std::string divided = recipe.divisor_name.empty() ? "" : fmt::format(" / {}", recipe.divisor_name);
  const auto power_of = [&](std::size_t column) { return std::exp(scores.at(at.row, column) / recipe.divisor); };
  double sum = 0;
  for (std::size_t i = 0; i < scores.columns.size(); ++i) {
    if (!recipe.causal || i <= at.row) sum += power_of(i);
  }
  cell.formula = fmt::format("e^({0}{1}) / Σ e^({0}{1}) over the row{2}", scores.name, divided,
                             recipe.causal ? ", up to the diagonal" : "");
  const auto factor_of = [&](std::size_t column) {
    return CellFactor{fmt::format("e^({}{})", cell_of(scores, at.row, column).name, divided), power_of(column)};
  };
  cell.terms = {{factor_of(at.column)}};
  cell.divisor = CellFactor{"Σ", sum};
  for (std::size_t i = 0; i < scores.columns.size(); ++i) {
    if (!recipe.causal || i <= at.row) cell.divisor_terms.push_back(factor_of(i));
  }
}

void open(CellTerms& cell, const RotatedCells& recipe, const Place& at) {
  const StoryMatrix& of = require_matrix(at.story, recipe.of);
  const StoryMatrix& angles = require_matrix(at.story, recipe.angles);
  const std::size_t first = at.column - at.column % 2;
  const bool is_first = at.column == first;
  // `of` has one row for all positions, or one for each.
  const std::size_t row = of.rows.size() == 1 ? 0 : at.row;
  const CellFactor angle = cell_of(angles, at.row, at.column / 2);
  const CellFactor cosine = {fmt::format("cos {}", angle.name), std::cos(angle.value)};
  const CellFactor sine = {fmt::format("{}sin {}", is_first ? "−" : "", angle.name),
                           (is_first ? -1 : 1) * std::sin(angle.value)};
  cell.formula = is_first ? "a cos φ − b sin φ" : "a sin φ + b cos φ";
  cell.terms = {{cell_of(of, row, first), is_first ? cosine : sine},
                {cell_of(of, row, first + 1), is_first ? sine : cosine}};
}

std::optional<Misprint> misprint_at(const Story& story, const CellExpansion& cell) {
  for (const StoryStep& step : story.steps) {
    for (const StoryBlock& block : step.blocks) {
      const auto* const errata = std::get_if<StoryErrata>(&block);
      if (errata == nullptr) continue;
      for (const Misprint& misprint : errata->misprints) {
        if (misprint.matrix == cell.matrix && misprint.row == cell.row && misprint.column == cell.column) {
          return misprint;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace

const StoryMatrix* find_matrix(const Story& story, std::string_view name) {
  for (const StoryStep& step : story.steps) {
    for (const StoryBlock& block : step.blocks) {
      const auto* const matrix = std::get_if<StoryMatrix>(&block);
      if (matrix != nullptr && matrix->name == name) return matrix;
    }
  }
  return nullptr;
}

CellExpansion expand_cell(const Story& story, std::string_view cell) {
  const std::vector<std::string_view> words = words_of(cell);
  if (words.size() != 3) {
    const StoryMatrix& example = *find_matrix(story, matrix_names(story).back());
    raise(fmt::format("cell: '{}' is not MATRIX ROW COLUMN, e.g. \"{} {} {}\" (matrices: {})", cell, example.name,
                      example.rows.front(), example.columns.front(), fmt::join(matrix_names(story), ", ")));
  }
  const StoryMatrix& matrix = require_matrix(story, words[0]);
  const std::size_t row = require_place(words[1], matrix.rows, "row", matrix);
  const std::size_t column = require_place(words[2], matrix.columns, "column", matrix);
  CellExpansion result;
  result.matrix = matrix.name;
  result.row = matrix.rows[row];
  result.column = matrix.columns[column];
  result.value = matrix.at(row, column);
  result.digits = matrix.digits;
  if (std::isnan(result.value)) raise(fmt::format("cell: {} is empty: the matrix has no such cell", cell));
  std::visit([&](const auto& recipe) { open(result.parts, recipe, {story, matrix, row, column}); }, matrix.recipe);
  result.misprint = misprint_at(story, result);
  return result;
}

}  // namespace posenc
