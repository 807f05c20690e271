// What went wrong, as numbers and as text that stays when the exception is gone.
#include <algorithm>
#include <cstring>
#include <new>

#include "c/handles.h"

namespace tutti::internal::c_api {
namespace {

// Never allocated, so that it can be written when there is no memory left.
struct LastError {
  tutti_error_code_t code = TUTTI_ERROR_NONE;
  int peer = -1;
  char text[2048] = "";

  void set(tutti_error_code_t what, const char* words, int about_peer = -1) noexcept {
    code = what;
    peer = about_peer;
    const std::size_t bytes = std::min(std::strlen(words), sizeof text - 1);
    std::memcpy(text, words, bytes);
    text[bytes] = '\0';
  }
};

thread_local LastError last_error;       // of this thread's calls
thread_local LastError of_communicator;  // what it was told last of a communicator

// What the caller asks about: the communicator's failure, else the thread's last error.
const LastError& error_about(tutti_comm_t comm) noexcept {
  if (comm == nullptr) return last_error;
  try {
    const auto failure = comm->world.failure();
    if (!failure) return last_error;
    of_communicator.set(number_of(failure->code), failure->what(), failure->peer);
    return of_communicator;
  } catch (const Error& error) {  // in a forked child
    of_communicator.set(number_of(error.code), error.what(), error.peer);
    return of_communicator;
  } catch (...) {
    return last_error;
  }
}

}  // namespace

static_assert(static_cast<int>(ErrorCode::invalid_argument) + 1 == TUTTI_ERROR_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::unsupported) + 1 == TUTTI_ERROR_UNSUPPORTED);
static_assert(static_cast<int>(ErrorCode::mismatch) + 1 == TUTTI_ERROR_MISMATCH);
static_assert(static_cast<int>(ErrorCode::peer_lost) + 1 == TUTTI_ERROR_PEER_LOST);
static_assert(static_cast<int>(ErrorCode::peer_left) + 1 == TUTTI_ERROR_PEER_LEFT);
static_assert(static_cast<int>(ErrorCode::timeout) + 1 == TUTTI_ERROR_TIMEOUT);
static_assert(static_cast<int>(ErrorCode::unreachable) + 1 == TUTTI_ERROR_UNREACHABLE);
static_assert(static_cast<int>(ErrorCode::refused) + 1 == TUTTI_ERROR_REFUSED);
static_assert(static_cast<int>(ErrorCode::aborted) + 1 == TUTTI_ERROR_ABORTED);
static_assert(static_cast<int>(ErrorCode::system) + 1 == TUTTI_ERROR_SYSTEM);

static_assert(static_cast<int>(ErrorCode::partitioned) + 2 == TUTTI_ERROR_PARTITIONED);
static_assert(static_cast<int>(ErrorCode::expelled) + 2 == TUTTI_ERROR_EXPELLED);

// TUTTI_ERROR_INTERNAL stands in between.
tutti_error_code_t number_of(ErrorCode code) {
  return static_cast<tutti_error_code_t>(static_cast<int>(code) + (code > ErrorCode::system ? 2 : 1));
}

tutti_result_t result_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return TUTTI_INVALID_ARGUMENT;
    case ErrorCode::unsupported:
    case ErrorCode::mismatch:
    case ErrorCode::refused: return TUTTI_INVALID_USAGE;
    case ErrorCode::peer_lost:
    case ErrorCode::peer_left:
    case ErrorCode::timeout:
    case ErrorCode::unreachable:
    case ErrorCode::aborted:
    case ErrorCode::partitioned:
    case ErrorCode::expelled: return TUTTI_REMOTE_ERROR;
    case ErrorCode::system: return TUTTI_SYSTEM_ERROR;
  }
  return TUTTI_INTERNAL_ERROR;
}

tutti_result_t note_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    last_error.set(number_of(error.code), error.what(), error.peer);
    return result_of(error.code);
  } catch (const std::bad_alloc&) {
    last_error.set(TUTTI_ERROR_SYSTEM, "there is no memory left");
    return TUTTI_SYSTEM_ERROR;
  } catch (const std::exception& error) {
    last_error.set(TUTTI_ERROR_INTERNAL, error.what());
    return TUTTI_INTERNAL_ERROR;
  } catch (...) {
    last_error.set(TUTTI_ERROR_INTERNAL, "something was thrown that says nothing");
    return TUTTI_INTERNAL_ERROR;
  }
}

void refuse(ErrorCode code, const std::string& message) { throw Error(code, message); }
void refuse_null(const char* function, const char* what) {
  refuse(ErrorCode::invalid_argument, std::string(function) + ": " + what + " is null");
}
void refuse_comm(const char* function, tutti_comm_t comm) {
  if (comm == nullptr) refuse_null(function, "comm");
  refuse(ErrorCode::unsupported, std::string(function) + ": the communicator was finalized; it can only be destroyed");
}

}  // namespace tutti::internal::c_api

namespace api = tutti::internal::c_api;

const char* tutti_result_text(tutti_result_t result) {
  switch (static_cast<int>(result)) {
    case TUTTI_SUCCESS: return "success";
    case TUTTI_UNHANDLED_CUDA_ERROR: return "unhandled CUDA error";
    case TUTTI_SYSTEM_ERROR: return "system error";
    case TUTTI_INTERNAL_ERROR: return "internal error";
    case TUTTI_INVALID_ARGUMENT: return "invalid argument";
    case TUTTI_INVALID_USAGE: return "invalid usage";
    case TUTTI_REMOTE_ERROR: return "remote error";
    case TUTTI_IN_PROGRESS: return "in progress";
    default: return "?";
  }
}

const char* tutti_last_error(tutti_comm_t comm) { return api::error_about(comm).text; }
tutti_error_code_t tutti_last_error_code(tutti_comm_t comm) { return api::error_about(comm).code; }
int tutti_last_error_peer(tutti_comm_t comm) { return api::error_about(comm).peer; }

tutti_result_t tutti_get_version(int* version) {
  return api::guarded([&] { api::there("tutti_get_version", version, "version") = TUTTI_VERSION_NUMBER; });
}
