# What a user of the library gets, in three components: the shared library (runtime); the headers, the static library, and the
# packages that find_package(tutti) and pkg-config find (development); the `tutti` program (tools). A fourth one, where it is
# built, is libtutti_nccl with all that belongs to it (nccl).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
# Debian's folder of libraries under every prefix, as GNUInstallDirs has it under /usr alone: CPack packs for /usr whatever the
# prefix is.
if(CMAKE_INSTALL_LIBDIR STREQUAL "lib" AND CMAKE_LIBRARY_ARCHITECTURE AND EXISTS /etc/debian_version)
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)

install(TARGETS tutti_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
install(DIRECTORY include/tutti DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
foreach(library tutti tutti_shared)
  if(NOT TARGET ${library})
    continue()
  endif()
  install(TARGETS ${library} EXPORT ${library}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
  get_target_property(kind ${library} EXPORT_NAME)
  install(EXPORT ${library} FILE tutti-${kind}.cmake NAMESPACE tutti:: DESTINATION ${package_dir} COMPONENT development)
endforeach()

if(TARGET tutti_nccl AND TARGET tutti_shared)
  install(TARGETS tutti_nccl EXPORT tutti_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT nccl)
  install(EXPORT tutti_nccl FILE tutti-nccl.cmake NAMESPACE tutti:: DESTINATION ${package_dir} COMPONENT nccl)
endif()

# What a program that links libtutti.a needs besides; the shared library knows by itself what it needs.
set(TUTTI_HAS_VERBS ${VERBS_FOUND})
set(TUTTI_STATIC_NEEDS "-lfmt -lhwloc -lhwy -lcrypto")
if(TUTTI_HAS_VERBS)
  string(APPEND TUTTI_STATIC_NEEDS " -libverbs")
else()
  set(TUTTI_HAS_VERBS OFF)
endif()
if(TUTTI_HAS_CUDA)
  string(APPEND TUTTI_STATIC_NEEDS " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
endif()
configure_package_config_file(cmake/tuttiConfig.cmake.in ${PROJECT_BINARY_DIR}/tuttiConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tuttiConfig.cmake ${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT development)
file(RELATIVE_PATH TUTTI_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/tutti.pc.in ${PROJECT_BINARY_DIR}/tutti.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tutti.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
if(TARGET tutti_nccl AND TARGET tutti_shared)
  configure_file(cmake/tutti-nccl.pc.in ${PROJECT_BINARY_DIR}/tutti-nccl.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/tutti-nccl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT nccl)
endif()
