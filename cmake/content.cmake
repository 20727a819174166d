# Compiles content/ into posenc::lessons, so that the program and the explorer share stories, questions and cards, and
# an installed program needs no data folder. Sets `content_source`.
file(GLOB_RECURSE content_files RELATIVE ${PROJECT_SOURCE_DIR}/content CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/content/*.json ${PROJECT_SOURCE_DIR}/content/*.md)
list(FILTER content_files EXCLUDE REGEX "^models/")  # cmake/models.cmake
set(content_code "// Made by cmake/content.cmake from content/.\n#include \"posenc/content.h\"\n\nnamespace posenc {\n")
string(APPEND content_code "namespace {\nconstexpr ContentFile kFiles[] = {\n")
foreach(name ${content_files})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/content/${name})
  file(READ ${PROJECT_SOURCE_DIR}/content/${name} text)
  string(APPEND content_code "    {\"${name}\", R\"~content~(${text})~content~\"},\n")
endforeach()
string(APPEND content_code "};\n}  // namespace\n\n")
string(APPEND content_code "std::span<const ContentFile> content_files() { return kFiles; }\n}  // namespace posenc\n")
set(content_source ${PROJECT_BINARY_DIR}/content.cpp)
# Copied only if it differs, so that reconfiguring does not recompile it.
file(WRITE ${content_source}.new "${content_code}")
file(COPY_FILE ${content_source}.new ${content_source} ONLY_IF_DIFFERENT)
