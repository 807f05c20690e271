# Warnings, sanitizers and language flags of everything that is ours, as one usage requirement.
add_library(tutti_build INTERFACE)
target_compile_options(tutti_build INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wnon-virtual-dtor;-Wno-missing-field-initializers;-ffp-contract=off>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wshadow=local>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-ffp-contract=off>)
if(TUTTI_SANITIZE)
  target_compile_options(tutti_build INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${TUTTI_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
  if(TUTTI_SANITIZE MATCHES undefined)
    # Up to a quarter of the time to compile, for little: AddressSanitizer stops at a null pointer that is used, and no class
    # here is cast down to another.
    target_compile_options(tutti_build INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,vptr>)
  endif()
  target_link_options(tutti_build INTERFACE -fsanitize=${TUTTI_SANITIZE})
endif()

# tutti_library(NAME SOURCES ... USES targets...): one folder of src/ as an object library.
function(tutti_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(tutti_${name} OBJECT ${ARG_SOURCES})
  set_target_properties(tutti_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(tutti_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(tutti_${name} PUBLIC ${ARG_USES} PRIVATE tutti_build)
endfunction()

# tutti_test(NAME SOURCES ... USES targets... LABELS ... PREFIX ...): one GoogleTest program, each case a ctest test, whose
# name begins with the prefix.
function(tutti_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;PREFIX" "SOURCES;USES;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
    if(TUTTI_SANITIZE)
      set(ARG_TIMEOUT 400)
    endif()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${ARG_USES} GTest::gtest GTest::gtest_main tutti_build)
  if(TUTTI_SANITIZE)  # what a test itself does is short: optimising it takes longer, half the time of these files
    target_compile_options(${name} PRIVATE -O0)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${ARG_PREFIX}" PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
