// A deck as an Anki package: a collection in the oldest schema (11), which all versions of Anki read, in a zip
// archive.
#include <fmt/format.h>
#include <sqlite3.h>
#include <zip.h>

#include <map>
#include <memory>

#include "cli/pages/flash_card.h"
#include "cli/system/failure.h"
#include "cli/system/sha1.h"
#include "posenc/content.h"
#include "posenc/json.h"

namespace posenc::cli {
namespace {

constexpr std::int64_t kSchema = 11;
constexpr std::int64_t kDefaultDeck = 1, kDefaultOptions = 1;
constexpr char kFieldSeparator = '\x1f';

constexpr std::string_view kAnkiStyle =
    ".card { font-family: sans-serif; font-size: 20px; text-align: left; max-width: 40em; margin: 1em auto; "
    "line-height: 1.4; }\n"
    "code { font-family: monospace; white-space: nowrap; }";

// Anki's ids are milliseconds since 1970; ours are fixed, from one range in the past.
std::int64_t stable_id(std::string_view what) {
  constexpr std::uint64_t kFirst = 1'500'000'000'000, kRange = 100'000'000'000;
  return static_cast<std::int64_t>(kFirst + stable_number(what) % kRange);
}

// The fields without markup, which Anki compares to find duplicates.
std::string without_markup(std::string_view html) {
  std::string text;
  bool inside = false;
  for (const char c : html) {
    if (c == '<') inside = true;
    if (!inside) text += c;
    if (c == '>') inside = false;
  }
  for (const auto& [entity, character] : {std::pair{"&lt;", "<"}, std::pair{"&gt;", ">"}, std::pair{"&quot;", "\""},
                                          std::pair{"&#39;", "'"}, std::pair{"&amp;", "&"}}) {
    for (std::size_t at = text.find(entity); at != std::string::npos; at = text.find(entity, at + 1)) {
      text.replace(at, std::string_view(entity).size(), character);
    }
  }
  return text;
}

std::int64_t checksum(std::string_view text) {
  const auto digest = sha1(text);
  return (std::int64_t{digest[0]} << 24U) | (digest[1] << 16U) | (digest[2] << 8U) | digest[3];
}

Json field(std::string_view name, int order) {
  return Json::Object{{"name", name},    {"ord", order}, {"sticky", false},       {"rtl", false},
                      {"font", "Arial"}, {"size", 20},   {"media", Json::Array{}}};
}

Json models(std::int64_t id, std::int64_t deck, std::int64_t now) {
  const Json card = Json::Object{{"name", "Card 1"},    {"ord", 0},
                                 {"qfmt", "{{Front}}"}, {"afmt", "{{FrontSide}}\n\n<hr id=answer>\n\n{{Back}}"},
                                 {"did", nullptr},      {"bqfmt", ""},
                                 {"bafmt", ""}};
  const Json model = Json::Object{
      {"id", id},
      {"name", "posenc"},
      {"type", 0},
      {"mod", now},
      {"usn", -1},
      {"sortf", 0},
      {"did", deck},
      {"tmpls", Json::Array{card}},
      {"flds", Json::Array{field("Front", 0), field("Back", 1)}},
      {"css", kAnkiStyle},
      {"latexPre", "\\documentclass[12pt]{article}\n\\begin{document}\n"},
      {"latexPost", "\\end{document}"},
      {"tags", Json::Array{}},
      {"vers", Json::Array{}},
      {"req", Json::Array{Json::Array{0, "any", Json::Array{0}}}},
  };
  return Json::Object{{std::to_string(id), model}};
}

Json deck_entry(std::int64_t id, std::string_view name, std::int64_t now) {
  const Json none = Json::Array{0, 0};
  return Json::Object{{"id", id},
                      {"name", name},
                      {"desc", ""},
                      {"mod", now},
                      {"usn", -1},
                      {"dyn", 0},
                      {"conf", kDefaultOptions},
                      {"collapsed", false},
                      {"browserCollapsed", false},
                      {"extendNew", 10},
                      {"extendRev", 50},
                      {"newToday", none},
                      {"revToday", none},
                      {"lrnToday", none},
                      {"timeToday", none}};
}

Json deck_options() {
  const Json fresh = Json::Object{{"delays", Json::Array{1, 10}},
                                  {"ints", Json::Array{1, 4, 7}},
                                  {"initialFactor", 2500},
                                  {"separate", true},
                                  {"order", 1},
                                  {"perDay", 20},
                                  {"bury", true}};
  const Json lapse =
      Json::Object{{"delays", Json::Array{10}}, {"mult", 0}, {"minInt", 1}, {"leechFails", 8}, {"leechAction", 0}};
  const Json review = Json::Object{{"perDay", 100}, {"ease4", 1.3},    {"fuzz", 0.05}, {"minSpace", 1},
                                   {"ivlFct", 1},   {"maxIvl", 36500}, {"bury", true}};
  return Json::Object{{"1", Json::Object{{"id", kDefaultOptions},
                                         {"name", "Default"},
                                         {"mod", 0},
                                         {"usn", 0},
                                         {"maxTaken", 60},
                                         {"timer", 0},
                                         {"autoplay", true},
                                         {"replayq", true},
                                         {"dyn", false},
                                         {"new", fresh},
                                         {"lapse", lapse},
                                         {"rev", review}}}};
}

Json collection_options(std::int64_t model) {
  return Json::Object{{"nextPos", 1},          {"estTimes", true},  {"activeDecks", Json::Array{1}},
                      {"sortType", "noteFld"}, {"timeLim", 0},      {"sortBackwards", false},
                      {"addToCur", true},      {"curDeck", 1},      {"newBury", true},
                      {"newSpread", 0},        {"dueCounts", true}, {"curModel", std::to_string(model)},
                      {"collapseTime", 1200}};
}

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct FinishStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

// An in-memory database, so that an error leaves no file behind.
class Database {
 public:
  Database() {
    sqlite3* opened = nullptr;
    const int code = sqlite3_open(":memory:", &opened);
    database_.reset(opened);
    check(code);
  }

