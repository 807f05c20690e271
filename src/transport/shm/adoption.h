// How memory of the caller becomes a part of a segment, and private again.
#pragma once

#include <cstddef>
#include <memory>

#include "transport/shm/segment.h"

namespace tutti::internal::shm {

// Makes [data, data + bytes) a part of the segment, until the result goes; then it is private memory again. The result
// may go when the caller has unmapped the memory already. nullptr: it has no whole page. Throws Error{invalid_argument}
// for what is not private memory of this process, Error{system} where there is no room.
std::shared_ptr<void> adopt(std::shared_ptr<Segment> segment, std::byte* data, std::size_t bytes);

}  // namespace tutti::internal::shm
