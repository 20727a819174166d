// The data of figures, against formulas written out here; their appearance is tested with the program.

#include "posenc/figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "posenc/error.h"
#include "posenc/npy.h"

namespace posenc::figures_test {
namespace {

using figures::Figure;
using figures::Panel;
using figures::Request;

std::string error_of(std::string_view kind, const Request& request) {
  try {
    figures::make(kind, request);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const Panel& only_panel(const Figure& figure) {
  EXPECT_EQ(figure.rows.size(), 1u);
  return figure.rows.front().panels.front();
}

TEST(Figures, EveryKindShowsItsOwnSchemesAndIsWhole) {
  for (const figures::Kind& kind : figures::kinds()) {
    const Figure figure = figures::make(kind.name);
    EXPECT_EQ(figure.kind, kind.name);
    EXPECT_FALSE(figure.title.empty()) << kind.name;
    EXPECT_FALSE(figure.subtitle.empty()) << kind.name;
    ASSERT_FALSE(figure.rows.empty()) << kind.name;
    for (const figures::PanelRow& row : figure.rows) {
      for (const Panel& panel : row.panels) {
        EXPECT_LT(panel.x.least, panel.x.most) << kind.name;
        EXPECT_LT(panel.y.least, panel.y.most) << kind.name;
        for (const figures::Series& series : panel.series) EXPECT_EQ(series.x.size(), series.y.size()) << kind.name;
        if (panel.heat_map) {
          EXPECT_EQ(panel.heat_map->values.size(), panel.heat_map->rows.size() * panel.heat_map->columns.size());
        }
      }
    }
  }
}

TEST(Figures, TemperaturesAreTheirFormulas) {
  const Figure figure = figures::make("query-factor", {.zoom = figures::Range{0, 100000}});
  const Panel& panel = only_panel(figure);
  ASSERT_EQ(panel.series.size(), 3u);
  for (std::size_t i = 0; i < panel.series[0].x.size(); ++i) {
    const double n = panel.series[0].x[i];  // position + 1
    EXPECT_NEAR(panel.series[0].y[i], 1 + 0.1 * std::log(1 + std::floor(n / 8192)), 1e-15);
    EXPECT_NEAR(panel.series[1].y[i], n > 8192 ? 1 + 0.1 * std::log(n / 8192) : 1, 1e-15);
    EXPECT_NEAR(panel.series[2].y[i], 0.1 * std::log(n), 1e-14);
  }
  EXPECT_EQ(error_of("query-factor", {.schemes = {{Rope{}}}}), "query-factor: works with temperature, not with rope");
}

TEST(Figures, GridsShowCoordinatesAndResizedTables) {
  // the fastest pair of the rows: cos 2π(2i + 1 − 4)/4, and of the columns
  const Figure patches =
      figures::make("grid", {.schemes = {{PatchRope{.dims = 8, .patches = {4, 6}}}}, .features = {0, 2}});
  ASSERT_EQ(patches.rows.size(), 1u);
  const auto& maps = patches.rows.front().panels;
  ASSERT_EQ(maps.size(), 2u);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t column = 0; column < 6; ++column) {
      const auto cosine = [](std::size_t i, double n) {
        return std::cos(6.283185307179586 * (2 * static_cast<double>(i) + 1 - n) / n);
      };
      EXPECT_NEAR(maps[0].heat_map->values[row * 6 + column], cosine(row, 4), 1e-14);
      EXPECT_NEAR(maps[1].heat_map->values[row * 6 + column], cosine(column, 6), 1e-14);
    }
  }
  // a head's direction of an eighth of a turn: cos (row + column)/√2
  const RopeMixed diagonal{.heads = 1, .dims = 4, .directions = {0.125}};
  const Figure mixed = figures::make("grid", {.schemes = {{diagonal}}, .features = {0}});
  const figures::HeatMap& waves = *mixed.rows.front().panels.front().heat_map;
  for (std::size_t i = 0; i < waves.values.size(); ++i) {
    const auto row = static_cast<double>(i / waves.columns.size()),
               column = static_cast<double>(i % waves.columns.size());
    ASSERT_NEAR(waves.values[i], std::cos((row + column) / std::sqrt(2.0)), 1e-14);
  }
  const std::vector<double> table = {0, 1, 2, 3};  // 2 by 2, one feature
  const Resized twice{
      .trained_grid = {2, 2}, .new_grid = {3, 3}, .width = 1, .filter = ResizeFilter::kBilinear, .corners = true};
  const Figure resized = figures::make("grid", {.schemes = {{twice, view(table.data(), {4, 1})}}});
  const std::vector<double> middle = {0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3};
  EXPECT_EQ(resized.rows.front().panels[0].heat_map->values, table);
  EXPECT_EQ(resized.rows.front().panels[1].heat_map->values, middle);
  EXPECT_EQ(error_of("grid", {.schemes = {{Alibi{}}}}),
            "grid: works with rotations and waves of 2 or 3 axes and with resized, not with alibi (one axis)");
  EXPECT_EQ(error_of("grid", {.schemes = {{Resized{.width = -1}}}}),
            "resized: width must be between 1 and 1048576 but is -1");
  // axial rope with unequal axes: time stays at 0, so that its pairs are 1
  const Rope axial{.dims = 16, .sections = {2, 3, 3}, .section_order = SectionOrder::kRestarting};
  const Figure flux = figures::make("grid", {.schemes = {{axial}}, .features = {0, 2, 5}});
  EXPECT_EQ(flux.rows.front().panels[0].heat_map->values.back(), 1);
  EXPECT_NEAR(flux.rows.front().panels[1].heat_map->values[16 * 3 + 1], std::cos(3.0), 1e-15);
  EXPECT_NEAR(flux.rows.front().panels[2].heat_map->values[16 * 3 + 1], std::cos(1.0), 1e-15);
}

TEST(Figures, IdsAreThoseOfThePrompt) {
  const Figure figure = figures::make("ids", {.spec = "text:2 image:4x4 text:1"});
  const Panel& panel = only_panel(figure);
  ASSERT_EQ(panel.series.size(), 3u);
  EXPECT_EQ(panel.series[0].y, (std::vector<double>{0, 1, 2, 2, 2, 2, 4}));
  EXPECT_EQ(panel.series[1].y, (std::vector<double>{0, 1, 2, 2, 3, 3, 4}));
  EXPECT_EQ(panel.series[2].y, (std::vector<double>{0, 1, 2, 3, 2, 3, 4}));
  EXPECT_EQ(error_of("ids", {.schemes = {{Rope{}}}}),
            "ids: works with rope of three sections (time, height, width), not with rope");
}

TEST(Figures, WavesAreSinesOfThePosition) {
  const Request request{.schemes = {{Sinusoidal{.width = 8}}}, .zoom = figures::Range{1000, 1050}};
  const Figure figure = figures::make("waves", request);
  ASSERT_EQ(figure.rows.size(), 4u);  // the sine of each pair
  for (int pair = 0; pair < 4; ++pair) {
    const figures::Series& series = figure.rows[static_cast<std::size_t>(pair)].panels.front().series.front();
    EXPECT_EQ(series.x.front(), 1000);
    EXPECT_EQ(series.x.back(), 1049);
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      EXPECT_NEAR(series.y[i], std::sin(series.x[i] * std::pow(10000.0, -2.0 * pair / 8)), 1e-12);
    }
  }
}

TEST(Figures, AWaveTooFastForThePointsIsAnArea) {
  Request request{.schemes = {{Sinusoidal{.width = 2}}}, .zoom = figures::Range{0, 100000}, .points = 200};
  const Figure shaded = figures::make("waves", request);
  ASSERT_EQ(only_panel(shaded).envelopes.size(), 1u);
  EXPECT_TRUE(only_panel(shaded).series.empty());
  EXPECT_NE(shaded.note, "");
  request.zoom = figures::Range{0, 50};
  const Figure drawn = figures::make("waves", request);
  EXPECT_TRUE(only_panel(drawn).envelopes.empty());
  EXPECT_EQ(drawn.note, "");
}

TEST(Figures, ASketchLooksAtFewerPositionsAndAtTheSameNumbers) {
  const auto decay = [](bool is_sketch, std::int64_t distances) {
    Request request{.schemes = {{Rope{.dims = 8, .base = 1e8}, {}}}, .zoom = figures::Range{0, distances}};
    request.points = 1 << 20;  // a point for every distance
    request.is_sketch = is_sketch;
    return figures::make("decay", request).rows.front().panels.front().series.front();
  };
  EXPECT_EQ(decay(true, 257).y, decay(false, 257).y);
  const figures::Series coarse = decay(true, 8192), exact = decay(false, 8192);
  ASSERT_EQ(coarse.y.size(), exact.y.size());
  EXPECT_NE(coarse.y, exact.y);
  for (std::size_t i = 0; i < exact.y.size(); ++i) EXPECT_EQ(coarse.y[i], exact.y[i - i % 4]) << i;
  const auto places = [](bool is_sketch) {
    Request request{.zoom = figures::Range{1, 1000}};
    request.is_sketch = is_sketch;
    return figures::make("error", request).rows.front().panels.front().series.front().x.size();
  };
  EXPECT_LT(2 * places(true), places(false));
}

TEST(Figures, DigitsAreInTheOrderInWhichNumbersAreWritten) {
  const Figure figure = figures::make("fingerprint", {.at = 37});
  const Panel& digits = figure.rows.front().panels.at(1);
  EXPECT_EQ(digits.series.front().y, (std::vector<double>{1, 0, 0, 1, 0, 1}));  // 100101
  std::string written;
  for (const figures::Words& word : digits.words) written += word.text;
  EXPECT_EQ(written, "100101");
  const Panel& counter = figure.rows.back().panels.at(1);
  EXPECT_EQ(counter.x.ticks.front().text, "0");
  EXPECT_EQ(counter.x.ticks.front().at, 5.0);  // 2⁰ is the last
}

TEST(Figures, ATrainedTableIsReadWhereTheCallerKeepsIt) {
  const std::vector<float> table = {0, 1, 2, 3, 4, 5};
  const Request request{.schemes = {{Learned{.rows = 3, .width = 2}, view(table.data(), {3, 2})}},
                        .zoom = figures::Range{0, 3}};
  const Figure figure = figures::make("heatmap", request);
  const std::vector<double> expected = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(only_panel(figure).heat_map->values, expected);
}

TEST(Figures, MisuseIsNamed) {
  EXPECT_NE(error_of("wavs", {}).find("figures: 'wavs' is not one of waves, heatmap"), std::string::npos);
  EXPECT_EQ(error_of("waves", {.schemes = {{Rope{}}, {Rope{}}}}), "waves: shows one scheme, not 2");
  EXPECT_EQ(error_of("waves", {.zoom = figures::Range{5, 6}}), "waves: zoom needs at least two positions");
  EXPECT_EQ(error_of("decay", {.zoom = figures::Range{-1, 6}}),
            "decay: the beginning of zoom must be from 0 to 9007199254740991 but is -1");
  EXPECT_EQ(error_of("waves", {.zoom = figures::Range{6, 6}}),
            "waves: the end of zoom must be from 7 to 9007199254740992 but is 6");
  EXPECT_EQ(error_of("fingerprint", {.at = -1}), "fingerprint: at must be from 0 to 9007199254740991 but is -1");
  EXPECT_EQ(error_of("phasors", {.at = 3, .shift = -4}), "phasors: shift -4 goes beyond the valid positions");
  EXPECT_EQ(error_of("phasors", {.at = 3, .shift = -3}), "");
  EXPECT_EQ(error_of("waves", {.points = 1}), "waves: points must be from 2 to 1048576 but is 1");
  EXPECT_EQ(error_of("heatmap", {.cells_down = 0}), "heatmap: cells_down must be from 1 to 16384 but is 0");
  EXPECT_EQ(error_of("scaling", {.factor = 0.5}), "scaling: factor must be from 1 to 1e6");
}

TEST(Figures, NumbersAreGrouped) {
  EXPECT_EQ(figures::grouped(1000000), "1,000,000");
  EXPECT_EQ(figures::grouped(-8), "−8");
  EXPECT_EQ(figures::grouped(0.25), "0.25");
  EXPECT_EQ(figures::grouped(999), "999");
}

TEST(Figures, JsonHoldsEveryNumberAndNullForNone) {
  Figure figure;
  figure.kind = "waves";
  figure.rows.push_back({{Panel{.series = {{.name = "one", .x = {0, 1}, .y = {0.5, std::nan("")}}}}}});
  const std::string text = dump_json(figures::to_json(figure));
  EXPECT_NE(text.find(R"("kind":"waves")"), std::string::npos);
  EXPECT_NE(text.find(R"("y":[0.5,null])"), std::string::npos) << text;
}

}  // namespace
}  // namespace posenc::figures_test
