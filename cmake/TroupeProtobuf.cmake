# SPDX-License-Identifier: BSD-3-Clause
# troupe::protobuf, the library that find_package(Protobuf) has found. Its own target, protobuf::libprotobuf, may be empty: the
# package Torch makes an empty target of that name where it is found first.
if(NOT TARGET troupe::protobuf)
  add_library(troupe::protobuf INTERFACE IMPORTED)
  if(Protobuf_LIBRARIES)
    set_target_properties(troupe::protobuf PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${Protobuf_INCLUDE_DIRS}" INTERFACE_LINK_LIBRARIES "${Protobuf_LIBRARIES}")
  else() # a package of protobuf itself, which has only targets
    target_link_libraries(troupe::protobuf INTERFACE protobuf::libprotobuf)
  endif()
endif()
