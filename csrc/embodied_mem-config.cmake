# find_package(embodied_mem): the target embodied_mem::core.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/embodied_mem-targets.cmake")
