option(TUTTI_TESTS "Build the tests" ON)
option(TUTTI_BENCH "Build the micro-benchmarks" ON)
set(TUTTI_CUDA AUTO CACHE STRING "Build what works on GPUs: AUTO, ON or OFF")
set(TUTTI_CUDA_ARCHITECTURES 90 CACHE STRING "GPUs to hold machine code for, by compute capability: 90 is 9.0, an H100. PTX of the first serves later ones")
set(TUTTI_VERBS AUTO CACHE STRING "Build the RDMA verbs transport: AUTO, ON or OFF")
set(TUTTI_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them: address,undefined or thread")
option(TUTTI_CHECK_ALL "Under sanitizers too, build and run every test in full: what tools/check --all does" OFF)
set(TUTTI_TOGETHER "" CACHE STRING "Compile several files as one: tests, or all. Quicker where all is to be built, slower where one file has changed")
set_property(CACHE TUTTI_CUDA TUTTI_VERBS PROPERTY STRINGS AUTO ON OFF)
set_property(CACHE TUTTI_TOGETHER PROPERTY STRINGS "" tests all)

set(CMAKE_UNITY_BUILD_BATCH_SIZE 6)
if(TUTTI_TOGETHER STREQUAL "all")
  set(CMAKE_UNITY_BUILD ON)
endif()

# Sanitizers take many times as long. So they do in part, or leave out, what docs/checks.md lists.
set(TUTTI_BRIEF OFF)
if(TUTTI_SANITIZE AND NOT TUTTI_CHECK_ALL)
  set(TUTTI_BRIEF ON)
endif()

# AUTO takes what there is; ON insists.
foreach(feature TUTTI_CUDA TUTTI_VERBS)
  if(NOT ${feature} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${feature} is AUTO, ON or OFF, not \"${${feature}}\".")
  endif()
endforeach()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
