# SPDX-License-Identifier: BSD-3-Clause
# troupe::protobuf, the library that find_package(Protobuf) has found. Its own target, protobuf::libprotobuf, may be empty: the
# package Torch makes an empty target of that name where it is found first.
# A protobuf that was found before libtorch may be that of a libtorch.
foreach(part IN ITEMS Protobuf_INCLUDE_DIR Protobuf_LIBRARY Protobuf_PROTOC_EXECUTABLE)
  string(REGEX REPLACE "/+(include|(lib|bin)/[^/]*)$" "" protobuf_prefix "${${part}}")
  if(${part} AND EXISTS "${protobuf_prefix}/lib/libtorch_cpu.so" AND NOT EXISTS "${protobuf_prefix}/lib/libprotobuf.so")
    message(FATAL_ERROR "expected the system's protobuf, got that of libtorch: ${part} is '${${part}}'. Call find_package(troupe) before \
find_package(Protobuf), or set ${part}, and configure in a new build folder")
  endif()
endforeach()
if(NOT TARGET troupe::protobuf)
  add_library(troupe::protobuf INTERFACE IMPORTED)
  if(Protobuf_LIBRARIES)
    set_target_properties(troupe::protobuf PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${Protobuf_INCLUDE_DIRS}" INTERFACE_LINK_LIBRARIES "${Protobuf_LIBRARIES}")
  else() # a package of protobuf itself, which has only targets
    target_link_libraries(troupe::protobuf INTERFACE protobuf::libprotobuf)
  endif()
endif()
