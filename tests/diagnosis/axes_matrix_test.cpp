// Ports of M-RoPE, right and with one mistake each, on text followed by an image, in f32, f16 and bf16, 4, 16, 64 and 256
// tokens: see port_matrix.h. A run of the tests takes a sample; all of them, with the label `rest`:
//   POSENC_DIAGNOSIS_MATRIX=all diagnosis_tests --gtest_filter='CheckMatrix.*'

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "port_matrix.h"

namespace posenc::axes_matrix_test {
namespace {

using namespace tests;
using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kFeatures = 64, kStart = 7;

struct Meant {
  const char* name;
  Rope rope;
};
std::vector<Meant> schemes() {
  return {{"chunked", {.dims = 64, .base = 1e6, .sections = {8, 12, 12}}},
          {"interleaved",
           {.dims = 64, .base = 5e6, .sections = {12, 10, 10}, .section_order = SectionOrder::kInterleaved}},
          {"pairs", {.dims = 64, .layout = PairLayout::kInterleaved, .sections = {8, 12, 12}}},
          {"alternating",
           {.dims = 64,
            .base = 500000,
            .layout = PairLayout::kInterleaved,
            .sections = {10, 11, 11},
            .section_order = SectionOrder::kAlternating}}};
}

// [3, tokens]: one token of text, then an image, row by row.
Ids image_ids(std::int64_t tokens) {
  const auto columns = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(tokens - 1))));
  Ids ids;
  for (int axis = 0; axis < 3; ++axis) {
    ids.push_back(kStart);
    for (std::int64_t i = 0; i + 1 < tokens; ++i) {
      ids.push_back(kStart + 1 + (axis == 0 ? 0 : axis == 1 ? i / columns : i % columns));
    }
  }
  return ids;
}

struct Wrong {
  std::string name, words;
  Rope rope;
  std::function<Ids(const Ids&, std::int64_t)> ids = [](const Ids& right, std::int64_t) { return right; };
};

Ids exchanged(const Ids& ids, std::size_t one, std::size_t other) {
  Ids result = ids;
  const std::size_t count = ids.size() / 3;
  for (std::size_t i = 0; i < count; ++i) std::swap(result[one * count + i], result[other * count + i]);
  return result;
}

std::vector<Wrong> wrong_positions(const Rope& rope) {
  std::vector<Wrong> list;
  list.push_back({"not rotated", "", rope, [](const Ids& ids, auto) { return Ids(ids.size()); }});
  list.push_back({"height and width", "height and width are swapped", rope,
                  [](const Ids& ids, auto) { return exchanged(ids, 1, 2); }});
  list.push_back({"time and height", "time and height are swapped", rope,
                  [](const Ids& ids, auto) { return exchanged(ids, 0, 1); }});
  list.push_back({"time and width", "time and width are swapped", rope,
                  [](const Ids& ids, auto) { return exchanged(ids, 0, 2); }});
  list.push_back({"first axis", "Every axis has the positions of the first", rope, [](const Ids& ids, auto) {
                    Ids result = ids;
                    for (std::size_t i = 0; i < ids.size(); ++i) result[i] = ids[i % (ids.size() / 3)];
                    return result;
                  }});
  list.push_back({"counted", "Every axis has the number of the token", rope, [](const Ids& ids, auto) {
                    Ids result = ids;
                    for (std::size_t i = 0; i < ids.size(); ++i) {
                      result[i] = ids[0] + static_cast<std::int64_t>(i % (ids.size() / 3));
                    }
                    return result;
                  }});
  list.push_back({"no offset", "count from 0", rope, [](const Ids& ids, std::int64_t start) {
                    Ids result = ids;
                    const std::size_t count = ids.size() / 3;
                    for (std::size_t i = count; i < ids.size(); ++i) {
                      if (start == 0 || i % count > 0) result[i] -= ids[start == 0 ? 0 : 1];
                    }
                    return result;
                  }});
  list.push_back({"off by one", "Positions are off by 1", rope, [](const Ids& ids, auto) {
                    Ids result = ids;
                    for (std::int64_t& id : result) ++id;
                    return result;
                  }});
  return list;
}

