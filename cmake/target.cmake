# Warnings, sanitizers and language flags of everything that is ours, as one usage requirement.
add_library(tutti_build INTERFACE)
target_compile_options(tutti_build INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wnon-virtual-dtor;-Wno-missing-field-initializers;-ffp-contract=off>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wshadow=local>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-ffp-contract=off>)
if(TUTTI_WERROR)
  target_compile_options(tutti_build INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings;-Xcompiler=-Werror>)
endif()
if(TUTTI_SANITIZE)
  target_compile_options(tutti_build INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${TUTTI_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
  if(TUTTI_SANITIZE MATCHES undefined)
    # Up to a quarter of the time to compile, for little: AddressSanitizer stops at a null pointer that is used, and no class
    # here is cast down to another.
    target_compile_options(tutti_build INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,vptr>)
  endif()
  target_link_options(tutti_build INTERFACE -fsanitize=${TUTTI_SANITIZE})
  # Dozens of programs of 50 MB each: lld takes half of the time.
  find_program(TUTTI_LLD ld.lld)
  if(TUTTI_LLD)
    target_link_options(tutti_build INTERFACE -fuse-ld=lld)
  endif()
endif()
if(TUTTI_BRIEF)
  target_compile_definitions(tutti_build INTERFACE TUTTI_BRIEF)
endif()

# tutti_library(NAME SOURCES ... USES targets...): one folder of src/ as an object library.
function(tutti_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(tutti_${name} OBJECT ${ARG_SOURCES})
  # Hidden: the shared library exports what TUTTI_API marks, and calls inside it need no PLT.
  set_target_properties(tutti_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(tutti_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(tutti_${name} PUBLIC ${ARG_USES} PRIVATE tutti_build)
endfunction()

# What a test does itself is short, and optimising it much takes longer. GCC 12 then warns of overflows in std::string that
# there are not (its bug 105651).
set(TUTTI_TEST_OPTIONS -O1 $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
if(TUTTI_SANITIZE)
  set(TUTTI_TEST_OPTIONS -O0)
  if(TUTTI_BRIEF AND TUTTI_SANITIZE MATCHES undefined)
    list(APPEND TUTTI_TEST_OPTIONS -fno-sanitize=undefined)  # what is tested is what it watches
  endif()
endif()

# Seconds for a whole test program under sanitizers. Each wait in a test has a deadline of its own, so this only ends what
# none of them has caught.
set(TUTTI_WHOLE_TIMEOUT 900)
if(TUTTI_CHECK_ALL)
  set(TUTTI_WHOLE_TIMEOUT 14400)
endif()

# How the code of tests is compiled.
function(tutti_compile_as_test target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PRIVATE GTest::gtest tutti_build)
  target_compile_options(${target} PRIVATE ${TUTTI_TEST_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM ${TUTTI_TEST_HEADERS})
endfunction()

# tutti_test_part(NAME SOURCES ... USES targets...): what several test programs have in common, compiled once. They list
# tutti_NAME in USES.
function(tutti_test_part name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(tutti_${name} OBJECT ${ARG_SOURCES})
  target_link_libraries(tutti_${name} PRIVATE ${ARG_USES})
  tutti_compile_as_test(tutti_${name})
endfunction()

# tutti_test(NAME SOURCES ... USES targets... LABELS ... [THREADS] PREFIX ... TIMEOUT seconds SHARDS n): one GoogleTest program.
# Each case is a ctest test, whose name begins with the prefix; under sanitizers, where starting a process takes longer than most
# cases, the program is one test, or as many as it has shards. docs/checks.md says which programs sanitizers leave out.
# Programs that start threads say so: THREADS. Where another one starts a thread, that case fails (tests/threadless.h).
function(tutti_test name)
  cmake_parse_arguments(ARG "THREADS" "TIMEOUT;PREFIX;SHARDS" "SOURCES;USES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_USES} GTest::gtest_main)
  tutti_compile_as_test(${name})
  if(NOT TUTTI_SANITIZE AND NOT ARG_THREADS AND NOT "gpu" IN_LIST ARG_LABELS)  # CUDA has threads of its own
    target_link_libraries(${name} PRIVATE tutti_threadless)
  endif()

  if(TUTTI_BRIEF AND (ARG_LABELS MATCHES "slow|gpu" OR (TUTTI_SANITIZE MATCHES thread AND NOT ARG_THREADS)))
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  add_dependencies(checked ${name})

  if(NOT TUTTI_SANITIZE)
    if(NOT ARG_TIMEOUT)
      set(ARG_TIMEOUT 120)
    endif()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${ARG_PREFIX}" DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
    return()
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  # Programs in shards take longest: COST lets them begin first, so that none is left running alone at the end.
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(test ${name})
    if(ARG_SHARDS GREATER 1)
      set(test ${name}.${shard}_of_${ARG_SHARDS})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${name})
    set_tests_properties(${test} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${TUTTI_WHOLE_TIMEOUT} COST ${ARG_SHARDS}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
