# SPDX-License-Identifier: BSD-3-Clause
# The preloaded library leaves a PyTorch of another version alone, and prints that it does. The test runs PROGRAM with PRELOAD.
# PROGRAM finds the libtorch of TORCH by links in FOLDER, where a version.py names another version.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}/torch/lib")
file(WRITE "${FOLDER}/torch/version.py" "__version__ = '9.9.0+cpu'\n")
file(GLOB libraries "${TORCH}/lib/*.so*")
foreach(library IN LISTS libraries)
  get_filename_component(name "${library}" NAME)
  file(CREATE_LINK "${library}" "${FOLDER}/torch/lib/${name}" SYMBOLIC)
endforeach()
if(EXISTS "${TORCH}/../nvidia") # libtorch looks for some of its libraries there
  file(CREATE_LINK "${TORCH}/../nvidia" "${FOLDER}/nvidia" SYMBOLIC)
endif()
set(ENV{LD_LIBRARY_PATH} "${FOLDER}/torch/lib")
set(ENV{LD_PRELOAD} "${PRELOAD}")
execute_process(COMMAND "${PROGRAM}" --run_test=drop_in_preload/exceptions_pass_through_the_preloaded_library
  RESULT_VARIABLE code ERROR_VARIABLE text OUTPUT_VARIABLE text)
if(NOT code EQUAL 0 OR NOT text MATCHES "built for PyTorch [0-9.]+, but this one has __version__ = '9.9.0")
  message(FATAL_ERROR "exit code ${code}; expected a warning that the versions differ, got:\n${text}")
endif()
