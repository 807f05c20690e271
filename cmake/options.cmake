option(TUTTI_TESTS "Build the tests" ON)
option(TUTTI_BENCH "Build the micro-benchmarks" ON)
set(TUTTI_CUDA AUTO CACHE STRING "Build the CUDA kernels: AUTO, ON or OFF")
set(TUTTI_VERBS AUTO CACHE STRING "Build the RDMA verbs transport: AUTO, ON or OFF")
set(TUTTI_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them: address,undefined or thread")
set_property(CACHE TUTTI_CUDA TUTTI_VERBS PROPERTY STRINGS AUTO ON OFF)

# AUTO takes what there is, which is neither today; ON insists.
foreach(feature TUTTI_CUDA TUTTI_VERBS)
  if(${feature} STREQUAL "ON")
    message(FATAL_ERROR "${feature}=ON: this version of tutti does not have that part yet. Configure with ${feature}=AUTO.")
  elseif(NOT ${feature} MATCHES "^(AUTO|OFF)$")
    message(FATAL_ERROR "${feature} is AUTO, ON or OFF, not \"${${feature}}\".")
  endif()
endforeach()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
