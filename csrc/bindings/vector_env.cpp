#include "bindings/vector_env.h"

#include "core/error.h"

namespace py = pybind11;

namespace embodied_mem {

std::string_view CommandFromPython(py::handle object, std::size_t env_index) {
  if (!PyUnicode_Check(object.ptr())) {
    throw InvalidInputError("actions[" + std::to_string(env_index) + "]: expected a str, got " +
                            std::string(py::str(py::type::handle_of(object).attr("__name__"))));
  }
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) {  // lone surrogates
    PyErr_Clear();
    return "?";
  }
  return {text, static_cast<std::size_t>(size)};
}

py::tuple CommandsFromPython(const py::object& actions, std::vector<std::string_view>* commands) {
  if (PyUnicode_Check(actions.ptr()))
    throw InvalidInputError("actions: expected a sequence of str, one per env, got one str");
  PyObject* sequence = PySequence_Tuple(actions.ptr());
  if (sequence == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
    PyErr_Clear();
    throw InvalidInputError("actions: expected a sequence of str, one per env, got " +
                            std::string(py::str(py::type::handle_of(actions).attr("__name__"))));
  }
  auto held = py::reinterpret_steal<py::tuple>(sequence);
  commands->clear();
  for (std::size_t i = 0; i < held.size(); ++i)
    commands->push_back(CommandFromPython(PyTuple_GET_ITEM(sequence, static_cast<Py_ssize_t>(i)), i));
  return held;
}

py::str TextToPython(const std::string& text) {
  PyObject* object = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(object);
}

}  // namespace embodied_mem
