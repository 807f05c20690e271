# What a user of the library gets: include/tutti, libtutti.a, the `tutti` program, and a package for find_package(tutti).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)

install(TARGETS tutti EXPORT tutti)
install(TARGETS tutti_program)
install(DIRECTORY include/tutti TYPE INCLUDE)
install(EXPORT tutti FILE tuttiTargets.cmake NAMESPACE tutti:: DESTINATION ${package_dir})
set(TUTTI_HAS_VERBS ${VERBS_FOUND})
if(NOT TUTTI_HAS_VERBS)
  set(TUTTI_HAS_VERBS OFF)
endif()
configure_package_config_file(cmake/tuttiConfig.cmake.in ${PROJECT_BINARY_DIR}/tuttiConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tuttiConfig.cmake ${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake
  DESTINATION ${package_dir})
