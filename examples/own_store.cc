// Ranks that nobody launches as ranks: they meet through a store of their own, here the files of a folder.
//   own_store RANK SIZE FOLDER      one process a rank; the folder is empty, and all can read and write it
#include <tutti/communicator.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace {

class FolderStore : public tutti::Store {
 public:
  explicit FolderStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Written aside and renamed: who finds the file finds all of it.
  void set(const std::string& key, const std::string& value) override {
    const std::filesystem::path file = file_of(key), aside = file.string() + ".new";
    if (!(std::ofstream(aside, std::ios::binary) << value << std::flush))
      throw std::runtime_error("cannot write " + aside.string());
    std::filesystem::rename(aside, file);
  }

  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    const auto until = std::chrono::steady_clock::now() + timeout;
    while (!std::filesystem::exists(file_of(key))) {
      if (std::chrono::steady_clock::now() > until) throw std::runtime_error("no file " + file_of(key).string());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::ifstream file(file_of(key), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path file_of(std::string key) const {
    for (char& c : key)
      if (c == '/') c = '.';
    return folder_ / key;
  }
  std::filesystem::path folder_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: own_store RANK SIZE FOLDER\n");
    return 2;
  }
  try {
    tutti::Settings settings;
    settings.rank = std::atoi(argv[1]);
    settings.size = std::atoi(argv[2]);
    FolderStore store(argv[3]);
    auto world = tutti::Communicator::join(settings, store);

    int value = world.rank() == 0 ? 42 : 0;
    world.broadcast(std::span(&value, 1), 0);
    std::printf("rank %d of %d has got %d\n", world.rank(), world.size(), value);
  } catch (const std::exception& error) {  // tutti::Error, or what the store throws
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