  void run(const char* statements) { check(sqlite3_exec(database_.get(), statements, nullptr, nullptr, nullptr)); }

  template <class... Values> void insert(std::string_view table, const Values&... values) {
    std::string marks = "?";
    for (std::size_t i = 1; i < sizeof...(values); ++i) marks += ",?";
    const std::string text = fmt::format("INSERT INTO {} VALUES ({})", table, marks);
    sqlite3_stmt* prepared = nullptr;
    check(sqlite3_prepare_v2(database_.get(), text.c_str(), -1, &prepared, nullptr));
    const std::unique_ptr<sqlite3_stmt, FinishStatement> statement(prepared);
    int at = 0;
    (bind(prepared, ++at, values), ...);
    if (const int code = sqlite3_step(prepared); code != SQLITE_DONE) check(code);
  }

  std::string bytes() {
    sqlite3_int64 size = 0;
    const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> data(
        sqlite3_serialize(database_.get(), "main", &size, 0), &sqlite3_free);
    if (data == nullptr) throw Failure{kOutOfMemory, "out of memory"};
    return {reinterpret_cast<const char*>(data.get()), static_cast<std::size_t>(size)};
  }

 private:
  void check(int code) {
    if (code == SQLITE_OK) return;
    throw Failure{code == SQLITE_NOMEM ? kOutOfMemory : kFilesFailed,
                  fmt::format("the collection cannot be made: {}", sqlite3_errstr(code))};
  }
  void bind(sqlite3_stmt* statement, int at, std::int64_t value) { check(sqlite3_bind_int64(statement, at, value)); }
  void bind(sqlite3_stmt* statement, int at, const std::string& value) {
    check(sqlite3_bind_text(statement, at, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT));
  }

