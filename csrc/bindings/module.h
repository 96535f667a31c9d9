// What each file of bindings/ adds to the extension module.
#pragma once

#include <pybind11/pybind11.h>

namespace embodied_mem {

void BindAlfred(pybind11::module_& module);
void BindAlfworld(pybind11::module_& module);
void BindHabitat(pybind11::module_& module);
void BindMemory(pybind11::module_& module);
void BindModels(pybind11::module_& module);
void BindStorage(pybind11::module_& module);
void BindVectors(pybind11::module_& module);
void BindPartnr(pybind11::module_& module);

}  // namespace embodied_mem
