// The Python module `_native`: conversions only. See _native.pyi for what each call means.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <cstring>
#include <optional>

#include "device/cpu/arch.h"
#include "kernels/registry.h"
#include "plan/file.h"
#include "plan/plan.h"
#include "run/profile.h"
#include "run/session.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using zoi::Program;
using Ref = std::optional<std::pair<int32_t, int64_t>>;

std::vector<int64_t> words_of(const zoi::Family& family, const nb::dict& problem, const std::string& step) {
  std::vector<int64_t> words(static_cast<size_t>(family.problem_bytes / 8), 0);
  size_t known = 0, at = 0;
  for (int64_t f = 0; f < family.field_count; ++f) {
    const zoi::Field& field = family.fields[f];
    if (problem.contains(field.name)) {
      ++known;
      nb::object value = problem[field.name];
      std::vector<nb::object> items;
      if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value))
        for (nb::handle item : value) items.push_back(nb::borrow(item));
      else
        items.push_back(value);
      if (static_cast<int64_t>(items.size()) > field.count)
        throw nb::value_error(
            ("step '" + step + "': field '" + field.name + "' takes at most " + std::to_string(field.count) + " values")
                .c_str());
      for (size_t i = 0; i < items.size(); ++i)
        words[at + i] = field.real ? std::bit_cast<int64_t>(nb::cast<double>(items[i])) : nb::cast<int64_t>(items[i]);
    }
    at += static_cast<size_t>(field.count);
  }
  if (known != problem.size()) {
    for (auto [key, value] : problem) {
      bool found = false;
      for (int64_t f = 0; f < family.field_count; ++f) found |= nb::cast<std::string>(key) == family.fields[f].name;
      if (!found)
        throw nb::value_error(
            ("step '" + step + "': family '" + family.name + "' has no field '" + nb::cast<std::string>(key) + "'")
                .c_str());
    }
  }
  return words;
}

nb::dict problem_of(const zoi::Step& step) {
  nb::dict result;
  size_t at = 0;
  for (int64_t f = 0; f < step.family->field_count; ++f) {
    const zoi::Field& field = step.family->fields[f];
    nb::list values;
    for (int64_t i = 0; i < field.count; ++i, ++at) {
      if (field.real)
        values.append(std::bit_cast<double>(step.problem[at]));
      else
        values.append(step.problem[at]);
    }
    result[field.name] = field.count == 1 ? nb::object(values[0]) : nb::object(values);
  }
  return result;
}

zoi::Port port_of(const std::string& name, const std::string& dtype, std::vector<int64_t> shape, int32_t buffer,
                  int64_t offset) {
  zoi::Port port{name, zoi::parse_dtype(dtype), std::move(shape), buffer, offset, 0};
  int64_t bytes = zoi::dtype_bytes(port.dtype);
  for (int64_t size : port.shape)
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) throw zoi::Error("'" + name + "': impossible shape");
  port.bytes = bytes;
  return port;
}

nb::list ports(const std::vector<zoi::Port>& list) {
  nb::list result;
  for (const zoi::Port& port : list) {
    nb::dict item;
    item["name"] = port.name;
    item["dtype"] = zoi::dtype_name(port.dtype);
    item["shape"] = nb::tuple(nb::cast(port.shape));
    result.append(item);
  }
  return result;
}

nb::dict memory_dict(const zoi::MemoryInfo& m) {
  nb::dict result;
  result["weights"] = m.weights;
  result["mapped"] = m.mapped;
  result["arena"] = m.arena;
  result["scratch"] = m.scratch;
  result["bookkeeping"] = m.bookkeeping;
  result["total"] = m.total();
  result["lower_bound"] = m.lower_bound;
  return result;
}

nb::list steps_of(const zoi::Plan& plan) {
  constexpr const char* kPlaces[] = {"none", "arena", "weights", "mapped"};
  constexpr const char* kRoles[] = {"in", "weight", "out"};
  nb::list result;
  for (size_t s = 0; s < plan.steps().size(); ++s) {
    const zoi::Step& step = plan.program().steps[s];
    const zoi::PlannedStep& planned = plan.steps()[s];
    nb::list operands;
    for (size_t i = 0; i < planned.operands.size(); ++i) {
      const zoi::Location& at = planned.operands[i];
      if (at.place == zoi::Place::none) continue;
      nb::dict operand;
      operand["name"] = step.family->operands[i].name;
      operand["role"] = kRoles[static_cast<int>(step.family->operands[i].role)];
      operand["buffer"] = step.operands[i].buffer;
      operand["place"] = kPlaces[static_cast<int>(at.place)];
      operand["offset"] = at.place == zoi::Place::plain ? step.operands[i].offset : at.offset;
      operand["bytes"] = at.bytes;
      operands.append(operand);
    }
    nb::dict item;
    item["name"] = step.name;
    item["family"] = step.family->name;
    item["kernel"] = planned.kernel->name;
    item["arch"] = zoi::arch_name(planned.kernel->arch);
    item["problem"] = problem_of(step);
    item["operands"] = operands;
    item["flops"] = planned.flops;
    item["slices"] = planned.slices;
    item["scratch"] = planned.scratch;
    item["why"] = planned.why;
    result.append(item);
  }
  return result;
}

