// Binds the event log. The GIL is released while it waits for the disk.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/module.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "memory/storage/event_log.h"

namespace py = pybind11;

namespace embodied_mem {
namespace {

SyncPolicy ParsePolicy(const std::string& policy) {
  if (policy == "always") return SyncPolicy::kAlways;
  if (policy == "interval") return SyncPolicy::kInterval;
  if (policy == "never") return SyncPolicy::kNever;
  throw InvalidInputError("fsync: expected \"always\", \"interval\" or \"never\", got \"" + policy + "\"");
}

std::unique_ptr<EventLog> MakeLog(const std::string& folder, const std::string& scope, const std::string& fsync,
                                  std::int64_t interval_ms, std::size_t segment_bytes, bool read_only, bool repair) {
  return std::make_unique<EventLog>(folder, scope,
                                    LogOptions{ParsePolicy(fsync), interval_ms, segment_bytes, read_only, repair});
}

py::list Read(const EventLog& log, std::size_t segment) {
  std::vector<std::tuple<std::uint64_t, std::uint32_t, std::string>> records;
  {
    const py::gil_scoped_release release;
    log.Read(segment,
             [&](const LogRecord& record) { records.emplace_back(record.sequence, record.kind, record.payload); });
  }
  py::list answer;
  for (const auto& [sequence, kind, payload] : records)
    answer.append(py::make_tuple(sequence, kind, py::bytes(payload)));
  return answer;
}

}  // namespace

void BindStorage(py::module_& parent) {
  py::module_ module = parent.def_submodule("storage", "Durable files.");
  module.def(
      "crc32c", [](const py::bytes& bytes, std::uint32_t before) { return Crc32c(std::string_view(bytes), before); },
      py::arg("bytes"), py::arg("before") = 0);
  const auto released = py::call_guard<py::gil_scoped_release>();
  py::class_<EventLog::Ticket>(module, "Ticket").def_readonly("sequence", &EventLog::Ticket::sequence);
  py::class_<LogDamage>(module, "LogDamage")
      .def_readonly("file", &LogDamage::file)
      .def_readonly("offset", &LogDamage::offset)
      .def_readonly("num_bytes", &LogDamage::num_bytes)
      .def_readonly("reason", &LogDamage::reason)
      .def_readonly("cut", &LogDamage::cut);
  py::class_<EventLog>(module, "EventLog", "See embodied_mem.memory.store.")
      .def(py::init(&MakeLog), py::arg("folder"), py::arg("scope"), py::arg("fsync"), py::arg("interval_ms"),
           py::arg("segment_bytes"), py::arg("read_only"), py::arg("repair"))
      .def("recover", &EventLog::Recover, py::arg("covered"), released)
      .def(
          "enqueue",
          [](EventLog& self, std::uint32_t kind, const py::bytes& payload) {
            return self.Enqueue(kind, std::string_view(payload));
          },
          py::arg("kind"), py::arg("payload"))
      .def("wait", &EventLog::Wait, py::arg("ticket"), released)
      .def("sync", &EventLog::Sync, released)
      .def("roll", &EventLog::Roll, released)
      .def("remove_oldest", &EventLog::RemoveOldest, py::arg("covered"), released)
      .def("read", &Read, py::arg("segment"))
      .def("close", &EventLog::Close, released)
      .def_property_readonly("damage", &EventLog::damage)
      .def_property_readonly("acknowledged", &EventLog::acknowledged)
      .def_property_readonly("segments", &EventLog::segments);
}

}  // namespace embodied_mem
