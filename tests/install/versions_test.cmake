# SPDX-License-Identifier: BSD-3-Clause
# Run by ctest with SOURCE, SCRATCH, GENERATOR, CXX and TORCH: which versions of libtorch troupe is built with, and that a build folder
# is bound to one.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake")
unset(ENV{TROUPE_TORCH_DIR})
unset(ENV{CMAKE_PREFIX_PATH})
file(REMOVE_RECURSE "${SCRATCH}")

# The libtorch of TORCH, but for its version.
foreach(minor IN ITEMS 10 12 13)
  file(WRITE "${SCRATCH}/${minor}/include/ATen/ATen.h" "")
  file(WRITE "${SCRATCH}/${minor}/include/torch/headeronly/version.h"
    "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR ${minor}\n#define TORCH_VERSION_PATCH 0\n")
  file(MAKE_DIRECTORY "${SCRATCH}/${minor}/include/torch/csrc/api/include")
  file(CREATE_LINK "${TORCH}/lib" "${SCRATCH}/${minor}/lib" SYMBOLIC)
endforeach()

function(configure minor expected)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${SCRATCH}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DTROUPE_TESTS=OFF
    -DTROUPE_BENCH=OFF -DTROUPE_CUDA=OFF -DTROUPE_TORCH_DIR=${SCRATCH}/${minor} ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(NOT status EQUAL expected)
    message(FATAL_ERROR "configure with 2.${minor}: expected the status ${expected}, got ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

configure(10 1)
expect("unsuitable version \"2.10.0\", required range is \"2.11...<2.16\"")
configure(12 0)
configure(13 1)
expect("'${SCRATCH}/build' was made for libtorch 2.12.0, but '${SCRATCH}/13' has 2.13.0 by now. Remove the folder")
configure(12 1 -DTROUPE_TORCH=2.15.0)
expect("TROUPE_TORCH is '2.15.0', but '${SCRATCH}/12' has libtorch 2.12.0")
configure(12 0 -DTROUPE_TORCH=)

execute_process(COMMAND ${CMAKE_COMMAND} -E env TROUPE_TORCH=2.10.0 sh ${SOURCE}/cmake/deps.sh
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
expect("^deps: TROUPE_TORCH is '2.10.0'; expected a version out of cmake/libtorch.txt: 2[.][0-9. ]+\n$")
