// The sending half of a verbs channel: messages wait here until they have been written; a small one that none waits
// before goes at once, as part of the request.
//
// A message goes by the ring in fragments, the first behind its header; small ones are copied, large ones are sent from
// where they lie if that is registered. A large one from registered memory goes straight to its place once the peer has
// offered one: where no offer has come yet, its header goes ahead to ask for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "transport/transport.h"
#include "transport/verbs/joined_pair.h"
#include "transport/verbs/layout.h"
#include "transport/verbs/registry.h"

namespace tutti::internal::verbs {

class Sender {
 public:
  Sender(std::uint64_t communicator, const Registry& registry, std::size_t most_in_a_write)
      : communicator_(communicator), registry_(registry), most_in_a_write_(most_in_a_write) {}

  void push(const Tag& tag, const std::byte* data, std::size_t bytes) {
    waiting_.push_back({tag, data, bytes, pushed_++});
  }
  // A small message before which none waits: true if it has gone, and its memory is free.
  bool send_at_once(const Tag& tag, const std::byte* data, std::size_t bytes, JoinedPair& joined);
  bool idle() const { return sent_ == pushed_; }
  std::uint64_t sent() const { return sent_; }

  // Writes what can be written now; true if anything was.
  bool write(JoinedPair& joined);

  // --- what the peer and the queue pair say
  void done(std::uint64_t writes);
  void heard(std::uint32_t word) { consumed_ = consumed_by(word, consumed_); }
  void offered(const Offer& offer);

 private:
  struct Message {
    Tag tag;
    const std::byte* data;
    std::size_t bytes;
    std::uint64_t number;
    std::size_t written = 0;
    bool begun = false;                                // its header has been sent, or it is being placed
    std::shared_ptr<const Registration> registration;  // of its memory, looked for when its turn has come
    bool asks = false;              // its header has gone ahead; what comes next is the offer's to say
    const Offer* placed = nullptr;  // where it is being written to
  };
  // Written, but its memory is lent until that write is done.
  struct Lent {
    std::uint64_t until;  // write; 0: it was copied
    std::shared_ptr<const Registration> registration;
  };
  bool advance(Message& message, JoinedPair& joined);
  bool begin(Message& message, JoinedPair& joined);
  bool place(Message& message, JoinedPair& joined);
  bool ring(Message& message, JoinedPair& joined);
  bool write_fragment(JoinedPair& joined, std::span<const std::byte> header, const Message& message, std::size_t bytes);
  const Offer* offer_for(const Message& message) const;
  void give_back();

  const std::uint64_t communicator_;
  const Registry& registry_;
  const std::size_t most_in_a_write_;
  std::deque<Message> waiting_;
  std::deque<Lent> lent_;
  std::map<std::uint64_t, Offer> offers_;  // by message; those of messages that are over are dropped
  std::uint64_t end_ = 0;                  // of the last fragment
  std::uint64_t consumed_ = 0;             // what the peer has given back of its ring
  std::uint64_t pushed_ = 0, sent_ = 0, done_ = 0;
  std::uint64_t lends_ = 0;  // the last write that reads the front message's own memory
};

}  // namespace tutti::internal::verbs
