// Templates against plain doubles that share no code with the library.
#include "posenc/formula.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "posenc/error.h"

namespace posenc::formula_test {
namespace {

double omega(double d, double i, double base = 10000.0) { return std::pow(base, -2 * i / d); }

double value(const std::string& formula) { return evaluate_formula(formula); }

std::string complaint(const std::string& text) {
  try {
    return fill_template(text);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Formula, Arithmetic) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("8 - 2 - 3"), 3);
  EXPECT_EQ(value("16 / 4 / 2"), 2);
  EXPECT_EQ(value("-2 * -3"), 6);
  EXPECT_EQ(value("1e3"), 1000);
  EXPECT_EQ(value("pi"), std::numbers::pi);
  EXPECT_EQ(value("sqrt(2)"), std::sqrt(2.0));
  EXPECT_EQ(value("ln(40)"), std::log(40.0));
  EXPECT_EQ(value("pow(2, -8)"), 1.0 / 256);
}

TEST(Formula, Forms) {
  EXPECT_EQ(fill_template("no braces { } at all"), "no braces { } at all");
  EXPECT_EQ(fill_template("a {{1 / 3 | 2}} b {{2 * 3}} c"), "a 0.33 b 6 c");
  EXPECT_EQ(fill_template("{{1 / 4096 | g2}}"), "0.00024");
  EXPECT_EQ(fill_template("{{-1 / 4096 | 2}}"), "0.00");
  EXPECT_EQ(fill_template("{{512 * 768}}"), "393216");
  EXPECT_EQ(fill_template("{{dot(8, 6) | 3}}"), "3.784");
  EXPECT_EQ(fill_template("{{dot(8, 1) | 3}}"), "3.535");
}

TEST(Formula, WhatDoesNotEvaluateIsRefused) {
  for (const char* text : {"{{1 +}}",
                           "{{(1}}",
                           "{{1 2}}",
                           "{{}}",
                           "{{nothing}}",
                           "{{nothing(1)}}",
                           "{{pe(4)}}",
                           "{{pe(4, 1, 9) | 2}}",
                           "{{pe(4, 1, 0.5) | 2}}",
                           "{{pe('none', 1, 0) | 2}}",
                           "{{1 / 3}}",
                           "{{1 / 0 | 2}}",
                           "{{1 | x}}",
                           "{{1 | 99}}",
                           "{{slowdown('nobody', 1) | 2}}",
                           "{{slowdown('alibi-8', 1) | 2}}",
                           "{{frequency('rope-128', 64) | 2}}",
                           "{{ln(0) | 1}}",
                           "{{sqrt('none') | 1}}",
                           "{{fade('rope-128', 0, 1) | 2}}",
                           "{{1",
                           "{{bucket('none', 1)}}",
                           "{{weight(-1, 2, 3) | 1}}",
                           "{{bias('alibi-8', 8, 0, 0) | 1}}",
                           "{{pe(4,1,0"}) {
    EXPECT_TRUE(complaint(text).find(':') != std::string::npos) << text << " gave " << complaint(text);
  }
  EXPECT_NE(complaint("{{" + std::string(1000, '(') + "1}}").find("too deep"), std::string::npos);
  EXPECT_NE(complaint("{{" + std::string(1000, '-') + "1}}").find("too deep"), std::string::npos);
}

TEST(Formula, Sinusoids) {
  for (int width : {4, 8, 16}) {
    for (int position : {0, 1, 2, 7, 500}) {
      for (int column = 0; column < width; ++column) {
        const double angle = position * omega(width, column / 2);
        const double expected = column % 2 == 0 ? std::sin(angle) : std::cos(angle);
        EXPECT_NEAR(value("pe(" + std::to_string(width) + "," + std::to_string(position) + "," +
                          std::to_string(column) + ")"),
                    expected, 1e-13);
      }
      double dot = 0;
      for (int i = 0; i < width / 2; ++i) dot += std::cos(position * omega(width, i));
      EXPECT_NEAR(value("dot(" + std::to_string(width) + "," + std::to_string(position) + ")"), dot, 1e-12);
    }
  }
  EXPECT_NEAR(value("pe(4, 3, 2, 100)"), std::sin(0.3), 1e-15);
  EXPECT_NEAR(value("frequency(128, 20, 500000)"), omega(128, 20, 500000), 1e-15);
  EXPECT_NEAR(value("wavelength(128, 20, 500000)"), 2 * std::numbers::pi / omega(128, 20, 500000), 1e-9);
}

TEST(Formula, Rotations) {
  const double angle = 7 * omega(8, 1);
  EXPECT_NEAR(value("rotate_a(8, 1, 7, 1.5, -2)"), 1.5 * std::cos(angle) + 2 * std::sin(angle), 1e-14);
  EXPECT_NEAR(value("rotate_b(8, 1, 7, 1.5, -2)"), -2 * std::cos(angle) + 1.5 * std::sin(angle), 1e-14);
  EXPECT_EQ(value("slowdown('linear-4', 17)"), 4);
  EXPECT_NEAR(value("slowdown('ntk-4', 32)"), std::pow(4.0, 64.0 / 126), 1e-12);
  EXPECT_NEAR(value("slowdown('alpha-4', 32)"), std::pow(4.0, 64.0 / 126), 1e-12);
  EXPECT_NEAR(value("slowdown('ntk-fixed-4', 0)"), std::pow(4.0, 2.0 / 128), 1e-12);
  EXPECT_NEAR(value("slowdown('ntk-fixed-4', 63)"), 4.0, 1e-12);
  EXPECT_NEAR(value("slowdown('dynamic-short', 63)"), 1.0, 1e-12);
  EXPECT_NEAR(value("slowdown('dynamic-long', 63)"), 3.0, 1e-12);  // 2 · 4096/2048 − 1
  EXPECT_NEAR(value("magnitude('yarn-4')"), 0.1 * std::log(4.0) + 1, 1e-15);
  EXPECT_EQ(value("magnitude('deepseek-v3')"), 1.0);
  EXPECT_NEAR(value("softmax_factor('deepseek-v3')"), std::pow(0.1 * std::log(40.0) + 1, 2), 1e-14);
  EXPECT_NEAR(value("magnitude('longrope-32')"), std::sqrt(1 + std::log(32.0) / std::log(4096.0)), 1e-14);
  EXPECT_NEAR(value("fade('xpos-64', 0, 512)"), 0.4 / 1.4, 1e-12);
  EXPECT_NEAR(value("fade('xpos-64', 31, 256)"), std::sqrt((62 + 25.6) / 89.6), 1e-12);
  EXPECT_NEAR(value("frequency('proportional', 10)"), omega(512, 10, 1e6), 1e-14);
}

TEST(Formula, YarnAndLlama3PairByPair) {
  const auto ramp_end = [](double turns) {
    return 128 * std::log(4096 / (2 * std::numbers::pi * turns)) / (2 * std::log(10000.0));
  };
  const double low = std::floor(ramp_end(32)), high = std::ceil(ramp_end(1));
  for (int i = 0; i < 64; ++i) {
    const double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
    EXPECT_NEAR(value("slowdown('yarn-4', " + std::to_string(i) + ")"), 1 / (ramp / 4 + 1 - ramp), 1e-12) << i;
    const double turns = 8192 * omega(128, i, 500000) / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - 1) / 3, 0.0, 1.0);
    EXPECT_NEAR(value("slowdown('llama-3.1', " + std::to_string(i) + ")"), 1 / (kept + (1 - kept) / 8), 1e-12) << i;
  }
}

