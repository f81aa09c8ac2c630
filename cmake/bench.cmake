# SPDX-License-Identifier: BSD-3-Clause
# Runs each benchmark (*_bench) in FOLDER, one after the other, with ARGS.
separate_arguments(ARGS)
file(GLOB candidates LIST_DIRECTORIES false "${FOLDER}/*_bench")
if(NOT candidates)
  message(FATAL_ERROR "no benchmark in ${FOLDER}; each is a program whose name ends in _bench")
endif()
foreach(program IN LISTS candidates)
  execute_process(COMMAND "${program}" ${ARGS} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
