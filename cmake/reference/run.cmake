# SPDX-License-Identifier: BSD-3-Clause
# cmake -P cmake/reference/run.cmake: makes build/docs/html, the reference of the installed headers. A warning is an error.
include("${CMAKE_CURRENT_LIST_DIR}/../installed_headers.cmake")
get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(out "${root}/build/docs")
file(REMOVE_RECURSE "${out}")

# The headers by the paths that programs include.
file(MAKE_DIRECTORY "${out}/include")
file(CREATE_LINK "${CMAKE_CURRENT_LIST_DIR}/main.md" "${out}/include/main.md" SYMBOLIC)
set(input "${out}/include/main.md")
foreach(header IN LISTS troupe_installed_headers)
  string(REPLACE "actors/troupe.hpp" "troupe.hpp" path "${out}/include/troupe/${header}")
  get_filename_component(folder "${path}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(CREATE_LINK "${root}/${header}" "${path}" SYMBOLIC)
  list(APPEND input "${path}")
endforeach()
list(JOIN input "\" \"" input)
file(READ "${CMAKE_CURRENT_LIST_DIR}/Doxyfile" settings)
file(WRITE "${out}/Doxyfile" "${settings}
INPUT                  = \"${input}\"
USE_MDFILE_AS_MAINPAGE = \"${out}/include/main.md\"
STRIP_FROM_PATH        = \"${out}/include\"
STRIP_FROM_INC_PATH    = \"${out}/include\"
INPUT_FILTER           = \"python3 ${CMAKE_CURRENT_LIST_DIR}/filter.py\"
OUTPUT_DIRECTORY       = \"${out}\"
")
execute_process(COMMAND doxygen "${out}/Doxyfile" COMMAND_ERROR_IS_FATAL ANY)
