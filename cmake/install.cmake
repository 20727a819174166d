# What `cmake --install` gives: headers, library, program, the CMake package and the pkg-config file.
option(POSENC_INSTALL "Make the install rules" ${PROJECT_IS_TOP_LEVEL})
if(NOT POSENC_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/posenc)

# How a library was compiled is no business of those who link it, so it is not exported.
set(libraries posenc)
if(TARGET posenc_lessons)
  list(APPEND libraries posenc_lessons)
  set_target_properties(posenc_lessons PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()
foreach(library ${libraries})
  get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
  if(links)  # a shared library has none
    list(REMOVE_ITEM links "$<LINK_ONLY:posenc_compile_options>")
    set_target_properties(${library} PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")
  endif()
endforeach()

install(TARGETS ${libraries} EXPORT posencTargets)
install(DIRECTORY include/posenc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET posenc_cli)
  # A build that was configured with the web explorer installs the program that carries the site inside; the other has the
  # same name and is built for those who do not ask for it.
  set(installed_program posenc_cli)
  if(TARGET posenc_explorer)
    set(installed_program posenc_explorer)
  endif()
  # The program finds a shared library beside it wherever the prefix is moved to.
  file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(${installed_program} PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS ${installed_program})
  # Made by the program itself from its table of commands.
  if(NOT CMAKE_CROSSCOMPILING)
    set(shell_files "")
    foreach(made "--bash;posenc.bash" "--zsh;_posenc" "--fish;posenc.fish" "--man;posenc.1")
      list(GET made 0 form)
      list(GET made 1 file)
      add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/shell/${file}
                         COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/shell
                         COMMAND posenc_cli help ${form} > ${PROJECT_BINARY_DIR}/shell/${file}
                         DEPENDS posenc_cli VERBATIM)
      list(APPEND shell_files ${PROJECT_BINARY_DIR}/shell/${file})
    endforeach()
    add_custom_target(posenc_shell_files ALL DEPENDS ${shell_files})
    install(FILES ${PROJECT_BINARY_DIR}/shell/posenc.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
            RENAME posenc)
    install(FILES ${PROJECT_BINARY_DIR}/shell/_posenc DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${PROJECT_BINARY_DIR}/shell/posenc.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
    install(FILES ${PROJECT_BINARY_DIR}/shell/posenc.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
endif()

if(TARGET posenc_c)
  set_target_properties(posenc_c PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS posenc_c EXPORT posencTargets)
endif()

# find_package(posenc COMPONENTS mpi)
if(TARGET posenc_mpi)
  get_target_property(mpi_links posenc_mpi INTERFACE_LINK_LIBRARIES)
  list(REMOVE_ITEM mpi_links "$<LINK_ONLY:posenc_compile_options>")
  set_target_properties(posenc_mpi PROPERTIES EXPORT_NAME mpi INTERFACE_LINK_LIBRARIES "${mpi_links}")
  install(TARGETS posenc_mpi EXPORT posencMpiTargets)
  install(EXPORT posencMpiTargets NAMESPACE posenc:: DESTINATION ${package_dir})
endif()

# A static library leaves its own dependencies to whoever links it; a shared one has them inside.
get_target_property(library_type posenc TYPE)
if(library_type STREQUAL "STATIC_LIBRARY")
  set(POSENC_IS_STATIC ON)
else()
  set(POSENC_IS_STATIC OFF)
endif()

install(EXPORT posencTargets NAMESPACE posenc:: DESTINATION ${package_dir})
configure_package_config_file(cmake/posencConfig.cmake.in posencConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may break its users.
write_basic_package_version_file(posencConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/posencConfig.cmake ${PROJECT_BINARY_DIR}/posencConfigVersion.cmake
        DESTINATION ${package_dir})

set(pc_requires fmt zlib)
if(POSENC_CPU_BACKEND)
  list(APPEND pc_requires "libhwy >= 1.0.3" tbb)
endif()
list(JOIN pc_requires ", " pc_requires)
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(cmake/posenc.pc.in posenc.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/posenc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET posenc_lessons)
  configure_file(cmake/posenc_lessons.pc.in posenc_lessons.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/posenc_lessons.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(TARGET posenc_c)
  configure_file(cmake/posenc_c.pc.in posenc_c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/posenc_c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
