#include "cli/pages/story_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/system/terminal.h"

namespace posenc::cli {
namespace {

constexpr int kIndent = 2, kStoryGap = 2;

// Wraps text, indenting all lines but the first by `hanging`.
std::string paragraph(std::string_view text, int columns, int indent = 0, int hanging = 0) {
  std::string result;
  for (const std::string& line : wrap(text, columns - indent - hanging)) {
    result += fmt::format("{:{}}{}\n", "", result.empty() ? indent : indent + hanging, line);
  }
  return result;
}

bool is_marked(const StoryMatrix& matrix, std::size_t row, std::size_t column, const std::vector<Misprint>& marked) {
  return std::any_of(marked.begin(), marked.end(), [&](const Misprint& misprint) {
    return !misprint.is_rounding && misprint.matrix == matrix.name && misprint.row == matrix.rows[row] &&
           misprint.column == matrix.columns[column];
  });
}

// The cells as text, padded to the width of their column. If any has a star, each is followed by a star or a space.
struct Texts {
  std::vector<std::vector<std::string>> columns;  // [column][row]
  std::vector<int> widths;
  int label_width = 0;
};

Texts texts_of(const StoryMatrix& matrix, const std::vector<Misprint>& marked) {
  Texts texts;
  for (const std::string& row : matrix.rows) texts.label_width = std::max(texts.label_width, columns_of(row));
  for (std::size_t column = 0; column < matrix.columns.size(); ++column) {
    std::vector<std::string> cells;
    int width = columns_of(matrix.columns[column]);
    for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
      const double value = matrix.at(row, column);
      std::string cell = std::isnan(value) ? "" : shown_number(value, matrix.digits);
      if (!marked.empty()) cell += is_marked(matrix, row, column, marked) ? "*" : " ";
      width = std::max(width, columns_of(cell));
      cells.push_back(std::move(cell));
    }
    texts.columns.push_back(std::move(cells));
    texts.widths.push_back(width);
  }
  return texts;
}

// The end of the range of columns from `first` on that fit next to the labels; it has at least one column.
std::size_t columns_that_fit(const Texts& texts, std::size_t first, int columns) {
  int used = kIndent + texts.label_width;
  std::size_t end = first;
  while (end < texts.widths.size() && (end == first || used + kStoryGap + texts.widths[end] <= columns)) {
    used += kStoryGap + texts.widths[end++];
  }
  return end;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string matrix_part(const StoryMatrix& matrix, const Texts& texts, std::size_t first, std::size_t end,
                        bool colour) {
  std::string head = fmt::format("{:{}}{}", "", kIndent, pad_right("", texts.label_width));
  for (std::size_t i = first; i < end; ++i) {
    head += fmt::format("{:{}}{}", "", kStoryGap, pad_left(matrix.columns[i], texts.widths[i]));
  }
  std::string text = dim(head, colour) + "\n";
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    // Skip rows that have no values in these columns.
    bool is_empty = true;
    for (std::size_t i = first; i < end; ++i) is_empty = is_empty && std::isnan(matrix.at(row, i));
    if (is_empty) continue;
    std::string line = fmt::format("{:{}}{}", "", kIndent, pad_right(matrix.rows[row], texts.label_width));
    for (std::size_t i = first; i < end; ++i) {
      line += fmt::format("{:{}}{}", "", kStoryGap, pad_left(texts.columns[i][row], texts.widths[i]));
    }
    text += without_trailing_spaces(std::move(line)) + "\n";
  }
  return text;
}

std::string note_text(const StoryNote& note, int columns, bool colour) {
  constexpr int kMark = 6;
  std::string text, mark = bold("Note:", colour) + " ";
  for (const std::string& line : wrap(note.text, columns - kIndent - kMark)) {
    text += fmt::format("{:{}}{}{}\n", "", kIndent, mark, line);
    mark = pad_right("", kMark);
  }
  return text;
}

// The cells to mark: a note on a matrix directly follows it.
std::vector<Misprint> marks_behind(const StoryStep& step, std::size_t block) {
  if (block + 1 >= step.blocks.size()) return {};
  const auto* const note = std::get_if<StoryNote>(&step.blocks[block + 1]);
  return note == nullptr ? std::vector<Misprint>{} : note->misprints;
}

std::string errata_text(const StoryErrata& errata, bool colour) {
  std::vector<std::array<std::string, 3>> lines = {{"number", "correct", "printed"}};
  for (const Misprint& misprint : errata.misprints) {
    lines.push_back({misprint_place(misprint), correct_number(misprint), misprint.printed});
  }
  std::array<int, 3> widths{};
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], columns_of(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    const std::string whole = fmt::format("{:{}}{}  {}  {}", "", kIndent, pad_right(line[0], widths[0]),
                                          pad_left(line[1], widths[1]), pad_left(line[2], widths[2]));
    text += (text.empty() ? dim(whole, colour) : whole) + "\n";
  }
  return text;
}

std::string block_text(const StoryStep& step, std::size_t index, int columns, bool colour) {
  const StoryBlock& block = step.blocks[index];
  if (const auto* const matrix = std::get_if<StoryMatrix>(&block)) {
    return matrix_text(*matrix, marks_behind(step, index), columns, colour);
  }
  if (const auto* const note = std::get_if<StoryNote>(&block)) return note_text(*note, columns, colour);
  if (const auto* const facts = std::get_if<StoryFacts>(&block)) return facts_text(*facts, columns);
  if (const auto* const errata = std::get_if<StoryErrata>(&block)) return errata_text(*errata, colour);
  return paragraph(std::get<StoryFormula>(block).text, columns, 2 * kIndent, kIndent);
}

