# SPDX-License-Identifier: BSD-3-Clause
# Run by ctest: fails when a line of a file under ROOT breaks RULE.
if(RULE STREQUAL "engine_knows_no_actor_runtime")
  # The whole algorithm is tested without an actor system, so the engine must not need one.
  set(where engine/*)
  set(pattern "#include <caf/(actor|event|scoped|stateful|typed|blocking|local|scheduled|response|spawn|send|request|io/|openssl/|all)|#include <troupe/(actors|devices)/")
elseif(RULE STREQUAL "no_machine_paths")
  # A home or working folder of one person does not exist on other machines.
  set(where)
  set(pattern "(^|[^A-Za-z0-9_.}-])/(home|root|work|Users)/[A-Za-z0-9_.]")
else()
  message(FATAL_ERROR "no rule '${RULE}'")
endif()

find_program(git git)
execute_process(COMMAND "${git}" -C "${ROOT}" ls-files -co --exclude-standard -- ${where}
  OUTPUT_VARIABLE files OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
if(status EQUAL 0)
  string(REPLACE "\n" ";" files "${files}")
else() # without git: the sources are an unpacked archive
  file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/*")
  list(FILTER files EXCLUDE REGEX "^(build|out|\\.venv|\\.git)/")
  if(where)
    list(FILTER files INCLUDE REGEX "^engine/")
  endif()
endif()

set(hits)
foreach(name IN LISTS files)
  if(EXISTS "${ROOT}/${name}")
    file(STRINGS "${ROOT}/${name}" lines REGEX "${pattern}")
    foreach(line IN LISTS lines)
      string(APPEND hits "\n  ${name}: ${line}")
    endforeach()
  endif()
endforeach()
list(LENGTH files count)
if(count EQUAL 0)
  message(FATAL_ERROR "found no files to check under ${ROOT}")
elseif(hits)
  message(FATAL_ERROR "${RULE} is broken by:${hits}")
endif()
message(STATUS "${RULE}: ${count} files hold to it")
