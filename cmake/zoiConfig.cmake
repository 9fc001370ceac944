# find_package(zoi) for C and C++: the target zoi::zoi. Lies in <prefix>/lib/cmake/zoi.
get_filename_component(zoi_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET zoi::zoi)
  add_library(zoi::zoi SHARED IMPORTED)
  set_target_properties(zoi::zoi PROPERTIES
    IMPORTED_LOCATION "${zoi_prefix}/lib/libzoi.so"
    IMPORTED_NO_SONAME ON
    INTERFACE_INCLUDE_DIRECTORIES "${zoi_prefix}/include")
endif()
