#include "error.h"

namespace tutti_python {

Failure last_failure() {
  return {static_cast<int>(tutti_last_error_code(nullptr)), tutti_last_error_peer(nullptr), tutti_last_error(nullptr)};
}

}  // namespace tutti_python
