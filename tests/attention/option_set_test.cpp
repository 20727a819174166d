// The list of options: each is found by its name, and an engine rejects each that it does not take.

#include "posenc/option_set.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "attention/option_values.h"

namespace posenc::option_set_test {
namespace {

using Options = AttentionOptions;
constexpr OptionSet kSome(&Options::window, &Options::sinks, &Options::logsumexp);
static_assert(kSome.has(&Options::sinks) && !kSome.has(&Options::mask) && !kSome.has(&Options::chunk));
static_assert(kSome.has(&Options::logsumexp) && !kSome.has(&Options::weights));
static_assert(kSome.first_name() == "window" && OptionSet().first_name().empty());
static_assert(OptionSet(&Options::mask, &Options::window).without(kSome).first_name() == "mask");
static_assert(kSome.without(kSome).is_empty() && !kSome.is_empty());

TEST(OptionSet, HasWhatDiffersFromItsDefault) {
  EXPECT_TRUE(OptionSet(Options{}).is_empty());
  std::set<std::string_view> names;
  Options::fields([&](std::string_view name, auto member, std::string_view help) {
    Options options;
    tests::give(options.*member);
    const OptionSet given(options);
    EXPECT_EQ(given.first_name(), name);
    EXPECT_TRUE(given.has(member) && given.without(OptionSet(member)).is_empty()) << name;
    EXPECT_FALSE(help.empty()) << name;
    EXPECT_TRUE(names.insert(name).second) << name << " is listed twice";
  });
  EXPECT_GE(names.size(), 27U);
  Options warm;
  warm.position = Nothing{.temperature = Temperature{}};
  EXPECT_EQ(OptionSet(warm).first_name(), "position");
}

// A field that is missing from the list would be lost on its way to C, Python and the engines. Between the listed ones
// there is no room for another, except for one that fits into padding.
TEST(OptionSet, EveryFieldIsListed) {
  struct Place {
    std::size_t size, alignment;
  };
  const Options options;
  const auto address = [](const auto& x) { return reinterpret_cast<std::uintptr_t>(&x); };
  std::map<std::uintptr_t, Place> places;
  Options::fields([&]<class T>(std::string_view, T Options::*member, std::string_view) {
    places[address(options.*member)] = {sizeof(T), alignof(T)};
  });
  std::uintptr_t end = address(options);
  for (const auto& [at, place] : places) {
    EXPECT_LT(at - end, place.alignment) << "a field at byte " << end - address(options) << " is not listed";
    end = at + place.size;
  }
  EXPECT_LT(address(options) + sizeof options - end, alignof(Options));
}

TEST(OptionSet, RefusesWhatAnEngineDoesNotTakeByName) {
  Options::fields([&](std::string_view name, auto member, std::string_view) {
    Options options;
    tests::give(options.*member);
    if (kSome.has(member)) {
      EXPECT_NO_THROW(refuse_others("verb", OptionSet(options), kSome, "an engine"));
      return;
    }
    try {
      refuse_others("verb", OptionSet(options), kSome, "an engine");
      ADD_FAILURE() << name << " is not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "verb: an engine does not support the option " + std::string(name));
    }
  });
}

}  // namespace
}  // namespace posenc::option_set_test
