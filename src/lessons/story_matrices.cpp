#include "lessons/story_matrices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "posenc/apply.h"
#include "posenc/attention.h"

namespace posenc::lessons {
namespace {

std::int64_t extent(const std::vector<std::string>& labels) { return static_cast<std::int64_t>(labels.size()); }

StoryMatrix labelled(MatrixLabels labels, CellRecipe recipe) {
  StoryMatrix matrix;
  matrix.name = std::move(labels.name);
  matrix.caption = std::move(labels.caption);
  matrix.rows = std::move(labels.rows);
  matrix.columns = std::move(labels.columns);
  matrix.values.resize(matrix.rows.size() * matrix.columns.size());
  matrix.recipe = std::move(recipe);
  return matrix;
}

}  // namespace

Stages stages_of(const StoryMatrix& x, std::string_view mark, const Projections& weights) {
  const auto named = [&](std::string_view letter) { return fmt::format("{}{}", letter, mark); };
  const auto times = [&](std::string_view letter, const StoryMatrix& by) {
    return product(named(letter), fmt::format("{} = {} · {}", named(letter), x.name, by.name), x, by);
  };
  Stages made;
  made.q = times("Q", weights.q);
  made.k = times("K", weights.k);
  made.v = times("V", weights.v);
  const std::string root = fmt::format("√{}", made.q.columns.size());
  made.scores = product(
      named("S"), fmt::format("{} = {} · {}ᵀ / {}", named("S"), made.q.name, made.k.name, root), made.q, made.k,
      {.transposed = true, .divisor = std::sqrt(static_cast<double>(made.q.columns.size())), .divisor_name = root});
  Attended seen = attended({named("A"), fmt::format("{} = softmax({})", named("A"), made.scores.name), named("O"),
                            fmt::format("{} = {} · {}", named("O"), named("A"), made.v.name)},
                           {made.q, made.k, made.v, made.scores});
  made.weights = std::move(seen.weights);
  made.output = std::move(seen.output);
  return made;
}

Extents shape_of(const StoryMatrix& matrix) { return {extent(matrix.rows), extent(matrix.columns)}; }

StoryMatrix given(MatrixLabels labels, std::vector<double> values) {
  StoryMatrix matrix = labelled(std::move(labels), GivenCells{});
  matrix.values = std::move(values);
  return matrix;
}

StoryMatrix computed(MatrixLabels labels, std::vector<CellTerms> cells) {
  std::vector<double> values;
  for (const CellTerms& cell : cells) values.push_back(value_of(cell));
  return computed(std::move(labels), std::move(values), std::move(cells));
}

StoryMatrix computed(MatrixLabels labels, std::vector<double> values, std::vector<CellTerms> cells) {
  StoryMatrix matrix = labelled(std::move(labels), ComputedCells{std::move(cells)});
  matrix.values = std::move(values);
  return matrix;
}

double value_of(const CellTerms& cell) {
  double sum = 0;
  for (const std::vector<CellFactor>& term : cell.terms) {
    double product = 1;
    for (const CellFactor& factor : term) product *= factor.value;
    sum += product;
  }
  if (cell.function == "sin") sum = std::sin(sum);
  if (cell.function == "cos") sum = std::cos(sum);
  if (cell.function == "√") sum = std::sqrt(sum);
  if (cell.function == "abs") sum = std::fabs(sum);
  if (cell.function == "floor") sum = std::floor(sum);
  return cell.divisor ? sum / cell.divisor->value : sum;
}

double spread_of_column(const StoryMatrix& matrix, std::size_t column) {
  double low = matrix.at(0, column), high = low;
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    low = std::min(low, matrix.at(row, column));
    high = std::max(high, matrix.at(row, column));
  }
  return high - low;
}

double largest_spread(const StoryMatrix& matrix) {
  double largest = 0;
  for (std::size_t column = 0; column < matrix.columns.size(); ++column) {
    largest = std::max(largest, spread_of_column(matrix, column));
  }
  return largest;
}