nb::list kernel_list() {
  nb::list result;
  for (const zoi::Family* family : zoi::families()) {
    if (!family) continue;
    for (int64_t i = 0; i < family->kernel_count; ++i) {
      const zoi::KernelEntry& entry = family->kernels[i];
      nb::dict item;
      const bool runs = entry.kernel && entry.kernel->arch <= zoi::host_arch();
      item["family"] = family->name;
      item["name"] = entry.name;
      item["arch"] = entry.kernel ? zoi::arch_name(entry.kernel->arch) : "";
      item["available"] = runs;
      item["reason"] = runs ? "" : entry.kernel ? "this processor lacks it" : "not in this build";
      item["exact"] = entry.kernel && entry.kernel->exact;
      result.append(item);
    }
  }
  return result;
}

nb::list family_list() {
  constexpr const char* kRoles[] = {"in", "weight", "out"};
  nb::list result;
  for (const zoi::Family* family : zoi::families()) {
    if (!family) continue;
    nb::list operands, fields;
    for (int64_t i = 0; i < family->operand_count; ++i) {
      nb::dict operand;
      operand["name"] = family->operands[i].name;
      operand["role"] = kRoles[static_cast<int>(family->operands[i].role)];
      operand["optional"] = family->operands[i].optional;
      operands.append(operand);
    }
    for (int64_t i = 0; i < family->field_count; ++i) {
      nb::dict field;
      field["name"] = family->fields[i].name;
      field["count"] = family->fields[i].count;
      field["real"] = family->fields[i].real;
      fields.append(field);
    }
    nb::dict item;
    item["name"] = family->name;
    item["operands"] = operands;
    item["fields"] = fields;
    result.append(item);
  }
  return result;
}

size_t find_port(const std::vector<zoi::Port>& list, const std::string& name, const char* what) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].name == name) return i;
  throw nb::key_error((std::string("no ") + what + " '" + name + "'").c_str());
}

nb::object view(nb::handle session, const zoi::Port& port, std::byte* data) {
  nb::module_ numpy = nb::module_::import_("numpy");
  nb::object flat =
      nb::cast(nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(data, {static_cast<size_t>(port.bytes)}, session));
  return flat.attr("view")(zoi::dtype_name(port.dtype)).attr("reshape")(nb::tuple(nb::cast(port.shape)));
}

}  // namespace

