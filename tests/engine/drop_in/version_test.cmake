# SPDX-License-Identifier: BSD-3-Clause
# Run by ctest with PROGRAM (late_program), LIBRARY (other_libtorch.cpp), PRELOAD and EXPECTED: the preloaded library leaves a libtorch
# of another version alone, and prints that it does.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../../support/expect.cmake")
set(ENV{LD_PRELOAD} "${PRELOAD}")
execute_process(COMMAND "${PROGRAM}" "${LIBRARY}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "status ${status}:\n${output}")
endif()
expect("troupe: built for PyTorch [0-9.]+, but this one is ${EXPECTED}: passes stay on its engine")