CellFactor cell_factor(const StoryMatrix& matrix, std::size_t row, std::size_t column) {
  return {fmt::format("{}[{}, {}]", matrix.name, matrix.rows[row], matrix.columns[column]), matrix.at(row, column)};
}

CellTerms row_product(const StoryMatrix& a, std::size_t row, const StoryMatrix& b, std::size_t other) {
  CellTerms cell{fmt::format("{}[{}] · {}[{}]", a.name, a.rows[row], b.name, b.rows[other])};
  for (std::size_t i = 0; i < a.columns.size(); ++i) {
    cell.terms.push_back({cell_factor(a, row, i), cell_factor(b, other, i)});
  }
  return cell;
}

CellTerms row_distance_terms(const StoryMatrix& matrix, std::size_t row, std::size_t other) {
  CellTerms cell{fmt::format("‖{0}[{1}] − {0}[{2}]‖, the root of the summed squares", matrix.name, matrix.rows[row],
                             matrix.rows[other])};
  for (std::size_t i = 0; i < matrix.columns.size(); ++i) {
    const CellFactor difference = {
        fmt::format("({} − {})", cell_factor(matrix, row, i).name, cell_factor(matrix, other, i).name),
        matrix.at(row, i) - matrix.at(other, i)};
    cell.terms.push_back({difference, difference});
  }
  cell.function = "√";
  return cell;
}

CellTerms largest_difference_terms(const StoryMatrix& a, const StoryMatrix& b) {
  std::size_t worst = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (std::fabs(a.values[i] - b.values[i]) > std::fabs(a.values[worst] - b.values[worst])) worst = i;
  }
  const std::size_t row = worst / a.columns.size(), column = worst % a.columns.size();
  CellTerms cell{fmt::format("largest |{} − {}|", a.name, b.name)};
  cell.terms = {{cell_factor(a, row, column)}, {{"−1", -1.0}, cell_factor(b, row, column)}};
  cell.function = "abs";
  return cell;
}

CellTerms constant(std::string why) { return {std::move(why)}; }

std::vector<std::string> numbered(std::string_view letter, std::size_t count) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < count; ++i) labels.push_back(fmt::format("{}{}", letter, i));
  return labels;
}

std::vector<std::string> as_labels(std::span<const std::int64_t> numbers) {
  std::vector<std::string> labels;
  for (const std::int64_t number : numbers) labels.push_back(std::to_string(number));
  return labels;
}

std::vector<double> frequencies_of(const Sinusoidal& scheme) {
  const Addition form = prepare(scheme);
  return frequencies_of(*waves_of(form));
}

StoryMatrix waves(MatrixLabels labels, const Sinusoidal& scheme, std::span<const std::int64_t> positions) {
  WaveCells recipe;
  recipe.positions.assign(positions.begin(), positions.end());
  recipe.frequencies = frequencies_of(scheme);
  StoryMatrix matrix = labelled(std::move(labels), std::move(recipe));
  tabulate(view(matrix.values.data(), shape_of(matrix)), {.ids = positions}, prepare(scheme));
  return matrix;
}

StoryMatrix added(MatrixLabels labels, const StoryMatrix& x, const StoryMatrix& p, const Sinusoidal& scheme,
                  std::span<const std::int64_t> positions) {
  StoryMatrix matrix = labelled(std::move(labels), SumCells{x.name, p.name});
  add(view(matrix.values.data(), shape_of(matrix)), view(x.values.data(), shape_of(x)), {.ids = positions},
      prepare(scheme));
  return matrix;
}

StoryMatrix product(std::string name, std::string caption, const StoryMatrix& left, const StoryMatrix& right,
                    const ProductOptions& options) {
  StoryMatrix matrix =
      labelled({std::move(name), std::move(caption), left.rows, options.transposed ? right.rows : right.columns},
               ProductCells{left.name, right.name, options.transposed, options.divisor, options.divisor_name});
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    for (std::size_t column = 0; column < matrix.columns.size(); ++column) {
      double sum = 0;
      for (std::size_t i = 0; i < left.columns.size(); ++i) {
        sum += left.at(row, i) * (options.transposed ? right.at(column, i) : right.at(i, column));
      }
      matrix.values[row * matrix.columns.size() + column] = sum / options.divisor;
    }
  }
  return matrix;
}