NB_MODULE(_native, m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const zoi::Error& e) {
      PyErr_SetString(PyExc_ValueError, e.what());
    }
  });
  m.def("host_arch", [] { return zoi::arch_name(zoi::host_arch()); });
  m.def("archs", [] {
    nb::list result;
    for (int i = static_cast<int>(zoi::host_arch()); i >= 0; --i) result.append(zoi::arch_name(zoi::Arch(i)));
    return result;
  });
  m.def("kernels", kernel_list);
  m.def("families", family_list);
  m.def("features", [] {
    nb::dict result;
    for (const zoi::Feature& feature : zoi::cpu_features()) result[feature.name] = feature.present;
    return result;
  });

  nb::class_<Program>(m, "Program")
      .def(
          "__init__", [](Program* self, const std::string& name) { new (self) Program{.name = name}; }, "name"_a)
      .def(
          "buffer",
          [](Program& p, int64_t size, const std::string& name) {
            p.buffers.push_back({.name = name, .bytes = size});
            return p.buffers.size() - 1;
          },
          "size"_a, "name"_a = "")
      .def(
          "constant",
          [](Program& p, nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> data, const std::string& name) {
            p.buffers.push_back({.name = name,
                                 .bytes = static_cast<int64_t>(data.nbytes()),
                                 .constant = static_cast<const std::byte*>(data.data()),
                                 .is_constant = true});
            p.owners.push_back(std::shared_ptr<const void>(new nb::ndarray<nb::ro>(data), [](const void* held) {
              nb::gil_scoped_acquire gil;
              delete static_cast<const nb::ndarray<nb::ro>*>(held);
            }));
            return p.buffers.size() - 1;
          },
          "data"_a, "name"_a = "")
      .def(
          "input",
          [](Program& p, const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
             int32_t buffer) {
            p.inputs.push_back(port_of(name, dtype, std::move(shape), buffer, 0));
            if (buffer >= 0 && static_cast<size_t>(buffer) < p.buffers.size())
              p.buffers[static_cast<size_t>(buffer)].is_input = true;
          },
          "name"_a, "dtype"_a, "shape"_a, "buffer"_a)
      .def(
          "output",
          [](Program& p, const std::string& name, const std::string& dtype, std::vector<int64_t> shape, int32_t buffer,
             int64_t offset) { p.outputs.push_back(port_of(name, dtype, std::move(shape), buffer, offset)); },
          "name"_a, "dtype"_a, "shape"_a, "buffer"_a, "offset"_a = 0)
      .def(
          "state",
          [](Program& p, const std::string& input, const std::string& output) {
            p.states.push_back({static_cast<int32_t>(find_port(p.inputs, input, "input")),
                                static_cast<int32_t>(find_port(p.outputs, output, "output"))});
          },
          "input"_a, "output"_a)
      .def(
          "step",
          [](Program& p, const std::string& name, const std::string& family, const nb::dict& problem,
             const std::vector<Ref>& operands) {
            zoi::Step step{.name = name, .family = zoi::find_family(family)};
            if (!step.family) throw zoi::Error("step '" + name + "': no family of kernels named '" + family + "'");
            step.problem = words_of(*step.family, problem, name);
            if (static_cast<int64_t>(operands.size()) != step.family->operand_count)
              throw zoi::Error("step '" + name + "': found " + std::to_string(operands.size()) + " operands; family '" +
                               family + "' takes " + std::to_string(step.family->operand_count));
            for (const Ref& ref : operands)
              step.operands.push_back(ref ? zoi::OperandRef{ref->first, ref->second} : zoi::OperandRef{});
            p.steps.push_back(std::move(step));
          },
          "name"_a, "family"_a, "problem"_a, "operands"_a);

  nb::class_<zoi::Plan>(m, "Plan")
      .def(nb::new_([](const Program& program, const std::string& arch, std::map<std::string, std::string> pick) {
             return std::make_shared<zoi::Plan>(program, zoi::runnable_arch(arch), pick);
           }),
           "program"_a, "arch"_a = "auto", "pick"_a = std::map<std::string, std::string>())
      .def_static(
          "load",
          [](const std::string& path, const std::string& arch) {
            return std::make_shared<zoi::Plan>(zoi::load_program(path), zoi::runnable_arch(arch));
          },
          "path"_a, "arch"_a = "auto")
      .def(
          "save", [](const zoi::Plan& p, const std::string& path) { zoi::save_program(p.program(), path); }, "path"_a,
          nb::call_guard<nb::gil_scoped_release>())
      .def("validate", [](const zoi::Plan& p) { zoi::validate(p.program(), p.layout()); })
      .def(
          "memory", [](const zoi::Plan& p, int lanes) { return memory_dict(p.memory(lanes)); }, "lanes"_a = 1)
      .def_prop_ro("name", [](const zoi::Plan& p) { return p.program().name; })
      .def_prop_ro("arch", [](const zoi::Plan& p) { return zoi::arch_name(p.arch()); })
      .def_prop_ro("inputs", [](const zoi::Plan& p) { return ports(p.program().inputs); })
      .def_prop_ro("outputs", [](const zoi::Plan& p) { return ports(p.program().outputs); })
      .def_prop_ro("states",
                   [](const zoi::Plan& p) {
                     std::vector<std::pair<std::string, std::string>> result;
                     for (const zoi::State& s : p.program().states)
                       result.emplace_back(p.program().inputs[static_cast<size_t>(s.input)].name,
                                           p.program().outputs[static_cast<size_t>(s.output)].name);
                     return result;
                   })
      .def_prop_ro("steps", steps_of);

  nb::class_<zoi::Session>(m, "Session")
      .def(
          "__init__",
          [](zoi::Session* self, std::shared_ptr<zoi::Plan> plan, std::optional<std::vector<int>> cores, int lanes,
             bool armed, bool lock, bool huge_pages, bool flush_denormals, bool split_all) {
            new (self) zoi::Session(std::move(plan), {cores.value_or(std::vector<int>()), lanes, armed, lock,
                                                      huge_pages, flush_denormals, split_all});
          },
          "plan"_a, "cores"_a = nb::none(), "lanes"_a = 0, "armed"_a = false, "lock"_a = false, "huge_pages"_a = false,
          "flush_denormals"_a = false, "split_all"_a = false)
      .def("run", &zoi::Session::run, nb::call_guard<nb::gil_scoped_release>())
      .def("profile", &zoi::profile, "runs"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("reset", &zoi::Session::reset)
      .def(
          "input",
          [](nb::handle_t<zoi::Session> self, const std::string& name) {
            auto& s = nb::cast<zoi::Session&>(self);
            const size_t index = find_port(s.plan().program().inputs, name, "input");
            return view(self, s.plan().program().inputs[index], s.input(index));
          },
          "name"_a)
      .def(
          "output",
          [](nb::handle_t<zoi::Session> self, const std::string& name) {
            auto& s = nb::cast<zoi::Session&>(self);
            const size_t index = find_port(s.plan().program().outputs, name, "output");
            return view(self, s.plan().program().outputs[index], s.output(index));
          },
          "name"_a)
      .def_prop_ro("memory", [](const zoi::Session& s) { return memory_dict(s.memory()); })
      .def_prop_ro("lanes", &zoi::Session::lanes);
}
