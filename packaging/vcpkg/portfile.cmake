# The sources are the tree that this port is in. For a registry, replace these two lines by vcpkg_from_github with the
# repository, REF "v${VERSION}" and the archive's SHA512.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
message(STATUS "Building posenc from ${SOURCE_PATH}")

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    c-api POSENC_C_API
    lessons POSENC_LESSONS
    tools POSENC_BUILD_CLI
)
if("tools" IN_LIST FEATURES)
  vcpkg_find_acquire_program(PKGCONFIG)
  list(APPEND FEATURE_OPTIONS "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}")
endif()

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    -DPOSENC_INSTALL=ON
    -DPOSENC_BUILD_TESTS=OFF
    -DPOSENC_BUILD_PYTHON=OFF
    -DPOSENC_EXPLORER=OFF
    -DPOSENC_LAB=OFF
    -DPOSENC_CUDA=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/posenc)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES posenc AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
