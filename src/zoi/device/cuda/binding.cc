// The Python module `_cuda`: conversions only. See _cuda.pyi for what each call
// means.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "device/cuda/launch.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace zoi::cuda;

namespace {

Handle stream_of(uintptr_t stream) { return reinterpret_cast<Handle>(stream); }

std::string text_of(const nb::bytes& bytes) { return std::string(bytes.c_str(), bytes.size()); }

const char* class_of(Fault fault) {
  switch (fault) {
    case Fault::missing:
      return "DriverMissing";
    case Fault::unsupported:
      return "UnsupportedDevice";
    case Fault::memory:
      return "OutOfDeviceMemory";
    case Fault::kernel:
      return "KernelFault";
    case Fault::lost:
      return "DeviceLost";
    case Fault::invalid:
      return "CudaError";
  }
  return "CudaError";
}

std::string dtype_of(nb::dlpack::dtype t) {
  static const char* const kNames[] = {"i", "u", "f", "?", "bf"};
  if (t.code == static_cast<uint8_t>(nb::dlpack::dtype_code::Bool)) return "bool";
  return (t.code <= 4 ? kNames[t.code] : "?") + std::to_string(t.bits);
}

nb::dlpack::dtype dtype_from(const std::string& name) {
  using Code = nb::dlpack::dtype_code;
  const auto make = [](Code code, int bits) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
  };
  if (name == "bf16") return make(Code::Bfloat, 16);
  if (name == "f16") return make(Code::Float, 16);
  if (name == "f32") return make(Code::Float, 32);
  if (name == "f64") return make(Code::Float, 64);
  if (name == "i8") return make(Code::Int, 8);
  if (name == "i32") return make(Code::Int, 32);
  if (name == "i64") return make(Code::Int, 64);
  if (name == "u8" || name == "e4m3") return make(Code::UInt, 8);
  throw Error(Fault::invalid, "no dtype '" + name + "'; there are bf16, f16, f32, f64, i8, i32, i64, u8, e4m3.");
}

}  // namespace

