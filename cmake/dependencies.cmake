# The dependencies of the library; docs/decisions has the reason for each. All are Debian packages.
find_package(fmt 9 REQUIRED)
find_package(ZLIB 1.2 REQUIRED)
find_path(RAPIDJSON_INCLUDE_DIR rapidjson/reader.h REQUIRED)
find_path(UTFCPP_INCLUDE_DIR utf8/core.h PATH_SUFFIXES utf8cpp REQUIRED)

# Header-only libraries, used only inside the library; SYSTEM suppresses their warnings.
add_library(posenc_header_only INTERFACE)
target_include_directories(posenc_header_only SYSTEM INTERFACE ${RAPIDJSON_INCLUDE_DIR} ${UTFCPP_INCLUDE_DIR})

if(POSENC_CPU_BACKEND)
  find_package(Threads REQUIRED)  # a static TBB links them and does not look for them
  find_package(TBB REQUIRED)
  # By its own package where it was installed with one (Debian, vcpkg, conda), else by pkg-config.
  if(NOT TARGET hwy::hwy)
    find_package(hwy 1.0.3 CONFIG QUIET)
  endif()
  set(POSENC_HWY_BY_PKG_CONFIG OFF)
  if(NOT TARGET hwy::hwy)
    find_package(PkgConfig REQUIRED)
    pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy>=1.0.3)
    add_library(hwy::hwy ALIAS PkgConfig::HWY)
    set(POSENC_HWY_BY_PKG_CONFIG ON)
  endif()
endif()