struct Line {
  std::string numbers, result, names;
};

// 1.821 × 0.090 = 0.164   X'[Frank, spicy] × W_K[spicy, upscale]
Line line_of(const std::vector<CellFactor>& term, int digits) {
  double value = 1;
  std::vector<std::string> numbers, names;
  for (const CellFactor& factor : term) {
    value *= factor.value;
    numbers.push_back(shown_number(factor.value, digits));
    names.push_back(factor.name);
  }
  return {term.size() == 1 ? "" : fmt::format("{}", fmt::join(numbers, " × ")), shown_number(value, digits),
          fmt::format("{}", fmt::join(names, " × "))};
}

std::vector<Line> lines_of(const CellExpansion& whole) {
  const CellTerms& cell = whole.parts;
  std::vector<Line> lines;
  double sum = 0;
  for (const std::vector<CellFactor>& term : cell.terms) {
    double value = 1;
    for (const CellFactor& factor : term) value *= factor.value;
    sum += value;
    lines.push_back(line_of(term, whole.digits));
  }
  if (cell.terms.size() > 1) lines.push_back({"sum", shown_number(sum, whole.digits), ""});
  const std::string total = shown_number(sum, whole.digits), value = shown_number(whole.value, whole.digits);
  if (!cell.function.empty()) lines.push_back({fmt::format("{}({})", cell.function, total), value, ""});
  if (!cell.divisor) return lines;
  const std::string divisor = shown_number(cell.divisor->value, whole.digits);
  for (const CellFactor& factor : cell.divisor_terms) {
    lines.push_back({"", shown_number(factor.value, whole.digits), fmt::format("in Σ: {}", factor.name)});
  }
  if (!cell.divisor_terms.empty()) lines.push_back({cell.divisor->name, divisor, ""});
  lines.push_back({fmt::format("{} / {}", total, divisor), value, fmt::format("/ {}", cell.divisor->name)});
  return lines;
}

}  // namespace

std::string matrix_text(const StoryMatrix& matrix, const std::vector<Misprint>& marked, int columns, bool colour) {
  const bool has_stars =
      std::any_of(marked.begin(), marked.end(), [](const Misprint& misprint) { return !misprint.is_rounding; });
  const Texts texts = texts_of(matrix, has_stars ? marked : std::vector<Misprint>{});
  std::string text = paragraph(matrix.caption, columns, kIndent, kIndent);
  for (std::size_t first = 0; first < matrix.columns.size();) {
    const std::size_t end = columns_that_fit(texts, first, columns);
    if (first > 0) text += "\n";
    text += matrix_part(matrix, texts, first, end, colour);
    first = end;
  }
  return text;
}

std::string facts_text(const StoryFacts& facts, int columns) {
  int width = 0;
  for (const StoryFact& fact : facts.facts) width = std::max(width, columns_of(fact.name));
  std::string text;
  for (const StoryFact& fact : facts.facts) {
    std::string name = pad_right(fact.name, width);
    for (const std::string& line : wrap(shown_fact(fact), columns - kIndent - width - kStoryGap)) {
      text += fmt::format("{:{}}{}{:{}}{}\n", "", kIndent, name, "", kStoryGap, line);
      name = pad_right("", width);
    }
  }
  return text;
}

std::string story_text(const Story& story, int columns, bool colour) {
  std::string text = bold(story.title, colour) + "\n" + paragraph(story.summary, columns);
  if (!story.source.empty()) text += dim(paragraph(fmt::format("Source: {}", story.source), columns), colour);
  int number = 0;
  for (const StoryStep& step : story.steps) {
    text += "\n" + bold(fmt::format("{}. {}", ++number, step.heading), colour) + "\n" + paragraph(step.text, columns);
    for (std::size_t i = 0; i < step.blocks.size(); ++i) text += "\n" + block_text(step, i, columns, colour);
  }
  std::string more;
  if (!story.figure.empty()) more += fmt::format("Figure:   posenc {}\n", story.figure);
  more += fmt::format("In numpy: posenc explain {} --python\n", story.name);
  text += "\n" + dim(more, colour);
  return text;
}

std::string cell_text(const CellExpansion& cell, int columns, bool colour) {
  std::string text =
      bold(fmt::format("{}[{}, {}] = {}", cell.matrix, cell.row, cell.column, shown_number(cell.value, cell.digits)),
           colour) +
      "\n" + paragraph(cell.parts.formula, columns);
  const std::vector<Line> lines = lines_of(cell);
  int numbers = 0, result = 0;
  for (const Line& line : lines) {
    numbers = std::max(numbers, columns_of(line.numbers));
    result = std::max(result, columns_of(line.result));
  }
  if (!lines.empty()) text += "\n";
  for (const Line& line : lines) {
    const std::string sum = fmt::format("{:{}}{} {} {}", "", kIndent, pad_left(line.numbers, numbers),
                                        line.numbers.empty() ? ' ' : '=', pad_left(line.result, result));
    text += sum + (line.names.empty() ? "" : fmt::format("   {}", dim(line.names, colour))) + "\n";
  }
  if (cell.misprint) {
    text += fmt::format(
        "\n{}", paragraph(fmt::format("Note: the source text prints {} here.", cell.misprint->printed), columns));
  }
  return text;
}

}  // namespace posenc::cli