TEST(Formula, Biases) {
  for (int h = 0; h < 8; ++h) {
    EXPECT_EQ(value("slope(8, " + std::to_string(h) + ")"), std::pow(2.0, -(h + 1)));
    EXPECT_EQ(value("slope(12, " + std::to_string(h) + ")"), std::pow(2.0, -(h + 1)));
  }
  EXPECT_NEAR(value("slope(12, 9)"), std::pow(2.0, -1.5), 1e-16);
  EXPECT_EQ(value("bias('alibi-8', 0, 6, 0)"), -3);
  EXPECT_NEAR(value("bias('kerple-log', 0, 100, 0)"), -std::log(101.0), 1e-14);
  EXPECT_EQ(value("bias('kerple-power', 0, 100, 0)"), -100);
  double cosines = 0;
  for (int i = 0; i < 64; ++i) cosines += std::cos(6 * omega(128, i));
  EXPECT_NEAR(value("bias('sandwich-12', 0, 6, 0)"), 12.0 / 8 * cosines, 1e-11);
  EXPECT_NEAR(value("bias('fire', 0, 1000, 250)"), -std::log(76.0) / (std::log(101.0) + 1e-6), 1e-12);
  EXPECT_NEAR(value("value('steps', 3, 2)"), 0.0003, 1e-18);
  EXPECT_NEAR(value("value('shift', 7, 2) - value('shift', 0, 2)"), 0.14, 1e-15);
}

