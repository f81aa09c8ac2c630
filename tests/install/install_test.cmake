# SPDX-License-Identifier: BSD-3-Clause
# Run by ctest with BUILD, SCRATCH, CONSUMER, GENERATOR, CXX, LIBDIR and SANITIZE.
set(prefix "${SCRATCH}/prefix")
set(consumer "${SCRATCH}/consumer")
file(REMOVE_RECURSE "${prefix}" "${consumer}")
set(flags -DCMAKE_BUILD_TYPE=Debug)
if(SANITIZE)
  list(APPEND flags -DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE})
endif()
# The place of libtorch must come from the installed package alone.
unset(ENV{TROUPE_TORCH_DIR})

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  message(STATUS "${what}: done")
endfunction()

run("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run("configure" ${CMAKE_COMMAND} -S ${CONSUMER} -B ${consumer} -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${CXX} -Dtroupe_DIR=${prefix}/${LIBDIR}/cmake/troupe ${flags})
run("build" ${CMAKE_COMMAND} --build ${consumer})
file(GLOB programs "${consumer}/*_consumer")
foreach(program IN LISTS programs)
  get_filename_component(name ${program} NAME)
  run("${name}" ${program})
endforeach()
