# Compiles content/ into posenc::lessons, so that the program and the explorer share stories, questions and cards, and
# an installed program needs no data folder. Sets `content_source`.
file(GLOB_RECURSE content_files RELATIVE ${PROJECT_SOURCE_DIR}/content CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/content/*.json ${PROJECT_SOURCE_DIR}/content/*.md
     ${PROJECT_SOURCE_DIR}/content/pages/*)
list(FILTER content_files EXCLUDE REGEX "^(models|lab)/")  # cmake/models.cmake, cmake/rows.cmake
# write_content(SOURCE NAME…): a source that has these files of content/.
function(write_content source)
  set(code "// Made by cmake/content.cmake from content/.\n#include \"posenc/content.h\"\n\nnamespace posenc {\n")
  string(APPEND code "namespace {\nconstexpr ContentFile kFiles[] = {\n")
  foreach(name ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/content/${name})
    file(READ ${PROJECT_SOURCE_DIR}/content/${name} text)
    string(APPEND code "    {\"${name}\", R\"~content~(${text})~content~\"},\n")
  endforeach()
  string(APPEND code "};\n}  // namespace\n\n")
  string(APPEND code "std::span<const ContentFile> content_files() { return kFiles; }\n}  // namespace posenc\n")
  # Copied only if it differs, so that reconfiguring does not recompile it.
  file(WRITE ${source}.new "${code}")
  file(COPY_FILE ${source}.new ${source} ONLY_IF_DIFFERENT)
endfunction()
set(content_source ${PROJECT_BINARY_DIR}/content.cpp)
write_content(${content_source} ${content_files})
