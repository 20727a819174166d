# Compiles the classes in content/models into the room `models`: one row per line `"type": {…}`. Sets
# `classes_source`.
set(classes_code "// Made by cmake/models.cmake from content/models.\n#include \"models/classes.h\"\n\nnamespace posenc::models {\n")
string(APPEND classes_code "namespace {\nconstexpr ConfigClass kConfigClasses[] = {")
foreach(name classes classes_elsewhere)
  set(file ${PROJECT_SOURCE_DIR}/content/models/${name}.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(REGEX REPLACE "^{\n" "" text "${text}")
  string(REGEX REPLACE "\n    (\"[^\"\n]+\"): ({[^\n]*}),?" "\n    {\\1, R\"~(\\2)~\"}," text "${text}")
  # The remaining lines name a source.
  string(REGEX REPLACE "\n?  (\"[^\n]*\"): {\n" "\n    // \\1\n" text "${text}")
  string(REGEX REPLACE "\n  },?" "" text "${text}")
  string(REGEX REPLACE "}\n$" "" text "${text}")
  string(APPEND classes_code "${text}")
endforeach()
string(APPEND classes_code "\n};\n}  // namespace\n\n")
string(APPEND classes_code "std::span<const ConfigClass> config_classes() noexcept { return kConfigClasses; }\n}  // namespace posenc::models\n")
set(classes_source ${PROJECT_BINARY_DIR}/classes.cpp)
# Copied only if it differs, so that reconfiguring does not recompile it.
file(WRITE ${classes_source}.new "${classes_code}")
file(COPY_FILE ${classes_source}.new ${classes_source} ONLY_IF_DIFFERENT)

write_rows(models/engines.json engine_subjects engine_versions engine_rules)
