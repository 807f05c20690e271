#include "tutti/error.h"

namespace tutti {

Error::~Error() = default;

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::mismatch: return "mismatch";
    case ErrorCode::peer_lost: return "peer_lost";
    case ErrorCode::peer_left: return "peer_left";
    case ErrorCode::timeout: return "timeout";
    case ErrorCode::unreachable: return "unreachable";
    case ErrorCode::refused: return "refused";
    case ErrorCode::aborted: return "aborted";
    case ErrorCode::system: return "system";
    case ErrorCode::partitioned: return "partitioned";
    case ErrorCode::expelled: return "expelled";
  }
  return "?";
}

}  // namespace tutti