TEST(Formula, Buckets) {
  const auto t5 = [](int rel, bool both) {  // T5's own lines, in double
    int buckets = 32, bucket = 0;
    if (both) {
      buckets /= 2;
      bucket = rel > 0 ? buckets : 0;
      rel = std::abs(rel);
    } else {
      rel = std::max(-rel, 0);
    }
    const int exact = buckets / 2;
    if (rel < exact) return bucket + rel;
    // the ties at 16, 32 and 64 are whole numbers that a double may miss from below
    const double share = std::log(rel / static_cast<double>(exact)) / std::log(128.0 / exact) * (buckets - exact);
    return bucket + std::min(buckets - 1, exact + static_cast<int>(share + 1e-9));
  };
  for (int d = -300; d <= 300; ++d) {
    EXPECT_EQ(value("bucket('t5-encoder', " + std::to_string(d) + ")"), t5(d, true)) << d;
    EXPECT_EQ(value("bucket('t5-decoder', " + std::to_string(d) + ")"), t5(d, false)) << d;
  }
  EXPECT_EQ(value("bucket('deberta-v3', 0)"), 256);
  EXPECT_EQ(value("bucket('deberta-v3', -100)"), 356);  // query ahead of the key by 100: 100 + 256
}

TEST(Formula, Attention) {
  const double sum = std::exp(2) + std::exp(1) + 1;
  EXPECT_NEAR(value("weight(0, 2, 1, 0)"), std::exp(2) / sum, 1e-15);
  EXPECT_NEAR(value("weight(2, 2, 1, 0)"), 1 / sum, 1e-15);
  EXPECT_LT(value("reversal_gap('none', 0)"), 1e-15);
  EXPECT_LT(value("reversal_gap('alibi-1', 0)"), 1e-15);
  for (const char* noticed : {"reversal_gap('none', 1)", "reversal_gap('rope-4', 0)",
                              "reversal_gap('sinusoidal-4', 0)", "reversal_gap('alibi-1', 1)"}) {
    EXPECT_GT(value(noticed), 0.001) << noticed;
  }
}

TEST(Formula, Exactness) {
  EXPECT_EQ(value("as_bf16(256)"), 256);
  EXPECT_EQ(value("as_bf16(257)"), 256);
  EXPECT_EQ(value("as_bf16(259)"), 260);
  EXPECT_EQ(value("as_bf16(4097)"), 4096);
  // float(p) · float(ω), and then the sine of that in long double
  double worst = 0;
  for (int i = 0; i < 64; ++i) {
    const auto factor = static_cast<float>(1 / std::pow(10000.0, 2.0 * i / 128));
    const auto angle = static_cast<double>(1000000.0f * factor);
    const double exact = 1000000.0 * omega(128, i);
    worst =
        std::max({worst, std::fabs(std::sin(angle) - std::sin(exact)), std::fabs(std::cos(angle) - std::cos(exact))});
  }
  EXPECT_NEAR(value("float32_error('rope-128', 1000000)"), worst, 0.1 * worst);
}

TEST(Formula, EveryFunctionIsDescribed) {
  EXPECT_GE(formula_functions().size(), 20U);
  for (const FormulaFunction& function : formula_functions()) {
    EXPECT_FALSE(function.name.empty() || function.arguments.empty() || function.help.empty()) << function.name;
  }
}

}  // namespace
}  // namespace posenc::formula_test
