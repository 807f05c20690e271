# TUTTI_HAS_CUDA: whether the kernels are built. That takes the toolkit, nvcc, and neither a GPU nor a driver.
set(TUTTI_HAS_CUDA OFF)
if(TUTTI_CUDA STREQUAL "AUTO" AND TUTTI_SANITIZE)
  # Sanitizers see nothing of a kernel; what they can see of one, the tests run on the CPU.
  return()
endif()
if(TUTTI_CUDA STREQUAL "OFF")
  return()
endif()

# The one that is asked for, else what is on the PATH or where the toolkit puts itself.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(TUTTI_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  if(TUTTI_NVCC)
    set(ENV{CUDACXX} ${TUTTI_NVCC})  # for check_language(), which believes a CMAKE_CUDA_COMPILER that is set
  endif()
endif()
# Machine code for each, and PTX of the first, which drivers compile for whatever comes later.
list(GET TUTTI_CUDA_ARCHITECTURES 0 TUTTI_CUDA_OLDEST)
set(CMAKE_CUDA_ARCHITECTURES ${TUTTI_CUDA_OLDEST}-virtual)
foreach(architecture IN LISTS TUTTI_CUDA_ARCHITECTURES)
  list(APPEND CMAKE_CUDA_ARCHITECTURES ${architecture}-real)
endforeach()

set(why "")
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  find_package(CUDAToolkit QUIET)
  # Parameters of kernels above 4 KiB are from 12.1 on.
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.1)
    set(why "${CMAKE_CUDA_COMPILER} is of CUDA ${CMAKE_CUDA_COMPILER_VERSION}, and 12.1 is the oldest that will do")
  elseif(NOT TARGET CUDA::cudart_static)
    set(why "there is no libcudart_static.a beside ${CMAKE_CUDA_COMPILER}")
  endif()
else()
  set(why "there is no nvcc that works on the PATH or in /usr/local/cuda/bin, nor do CUDACXX or CMAKE_CUDA_COMPILER name one")
endif()

if(NOT why)
  set(TUTTI_HAS_CUDA ON)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know that nvcc has C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
elseif(TUTTI_CUDA STREQUAL "ON")
  message(FATAL_ERROR "TUTTI_CUDA=ON: ${why}.\nInstall NVIDIA's CUDA toolkit, or configure with TUTTI_CUDA=AUTO to do without.")
else()
  message(STATUS "Without CUDA: ${why}")
endif()