NB_MODULE(_cuda, m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& error) {
      nb::object type = nb::module_::import_("zoi.device.cuda.errors").attr(class_of(error.fault));
      PyErr_SetString(type.ptr(), error.what());
    }
  });

  m.def("driver_version", [] { return driver().version; });
  m.def("device_count", [] {
    int count = 0;
    check(driver().device_count(&count), "counting GPUs");
    return count;
  });

  nb::class_<Device>(m, "Device")
      .def_prop_ro("ordinal", &Device::ordinal)
      .def_prop_ro("name", &Device::name)
      .def_prop_ro("memory", &Device::memory)
      .def_prop_ro("capability", &Device::capability)
      .def_prop_ro("multiprocessors", [](const Device& d) { return d.attribute(16); })
      .def_prop_ro("l2_bytes", [](const Device& d) { return d.attribute(38); })
      .def_prop_ro("shared_bytes", [](const Device& d) { return d.attribute(97); })
      .def_prop_ro("clock_khz", [](const Device& d) { return d.attribute(13); })
      .def("use", &Device::use)
      .def("synchronize",
           [](const Device& d) {
             d.use();
             nb::gil_scoped_release free;
             check(driver().context_synchronize(), "waiting for the GPU");
           })
      .def(
          "fill",
          [](const Device& d, Pointer to, int value, size_t bytes, uintptr_t stream) {
            d.use();
            check(driver().fill(to, static_cast<unsigned char>(value), bytes, stream_of(stream)), "filling memory");
          },
          "to"_a, "value"_a, "bytes"_a, "stream"_a = 0)
      .def(
          "copy_in",
          [](const Device& d, Pointer to, nb::ndarray<nb::device::cpu, nb::c_contig, nb::ro> from, uintptr_t stream) {
            d.use();
            check(driver().copy_in(to, from.data(), from.nbytes(), stream_of(stream)), "copying to the GPU");
          },
          "to"_a, "from_"_a, "stream"_a = 0)
      .def(
          "copy_out",
          [](const Device& d, nb::ndarray<nb::device::cpu, nb::c_contig> to, Pointer from, uintptr_t stream) {
            d.use();
            check(driver().copy_out(to.data(), from, to.nbytes(), stream_of(stream)), "copying from the GPU");
            check(driver().stream_synchronize(stream_of(stream)), "copying from the GPU");
          },
          "to"_a, "from_"_a, "stream"_a = 0);
  m.def("device", &Device::at, "ordinal"_a = 0, nb::rv_policy::reference);

  nb::class_<Module>(m, "Module").def("__init__", [](Module* self, Device& device, const nb::bytes& image) {
    new (self) Module(device, text_of(image));
  });
  nb::class_<Function>(m, "Function")
      .def(nb::init<std::shared_ptr<Module>, const std::string&, int>(), "module"_a, "name"_a, "shared"_a = 0)
      .def_prop_ro("registers", &Function::registers)
      .def_prop_ro("local_bytes", &Function::local_bytes)
      .def("blocks_per_multiprocessor", &Function::blocks_per_multiprocessor, "threads"_a);
  nb::class_<Launch>(m, "Launch")
      .def(
          "__init__",
          [](Launch* self, std::shared_ptr<Function> function, std::array<uint32_t, 3> grid, uint32_t threads,
             const std::vector<nb::bytes>& parameters, uint32_t cluster) {
            std::vector<std::string> texts;
            for (const nb::bytes& bytes : parameters) texts.push_back(text_of(bytes));
            new (self) Launch(std::move(function), grid, threads, cluster, texts);
          },
          "function"_a, "grid"_a, "threads"_a, "parameters"_a, "cluster"_a = 1)
      .def(
          "run", [](Launch& l, uintptr_t stream) { l.run(stream_of(stream)); }, "stream"_a = 0)
      .def(
          "patch", [](Launch& l, size_t index, const nb::bytes& b) { l.patch(index, text_of(b)); }, "index"_a,
          "bytes"_a);

  nb::class_<Buffer>(m, "Buffer")
      .def("__init__", [](Buffer* self, Device& device, size_t bytes) { new (self) Buffer(device, bytes); })
      .def_prop_ro("pointer", &Buffer::pointer)
      .def_prop_ro("bytes", &Buffer::bytes)
      .def(
          "array",
          [](nb::handle self, const std::vector<size_t>& shape, const std::string& dtype) {
            Buffer& b = nb::cast<Buffer&>(self);
            const nb::dlpack::dtype type = dtype_from(dtype);
            size_t bytes = type.bits / 8;
            for (size_t size : shape)
              if (__builtin_mul_overflow(bytes, size, &bytes)) throw Error(Fault::invalid, "impossible shape");
            if (bytes > b.bytes())
              throw Error(Fault::invalid, "an array of " + std::to_string(bytes) + " bytes over a buffer of " +
                                              std::to_string(b.bytes()) + ".");
            return nb::ndarray<nb::device::cuda>(reinterpret_cast<void*>(b.pointer()), shape.size(), shape.data(), self,
                                                 nullptr, type, nb::device::cuda::value, b.device().ordinal());
          },
          "shape"_a, "dtype"_a);
  nb::class_<HostBuffer>(m, "HostBuffer")
      .def("__init__", [](HostBuffer* self, Device& device, size_t bytes) { new (self) HostBuffer(device, bytes); })
      .def_prop_ro("pointer", &HostBuffer::pointer)
      .def_prop_ro("bytes", &HostBuffer::bytes)
      .def("array", [](nb::handle self) {
        HostBuffer& b = nb::cast<HostBuffer&>(self);
        const size_t shape[] = {b.bytes()};
        return nb::ndarray<nb::numpy, uint8_t>(b.data(), 1, shape, self);
      });
  nb::class_<Stream>(m, "Stream")
      .def("__init__", [](Stream* self, Device& device) { new (self) Stream(device); })
      .def_prop_ro("handle", [](const Stream& s) { return reinterpret_cast<uintptr_t>(s.handle()); })
      .def("synchronize", &Stream::synchronize, nb::call_guard<nb::gil_scoped_release>());
  nb::class_<Event>(m, "Event")
      .def("__init__", [](Event* self, Device& device) { new (self) Event(device); })
      .def(
          "record", [](Event& e, uintptr_t stream) { e.record(stream_of(stream)); }, "stream"_a = 0)
      .def("synchronize", &Event::synchronize, nb::call_guard<nb::gil_scoped_release>())
      .def("since", &Event::since, "start"_a);
  nb::class_<Graph>(m, "Graph")
      .def_static(
          "begin", [](Device& d, uintptr_t stream) { Graph::begin(d, stream_of(stream)); }, "device"_a, "stream"_a)
      .def(
          "__init__", [](Graph* self, Device& d, uintptr_t stream) { new (self) Graph(d, stream_of(stream)); },
          "device"_a, "stream"_a)
      .def("run", [](Graph& g, uintptr_t stream) { g.run(stream_of(stream)); }, "stream"_a);

  m.def(
      "tensor_map",
      [](const std::string& dtype, Pointer at, const std::vector<uint64_t>& sizes, const std::vector<uint64_t>& strides,
         const std::vector<uint32_t>& box) {
        const TensorMap map = tensor_map(dtype, at, sizes, strides, box);
        return nb::bytes(&map, sizeof map);
      },
      "dtype"_a, "at"_a, "sizes"_a, "strides"_a, "box"_a);
  m.def("view", [](nb::ndarray<nb::device::cuda, nb::ro> array) {
    nb::list shape, strides;
    for (size_t i = 0; i < array.ndim(); ++i) {
      shape.append(array.shape(i));
      strides.append(array.stride(i));
    }
    return nb::make_tuple(reinterpret_cast<uintptr_t>(array.data()), nb::tuple(shape), nb::tuple(strides),
                          dtype_of(array.dtype()), array.device_id());
  });
}
