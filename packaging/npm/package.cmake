# The folder of the npm package, BUILD/npm. Included by explorer/CMakeLists.txt, whose modules and tools it takes;
# packaging/npm/build.sh packs it.
set(npm_source ${PROJECT_SOURCE_DIR}/packaging/npm)
file(GLOB npm_sources CONFIGURE_DEPENDS ${npm_source}/src/*.ts)
set(npm_package ${PROJECT_BINARY_DIR}/npm)
add_custom_command(OUTPUT ${npm_package}/LICENSE
  COMMAND ${NODE} ${npm_source}/build.mjs ${npm_source} ${web} ${CMAKE_CURRENT_BINARY_DIR} ${npm_package} ${PROJECT_VERSION}
  DEPENDS ${npm_sources} ${npm_source}/build.mjs ${npm_source}/scheme_types.mjs ${npm_source}/package.json ${npm_source}/tsconfig.json
          ${npm_source}/README.md ${npm_source}/NOTICE ${PROJECT_SOURCE_DIR}/LICENSE
          ${CMAKE_CURRENT_BINARY_DIR}/package.wasm ${CMAKE_CURRENT_BINARY_DIR}/figures.wasm ${web}/node_modules/.package-lock.json
  COMMENT "Making the npm package" VERBATIM)
add_custom_target(posenc_npm DEPENDS ${npm_package}/LICENSE)
