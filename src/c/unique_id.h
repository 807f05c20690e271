// The 128 bytes that say where and how ranks meet, and the places that this process has made for them.
//
//   offset size field
//        0    4 magic     "TUID"
//        4    1 version   1
//        5    1 kind      0: a port of an address; 1: a local socket
//        6    2 port      little-endian; 0 for a local socket
//        8   16 nonce     random: tells ids apart
//       24   32 secret    random: the job's
//       56   64 address   numeric, or the name of the local socket; zeros behind it
//      120    8 checksum  FNV-1a of the bytes before, little-endian: notices damage, proves nothing
#pragma once

#include "control/join_job.h"
#include "tutti/settings.h"
#include "tutti/tutti.h"

namespace tutti::internal::c_api {

// Listens for rank 0. Of the settings it takes the interface and the ports.
tutti_unique_id make_unique_id(const Settings& settings);

// Where `rank` meets the others. Takes the listener for rank 0. Throws Error{invalid_argument} for bytes that are no
// id, and Error{unsupported} if the rank has used the id before, or is rank 0 and the id is another process's.
Appointment appointment_of(const tutti_unique_id& id, int rank);

}  // namespace tutti::internal::c_api