StoryMatrix reordered(std::string name, std::string caption, const StoryMatrix& x,
                      std::span<const std::size_t> order) {
  StoryMatrix matrix = labelled({std::move(name), std::move(caption), {}, x.columns}, GivenCells{});
  matrix.values.clear();
  for (const std::size_t row : order) {
    matrix.rows.push_back(x.rows[row]);
    const std::span<const double> values = row_of(x, row);
    matrix.values.insert(matrix.values.end(), values.begin(), values.end());
  }
  return matrix;
}

Attended attended(const AttendedNames& names, const AttendedInputs& inputs) {
  Attended result;
  result.weights = labelled({names.weights, names.weights_caption, inputs.q.rows, inputs.k.rows},
                            SoftmaxCells{inputs.scores.name, inputs.causal, inputs.divisor, inputs.divisor_name});
  result.output = labelled({names.output, names.output_caption, inputs.q.rows, inputs.v.columns},
                           ProductCells{names.weights, inputs.v.name});
  const Extents weights = shape_of(result.weights);
  AttentionOptions options;
  options.causal = inputs.causal;
  options.scale = 1.0 / (std::get<ProductCells>(inputs.scores.recipe).divisor * inputs.divisor);
  options.weights = view(result.weights.values.data(), {1, 1, weights[0], weights[1]});
  const auto one_head = [](auto* data, const StoryMatrix& x) {
    const Extents shape = shape_of(x);
    return view(data, {1, 1, shape[0], shape[1]});
  };
  attention(one_head(result.output.values.data(), result.output), one_head(inputs.q.values.data(), inputs.q),
            one_head(inputs.k.values.data(), inputs.k), one_head(inputs.v.values.data(), inputs.v), options);
  return result;
}

std::span<const double> row_of(const StoryMatrix& matrix, std::size_t row) {
  return std::span(matrix.values).subspan(row * matrix.columns.size(), matrix.columns.size());
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double row_distance(const StoryMatrix& matrix, std::size_t row, std::size_t other) {
  double sum = 0;
  for (std::size_t i = 0; i < matrix.columns.size(); ++i) {
    const double difference = matrix.at(row, i) - matrix.at(other, i);
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

double largest_difference(const StoryMatrix& a, const StoryMatrix& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) largest = std::max(largest, std::fabs(a.values[i] - b.values[i]));
  return largest;
}

StoryMatrix rotated_to(MatrixLabels labels, const StoryMatrix& x, const Rotation& form,
                       const std::vector<std::int64_t>& positions) {
  std::vector<double> values;
  std::vector<CellTerms> cells;
  for (std::size_t row = 0; row < positions.size(); ++row) {
    const std::size_t from = x.rows.size() == 1 ? 0 : row;
    const std::span<const double> source = row_of(x, from);
    values.insert(values.end(), source.begin(), source.end());
    for (std::size_t i = 0; i < x.columns.size(); ++i) {
      const std::size_t a = i - i % 2;
      const double angle = static_cast<double>(positions[row]) * radians_of(form.frequencies[i / 2]);
      const CellFactor cosine = {fmt::format("cos({} · ω{})", positions[row], i / 2), std::cos(angle)};
      const CellFactor sine = {fmt::format("{}sin({} · ω{})", i == a ? "−" : "", positions[row], i / 2),
                               (i == a ? -1 : 1) * std::sin(angle)};
      cells.push_back({i == a ? "a cos φ − b sin φ" : "a sin φ + b cos φ",
                       {{cell_factor(x, from, a), i == a ? cosine : sine},
                        {cell_factor(x, from, a + 1), i == a ? sine : cosine}}});
    }
  }
  StoryMatrix matrix = computed(std::move(labels), std::move(values), std::move(cells));
  rotate(view(matrix.values.data(), shape_of(matrix)), {.ids = positions}, form);
  return matrix;
}

}  // namespace posenc::lessons