// The same pairs on the same axes, with other words.
bool is_same(const Rope& one, const Rope& other) {
  Rope like = one;
  like.sections = other.sections;
  like.section_order = other.section_order;
  const Rotation form = prepare(one), right = prepare(other);
  for (std::size_t pair = 0; pair < 32; ++pair) {
    if (axis_of(form, pair) != axis_of(right, pair)) return false;
  }
  return like == other;
}

std::vector<Wrong> wrong_ports(const Rope& rope) {
  std::vector<Wrong> list = wrong_positions(rope);
  const auto add = [&](std::string name, std::string words, const auto& change) {
    Rope port = rope;
    change(port);
    if (!is_same(port, rope)) list.push_back({std::move(name), std::move(words), port});
  };
  const auto sections = rope.sections;
  for (const auto& from : std::vector<std::array<std::size_t, 3>>{{1, 2, 0}, {2, 0, 1}, {1, 0, 2}}) {
    add(fmt::format("sections {} {} {}", from[0], from[1], from[2]), "sections: expected", [&](Rope& port) {
      port.sections = {sections[from[0]], sections[from[1]], sections[from[2]]};
    });
  }
  add("even sections", "sections: expected", [](Rope& port) { port.sections = {11, 11, 10}; });
  add("half for time", "sections: expected", [](Rope& port) { port.sections = {16, 8, 8}; });
  add("one pair", "sections: expected", [](Rope& port) {
    --port.sections[1];
    ++port.sections[2];
  });
  add("one pair of time", "sections: expected", [](Rope& port) {
    ++port.sections[0];
    --port.sections[1];
  });
  for (const SectionOrder order : {SectionOrder::kChunked, SectionOrder::kInterleaved, SectionOrder::kAlternating}) {
    add(fmt::format("order {}", static_cast<int>(order)), "order of sections: expected",
        [&](Rope& port) { port.section_order = order; });
  }
  add("layout", "pairs: expected", [](Rope& port) {
    port.layout = port.layout == PairLayout::kHalves ? PairLayout::kInterleaved : PairLayout::kHalves;
  });
  add("base", "base: expected", [](Rope& port) { port.base = port.base == 10000 ? 500000 : 10000; });
  return list;
}

CheckResult checked(const Rope& meant, const Wrong* wrong, DataType type, std::int64_t tokens,
                    const DecidingTokens* enough) {
  Ids ids = image_ids(tokens);
  if (enough != nullptr) {
    ids.clear();
    for (const std::int64_t first : enough->first_positions) {
      for (std::int64_t i = 0; i < enough->tokens; ++i) ids.push_back(first + i);
    }
  }
  const auto count = std::ssize(ids) / 3;
  const Typed before = queries({tokens < 256 ? 4 : 2, count, kFeatures}, type, enough == nullptr ? 3 : 4);
  const Port port{.rope = wrong == nullptr ? meant : wrong->rope};
  const Ids its = wrong == nullptr ? ids : wrong->ids(ids, enough == nullptr ? kStart : 0);
  return check(meant, before.view(), ported(port, before, its, 1).view(), {.positions = ids, .axes = 3});
}

TEST(CheckMatrix, NoWrongAxesPass) {
  std::vector<PortCase> cases;
  for (const Meant& meant : schemes()) {
    for (const Wrong& wrong : wrong_ports(meant.rope)) {
      for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16}) {
        for (const std::int64_t tokens : {4, 16, 64, 256}) {
          cases.push_back({meant.name, wrong.name, fmt::format("{}, {} tokens", name_of(type), tokens), wrong.words,
                           [=](bool is_right, const DecidingTokens* enough) {
                             return checked(meant.rope, is_right ? nullptr : &wrong, type, tokens, enough);
                           }});
        }
      }
    }
  }
  run_port_cases(cases, 307);
}

}  // namespace
}  // namespace posenc::axes_matrix_test
