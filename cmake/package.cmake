# Debian packages, a component of cmake/install.cmake each: `cpack` in the build folder makes libtutti0, libtutti-dev and
# tutti-tools, and libtutti-nccl0 where that is built. dpkg-shlibdeps (Debian's dpkg-dev) finds what they depend on.
set(doc ${CMAKE_INSTALL_DATAROOTDIR}/doc)
find_program(TUTTI_GZIP gzip)
if(TUTTI_GZIP)  # Debian has it everywhere
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/debian)
  execute_process(COMMAND ${TUTTI_GZIP} -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md OUTPUT_FILE ${PROJECT_BINARY_DIR}/debian/changelog.gz)
endif()
set(packages_runtime libtutti0)  # the number is the SONAME's
set(packages_development libtutti-dev)
set(packages_tools tutti-tools)
set(packages_nccl libtutti-nccl0)
set(components runtime development tools)
if(TARGET tutti_nccl)
  list(APPEND components nccl)
endif()
foreach(component IN LISTS components)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${packages_${component}})
  install(FILES cmake/debian/copyright ${PROJECT_BINARY_DIR}/debian/changelog.gz
    DESTINATION ${doc}/${packages_${component}} COMPONENT ${component} EXCLUDE_FROM_ALL OPTIONAL)
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
if(NOT CPACK_PACKAGE_CONTACT)
  set(CPACK_PACKAGE_CONTACT "The authors of tutti <tutti@localhost>")  # who packages gives an address
endif()

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_NCCL_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_NCCL_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src)  # where libtutti.so.0 is, which the packages have
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# A name that a later release adds is not in an earlier one.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY >=)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libtutti0 (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(CPACK_DEBIAN_NCCL_PACKAGE_DEPENDS ${CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS})
# Only the static library needs them.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libfmt-dev, libhwloc-dev, libhwy-dev, libssl-dev, libibverbs-dev, pkg-config")

set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "collective communication library")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
"tutti adds, copies and exchanges arrays between the processes of a parallel
program: over shared memory, TCP and RDMA, with the same bits in every run.
.
This package has the shared library.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
"tutti adds, copies and exchanges arrays between the processes of a parallel
program: over shared memory, TCP and RDMA, with the same bits in every run.
.
This package has the headers for C and C++, the static library, and what
CMake and pkg-config read.")
set(CPACK_COMPONENT_NCCL_DESCRIPTION
"tutti adds, copies and exchanges arrays between the processes of a parallel
program: over shared memory, TCP and RDMA, with the same bits in every run.
.
This package has a library with the functions of NVIDIA's NCCL, for programs
that are written for that, and what CMake and pkg-config read of it. It needs
no GPU. The header nccl.h is NVIDIA's.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
"tutti adds, copies and exchanges arrays between the processes of a parallel
program: over shared memory, TCP and RDMA, with the same bits in every run.
.
This package has the program tutti: it starts the ranks of a job, measures
collectives, shows their schedules, and says what a machine offers.")
include(CPack)
