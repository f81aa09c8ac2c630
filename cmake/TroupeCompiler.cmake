# SPDX-License-Identifier: BSD-3-Clause
# Language, warnings, sanitizers and ccache for everything that is built here. The presets without sanitizers use
# clang++. clang++ needs 0.6 of g++'s time for the libraries and half of g++'s time for the tests. clang++ reads
# precompiled headers faster, and a precompiled header of clang++ has the template instances that each unit would make
# otherwise. The programs are equally fast. The presets with sanitizers use g++. Both compilers build without warnings.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# -fPIC for everything. CMake's property would give -fPIE to programs, and one precompiled header could not serve
# libraries and programs alike.
add_compile_options(-fPIC -fno-semantic-interposition)
add_compile_options(-Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12 mistakes the inlined std::string operator+ for an overflow (GCC's bugs 105329 and 105651).
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  add_compile_options(-Wthread-safety)  # messages/mutex.hpp
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 19)
    add_compile_options(-Wno-missing-designated-field-initializers)  # {.deadline = 5s} leaves the other fields as they are
  endif()
  find_program(TROUPE_LLD ld.lld)
  if(TROUPE_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()
if(TROUPE_WERROR)
  add_compile_options(-Werror)
endif()
if(TROUPE_FUZZ)
  # libtorch and CAF are not instrumented and have no type information of troupe's classes: `vptr` and `function` need it. Headers of CAF
  # bind references to null pointers that nothing reads; AddressSanitizer finds those that something reads.
  set(fuzz_flags -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize=vptr,function,null -fno-sanitize-recover=undefined)
  add_compile_options(${fuzz_flags} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined -fno-sanitize=vptr,function,null)
endif()
if(TROUPE_SANITIZE)
  add_compile_options(-fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TROUPE_SANITIZE})
  set(TROUPE_SANITIZER_ENVIRONMENT # environment of every test
    "ASAN_OPTIONS=allocator_may_return_null=1"
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp:report_mutex_bugs=0:allocator_may_return_null=1"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp")
endif()

if(TROUPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TROUPE_CCACHE_PROGRAM ccache)
  if(TROUPE_CCACHE_PROGRAM)
    # The settings that ccache's manual asks for with precompiled headers, and a base folder, so that the results of one
    # build folder serve the others.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_PCH_EXTSUM=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${TROUPE_CCACHE_PROGRAM})
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      add_compile_options(-fpch-preprocess)
    else()
      add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
    endif()
  endif()
endif()
