# SPDX-License-Identifier: BSD-3-Clause
# What pip puts into the wheel of the Python package beside its Python files. pip's backend, scikit-build-core, sets SKBUILD.
#   TORCHTROUPE_BUILT  the shared library, where it is built already; otherwise it is built here
add_custom_target(torchtroupe_wheel)
set(torchtroupe_library "${TORCHTROUPE_BUILT}")
if(NOT torchtroupe_library)
  message(NOTICE "torchtroupe: built with CAF, protobuf and spdlog out of Debian's packages, which `make deps` installs")
  if(NOT TROUPE_TORCH_DIR)
    find_package(Python REQUIRED COMPONENTS Interpreter)
    execute_process(COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/python/torch_minor.py"
      OUTPUT_VARIABLE TROUPE_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  endif()
  add_dependencies(torchtroupe_wheel torchtroupe_native)
  set(torchtroupe_library $<TARGET_FILE:torchtroupe_native>)
endif()
install(FILES ${torchtroupe_library} DESTINATION torchtroupe COMPONENT torchtroupe)
install(FILES python/torchtroupe.pth python/torchtroupe_start.py DESTINATION . COMPONENT torchtroupe)
install(FILES LICENSE DESTINATION "${SKBUILD_METADATA_DIR}/licenses" COMPONENT torchtroupe)