  std::unique_ptr<sqlite3, CloseDatabase> database_;
};

std::string collection(const std::vector<Card>& cards, std::string_view deck, std::int64_t now) {
  constexpr std::int64_t kLocal = -1;  // the value of usn for local changes that are not synchronised yet
  const std::int64_t zero = 0;
  const std::vector<AnkiNote> notes = anki_notes(cards, deck);
  const std::int64_t model = stable_id("posenc/notetype");

  std::map<std::string, std::int64_t> decks = {{std::string(deck), stable_id(fmt::format("deck/{}", deck))}};
  for (const AnkiNote& note : notes) decks.emplace(note.deck, stable_id("deck/" + note.deck));
  Json::Object deck_list = {{"1", deck_entry(kDefaultDeck, "Default", now)}};
  for (const auto& [name, id] : decks) deck_list.emplace_back(std::to_string(id), deck_entry(id, name, now));

  Database database;
  database.run("PRAGMA page_size = 4096; BEGIN");
  database.run(std::string(content("pages/anki.sql")).c_str());
  // The day on which the collection begins. Anki counts due days from it; new cards have none.
  const std::int64_t first_day = now - now % 86400;
  database.insert("col", std::int64_t{1}, first_day, now * 1000, now * 1000, kSchema, zero, zero, zero,
                  dump_json(collection_options(model)), dump_json(models(model, decks.begin()->second, now)),
                  dump_json(Json(std::move(deck_list))), dump_json(deck_options()), std::string("{}"));
  std::int64_t place = 0;
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const AnkiNote& note = notes[i];
    const std::int64_t id = stable_id("note/" + note.guid), card = stable_id("card/" + note.guid);
    const std::string sorted_by = without_markup(note.front);
    database.insert("notes", id, note.guid, model, now, kLocal, " " + note.tags + " ",
                    note.front + kFieldSeparator + note.back, sorted_by, checksum(sorted_by), zero, std::string());
    database.insert("cards", card, id, decks.at(note.deck), zero, now, kLocal, zero, zero, ++place, zero, zero, zero,
                    zero, zero, zero, zero, zero, std::string());
  }
  database.run("COMMIT");
  return database.bytes();
}

[[noreturn]] void fail_with_zip_error(zip_error_t& error) {
  const std::string text = fmt::format("the package cannot be made: {}", zip_error_strerror(&error));
  zip_error_fini(&error);
  throw Failure{kFilesFailed, text};
}

void add_member(zip_t* archive, const char* name, const std::string& bytes, std::int64_t now) {
  zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
  const zip_int64_t index = source == nullptr ? -1 : zip_file_add(archive, name, source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    throw Failure{kFilesFailed, fmt::format("the package cannot be made: {}", zip_strerror(archive))};
  }
  zip_file_set_mtime(archive, static_cast<zip_uint64_t>(index), static_cast<time_t>(now), 0);
}

struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct FreeSource {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};

std::string zipped(const std::string& database, std::int64_t now) {
  zip_error_t error;
  zip_error_init(&error);
  // In memory as well, because the program writes the file itself.
  const std::unique_ptr<zip_source_t, FreeSource> target(zip_source_buffer_create(nullptr, 0, 0, &error));
  if (target == nullptr) fail_with_zip_error(error);
  std::unique_ptr<zip_t, DiscardArchive> archive(zip_open_from_source(target.get(), ZIP_TRUNCATE, &error));
  if (archive == nullptr) fail_with_zip_error(error);
  zip_source_keep(target.get());

  const std::string media = "{}";
  add_member(archive.get(), "collection.anki2", database, now);
  add_member(archive.get(), "media", media, now);
  if (zip_close(archive.get()) != 0) {
    throw Failure{kFilesFailed, fmt::format("the package cannot be made: {}", zip_strerror(archive.get()))};
  }
  static_cast<void>(archive.release());  // already closed and freed

  zip_stat_t status;
  zip_stat_init(&status);
  if (zip_source_open(target.get()) != 0 || zip_source_stat(target.get(), &status) != 0) {
    throw Failure{kFilesFailed, "the package cannot be made"};
  }
  std::string bytes(status.size, '\0');
  const zip_int64_t read = zip_source_read(target.get(), bytes.data(), bytes.size());
  zip_source_close(target.get());
  if (read != static_cast<zip_int64_t>(bytes.size())) throw Failure{kFilesFailed, "the package cannot be made"};
  return bytes;
}

}  // namespace

std::string cards_as_apkg(const std::vector<Card>& cards, std::string_view deck, std::int64_t now) {
  return zipped(collection(cards, deck, now), now);
}

}  // namespace posenc::cli
