# SPDX-License-Identifier: BSD-3-Clause
# Run by ctest with PROGRAM (late_program), LIBRARY (one_pass), PRELOAD and FOLDER: where the preloaded library is found, and that it
# reports in each case.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../../support/expect.cmake")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}/elsewhere")
file(CREATE_LINK "${PRELOAD}" "${FOLDER}/elsewhere/link.so" SYMBOLIC)
set(ENV{TROUPE_REPORT} 1)

# Sets `output`. `folder` is where the program starts.
function(run preload folder)
  set(ENV{LD_PRELOAD} "${preload}")
  execute_process(COMMAND "${PROGRAM}" "${LIBRARY}" ${ARGN} WORKING_DIRECTORY "${folder}"
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(ENV{LD_PRELOAD} "")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "LD_PRELOAD=${preload}: status ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

get_filename_component(beside "${PRELOAD}" DIRECTORY)
get_filename_component(above "${beside}" DIRECTORY)
file(RELATIVE_PATH relative "${above}" "${PRELOAD}")
set(ran "gradients right\n.*troupe: 1 backward passes, and 0 left to PyTorch's engine|troupe: 1 backward passes.*gradients right")
run("${PRELOAD}" "${above}")
expect("${ran}")
run("${relative}" "${above}")
expect("${ran}")
run("${FOLDER}/elsewhere/link.so" "${above}")
expect("${ran}")
run("elsewhere/link.so" "${FOLDER}")
expect("${ran}")

# Without libtroupe.so beside it.
file(COPY "${PRELOAD}" DESTINATION "${FOLDER}/alone")
get_filename_component(name "${PRELOAD}" NAME)
run("${FOLDER}/alone/${name}" "${above}")
expect("gradients right")
expect("libtroupe.so: .*: passes stay on PyTorch's engine")
expect("troupe: 0 backward passes: libtroupe.so is not used, as said above, and PyTorch's engine ran all passes")

run("${PRELOAD}" "${above}" deepbind)
expect("gradients right")
expect("troupe: 0 backward passes: libtorch was loaded with RTLD_DEEPBIND, which hides libtroupe_preload.so, and PyTorch's engine ran all")
