// What figures hold, against formulas written out here; how they look is tested with the program.

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
