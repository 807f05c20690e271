#include "control/message.h"

#include <type_traits>
#include <utility>

#include "base/little_endian.h"

namespace tutti::internal {
namespace {

// One function, fields(archive, message), lists the members of each message; Writer and Reader are the two archives.
class Writer {
 public:
  template <class... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }
  std::vector<std::byte> take() {
    put_le(bytes_.data(), static_cast<std::uint32_t>(bytes_.size() - 4));
    return std::move(bytes_);
  }

 private:
  template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  void put(const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), first, first + text.size());
  }
  void put(const Digest& digest) { bytes_.insert(bytes_.end(), digest.begin(), digest.end()); }
  void put(const Tag& tag) { (*this)(tag.word[0], tag.word[1]); }
  template <class T>
  void put(const std::vector<T>& list);
  template <class T>
  requires std::is_class_v<T>
  void put(const T& part);

  std::vector<std::byte> bytes_ = std::vector<std::byte>(4);
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
  }
  bool all_read() const { return good_ && bytes_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t count) {
    good_ = good_ && count <= bytes_.size();
    if (!good_) return {};
    return std::exchange(bytes_, bytes_.subspan(count)).first(count);
  }
  template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void get(T& value) {
    std::uint64_t number = 0;
    int shift = 0;
    for (const std::byte b : take(sizeof(T)))
      number |= std::to_integer<std::uint64_t>(b) << std::exchange(shift, shift + 8);
    if constexpr (std::is_same_v<T, bool>)
      value = number != 0;
    else
      value = static_cast<T>(number);
  }
  void get(std::string& text) {
    std::uint32_t size = 0;
    get(size);
    const auto bytes = take(size);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void get(Digest& digest) {
    const auto bytes = take(digest.size());
    std::copy(bytes.begin(), bytes.end(), digest.begin());
  }
  void get(Tag& tag) { (*this)(tag.word[0], tag.word[1]); }
  template <class T>
  void get(std::vector<T>& list);
  template <class T>
  requires std::is_class_v<T>
  void get(T& part);

  std::span<const std::byte> bytes_;
  bool good_ = true;
};

template <class T, class Message>
concept Of = std::is_same_v<std::remove_const_t<T>, Message>;

void fields(auto& archive, Of<Member> auto& m) {
  archive(m.rank, m.host_id, m.address, m.port, m.local_name, m.pid, m.started, m.pid_space, m.processors, m.obstacles,
          m.sees_gpus);
}
void fields(auto& archive, Of<Notice> auto& n) {
  archive(n.kind, n.peer, n.communicator, n.code, n.message, n.serial, n.about, n.on, n.ranks, n.authority, n.sequence,
          n.entered, n.call, n.last, n.has_left);
}
void fields(auto& archive, Of<Introduction> auto& i) {
  archive(i.member, i.size, i.timeout_ms, i.heartbeat_timeout_ms, i.transport, i.attempt);
}
void fields(auto& archive, Of<Table> auto& t) { archive(t.salt, t.members, t.announced); }
void fields(auto& archive, Of<Refusal> auto& r) { archive(r.code, r.rank, r.message, r.try_again); }
void fields(auto& archive, Of<Waiting> auto& w) { archive(w.missing); }
void fields(auto& archive, Of<Ping> auto& p) { archive(p.known, p.is_open); }
void fields(auto&, Of<Goodbye> auto&) {}
void fields(auto& archive, Of<Enlistment> auto& e) { archive(e.events); }
void fields(auto& archive, Of<Death> auto& d) { archive(d.rank); }
void fields(auto& archive, Of<Survey> auto& s) { archive(s.communicator, s.whole, s.sequence, s.ranks); }
void fields(auto&, Of<Desertion> auto&) {}
void fields(auto& archive, Of<Withdrawal> auto& w) { archive(w.to); }
void fields(auto& archive, Of<Vote> auto& v) { archive(v.communicator, v.ranks, v.on, v.has_made, v.known); }
void fields(auto& archive, Of<Recall> auto& r) { archive(r.communicator, r.on, r.number); }
void fields(auto& archive, Of<LifeSign> auto& l) { archive(l.is_question); }
void fields(auto& archive, Of<Summons> auto& s) { archive(s.is_sure); }
void fields(auto& archive, Of<Probe> auto& p) { archive(p.from, p.to, p.communicator, p.whole, p.sequence); }
void fields(auto& archive, Of<Answer> auto& a) { archive(a.to, a.notice); }
void fields(auto& archive, Of<CallAccount> auto& a) { archive(a.calls, a.digest, a.last); }
void fields(auto& archive, Of<Farewell::Departed> auto& d) { archive(d.rank, d.account); }
void fields(auto& archive, Of<CallRow> auto& r) { archive(r.first, r.kind); }
void fields(auto& archive, Of<Farewell> auto& f) {
  archive(f.communicator, f.rank, f.ranks, f.account, f.whole, f.peer, f.goes_on, f.done, f.again, f.rows);
}

template <class T>
void Writer::put(const std::vector<T>& list) {
  put(static_cast<std::uint32_t>(list.size()));
  for (const T& item : list) put(item);
}
template <class T>
requires std::is_class_v<T>
void Writer::put(const T& part) { fields(*this, part); }

template <class T>
void Reader::get(std::vector<T>& list) {
  std::uint32_t size = 0;
  get(size);
  list.clear();
  while (good_ && list.size() < size) get(list.emplace_back());  // grows only as bytes are there to fill it
}
template <class T>
requires std::is_class_v<T>
void Reader::get(T& part) { fields(*this, part); }

template <std::size_t index = 0>
std::optional<ControlMessage> decode(std::size_t kind, std::span<const std::byte> bytes) {
  if constexpr (index < std::variant_size_v<ControlMessage>) {
    if (kind != index) return decode<index + 1>(kind, bytes);
    std::variant_alternative_t<index, ControlMessage> message;
    Reader reader(bytes);
    fields(reader, message);
    if (!reader.all_read()) return std::nullopt;
    return message;
  } else {
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::byte> encode(const ControlMessage& message) {
  Writer writer;
  writer(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& m) { fields(writer, m); }, message);
  return writer.take();
}

void FrameReader::feed(std::span<const std::byte> bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(std::exchange(taken_, 0)));
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<ControlMessage> FrameReader::next() {
  const auto here = std::span<const std::byte>(buffer_).subspan(taken_);
  if (broken_ || here.size() < 4) return std::nullopt;
  const std::size_t length = get_le<std::uint32_t>(here.data());
  broken_ = length < 1 || length > limit_bytes_;
  if (broken_ || here.size() < 4 + length) return std::nullopt;
  auto message = decode(std::to_integer<std::size_t>(here[4]), here.subspan(5, length - 1));
  broken_ = !message;
  taken_ += 4 + length;
  return message;
}

}  // namespace tutti::internal
