// Of CUDA's runtime library: streams, events, host functions.
#include <chrono>

#include "fake_cuda/process.h"

using namespace tutti::internal::fake;

namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// `body` of the stream, unless there is none or its device has failed.
template <class Body>
cudaError_t on_stream(cudaStream_t handle, const Body& body) {
  return call([&] {
    Stream* const stream = stream_of(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->device.failure() != cudaSuccess) return stream->device.failure();
    return body(*stream);
  });
}
template <class Body>
cudaError_t on_event(cudaEvent_t handle, const Body& body) {
  return call([&] {
    Event* const event = event_of(handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->device.failure() != cudaSuccess) return event->device.failure();
    return body(*event);
  });
}

}  // namespace

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return call([&] {
    *stream =
        handle_of(current_device().create((flags & cudaStreamNonBlocking) != 0 ? Blocking::none : Blocking::blocking));
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const InDriver in_driver;
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  Stream* const stream = stream_of(handle);
  if (stream == nullptr || stream->blocking == Blocking::legacy) return remembered(cudaErrorInvalidResourceHandle);
  stream->device.destroy(*stream);
  return remembered(stream->device.failure());
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return on_stream(handle, [&](Stream& stream) {
    *device = stream.device.index;
    return cudaSuccess;
  });
}

// A capture is its own thread's affair here, whatever its mode.
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return on_stream(handle, [](Stream& stream) {
    if (stream.capturing) return cudaErrorStreamCaptureUnsupported;
    if (stream.blocking == Blocking::legacy && stream.device.any_blocking_captures())
      return cudaErrorStreamCaptureImplicit;
    return stream.is_done() ? stream.device.failure() : cudaErrorNotReady;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return on_stream(handle, [](Stream& stream) {
    if (stream.capturing) return cudaErrorStreamCaptureUnsupported;
    const Synchronizing synchronizing;
    stream.finish();
    return stream.device.failure();
  });
}

// What is put on the stream meanwhile is not run, nor kept: no graph can be launched.
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  return on_stream(handle, [](Stream& stream) {
    if (stream.blocking == Blocking::legacy) return cudaErrorStreamCaptureUnsupported;
    if (stream.capturing) return cudaErrorIllegalState;
    stream.capturing = true;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return on_stream(handle, [&](Stream& stream) {
    if (!stream.capturing) return cudaErrorIllegalState;
    stream.capturing = false;
    *graph = nullptr;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return on_stream(handle, [&](Stream& stream) {
    if (stream.blocking == Blocking::legacy && stream.device.any_blocking_captures())
      return cudaErrorStreamCaptureImplicit;
    *status = stream.capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned) {
  return on_stream(handle, [&](Stream& stream) {
    Event* const event = event_of(event_handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    if (const Record* const record = event->latest(); record != nullptr)
      stream.device.enqueue(stream, [record] { record->passed.await(1); });
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return on_stream(handle, [&](Stream& stream) {
    return enqueue(Call::host_function, stream, [function, data] {
      this_thread().in_host_function = true;
      function(data);
      this_thread().in_host_function = false;
    });
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&] {
    *event =
        reinterpret_cast<cudaEvent_t>(&process().create_event(current_device(), (flags & cudaEventDisableTiming) == 0));
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  const InDriver in_driver;
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  Event* const event = event_of(handle);
  if (event == nullptr) return remembered(cudaErrorInvalidResourceHandle);
  event->destroyed = true;
  return remembered(event->device.failure());
}

cudaError_t cudaEventRecord(cudaEvent_t event_handle, cudaStream_t handle) {
  return on_stream(handle, [&](Stream& stream) {
    Event* const event = event_of(event_handle);
    if (event == nullptr || &event->device != &stream.device) return cudaErrorInvalidResourceHandle;
    if (stream.capturing) return cudaSuccess;
    if (const cudaError_t failing = process().count(Call::event); failing != cudaSuccess) return failing;
    Record& record = event->add();
    stream.device.enqueue(
        stream,
        [&record] {
          record.time_ns = now_ns();
          record.passed.raise(1);
        },
        true);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return on_event(handle, [](Event& event) {
    const Record* const record = event.latest();
    return record == nullptr || record->passed.has(1) ? event.device.failure() : cudaErrorNotReady;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return on_event(handle, [](Event& event) {
    const Synchronizing synchronizing;
    if (const Record* const record = event.latest(); record != nullptr) record->passed.await(1);
    return event.device.failure();
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return on_event(start, [&](Event& first) {
    Event* const second = event_of(end);
    if (second == nullptr || &second->device != &first.device || !first.timed || !second->timed)
      return cudaErrorInvalidResourceHandle;
    const Record *const from = first.latest(), *const to = second->latest();
    if (from == nullptr || to == nullptr) return cudaErrorInvalidResourceHandle;
    if (!from->passed.has(1) || !to->passed.has(1)) return cudaErrorNotReady;
    *ms = static_cast<float>(to->time_ns - from->time_ns) / 1e6f;
    return cudaSuccess;
  });
}
