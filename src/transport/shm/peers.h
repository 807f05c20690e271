// The other ranks of this host, as far as they have handed over their memory.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "transport/shm/peer.h"
#include "transport/shm/segment.h"
#include "transport/sleeper.h"

namespace tutti::internal::shm {

// Of one rank. Ranks are the job's. Thread-safe; nothing here blocks.
class Peers {
 public:
  // Peers are given `own` and the sleeper's bell. Both outlive this.
  Peers(Sleeper& sleeper, const Segment& own) : sleeper_(sleeper), own_(own) {}
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // As of Transport, which hands them on.
  void attach(int peer, int fd);
  void fail(int peer, const std::string& why);
  std::shared_ptr<Peer> find(int peer);
  void look();

 private:
  Sleeper& sleeper_;
  const Segment& own_;
  std::mutex mutex_;
  std::map<int, int> exchanging_;  // peer -> fd
  std::map<int, std::shared_ptr<Peer>> peers_;
  std::map<int, std::string> failed_;
};

}  // namespace tutti::internal::shm
