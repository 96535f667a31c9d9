# Installs the library into a folder of its own and builds and runs the example against that alone; every installed
# header compiles by itself: cmake -DBUILD=... -DSOURCE=... -DFOLDER=... -DCOMPILER=... -P installed.cmake
cmake_minimum_required(VERSION 3.20)  # for the policies of if(... IN_LIST)
file(REMOVE_RECURSE ${FOLDER})
file(COPY ${SOURCE}/csrc/examples/ DESTINATION ${FOLDER}/examples)
set(run COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/prefix OUTPUT_QUIET ${run})

set(includes ${FOLDER}/prefix/include/embodied_mem)
file(GLOB_RECURSE headers RELATIVE ${includes} ${includes}/*.h)
if(NOT "memory/graph/knowledge_graph.h" IN_LIST headers)
  message(FATAL_ERROR "the header of the graph is not installed")
endif()
foreach(header ${headers})
  string(MAKE_C_IDENTIFIER ${header} name)
  file(WRITE ${FOLDER}/examples/headers/${name}.cpp "#include \"${header}\"\n#include \"${header}\"\n")
endforeach()
file(APPEND ${FOLDER}/examples/CMakeLists.txt "
file(GLOB headers headers/*.cpp)
add_library(headers OBJECT \${headers})
target_link_libraries(headers PRIVATE embodied_mem::core)
")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${FOLDER}/examples -B ${FOLDER}/build -DCMAKE_PREFIX_PATH=${FOLDER}/prefix
                -DCMAKE_CXX_COMPILER=${COMPILER} ${run})
execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/build --parallel 2 ${run})
execute_process(COMMAND ${FOLDER}/build/graph ${run})
