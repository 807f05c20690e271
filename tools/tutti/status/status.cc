// What is everyone doing?
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "command.h"
#include "runtime/record_file.h"
#include "status/ranks.h"
#include "status/table.h"
#include "status/trace.h"
#include "status/verdict.h"

namespace tutti::internal::tools {
namespace {

struct StatusOptions {
  std::string job, trace, dumps, save;
  bool json = false;
};

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

std::string json_of(const std::vector<RankReport>& reports) {
  using nlohmann::json;
  json ranks = json::array();
  for (const RankReport& report : reports)
    ranks.push_back(report.why_none.empty()
                        ? json::parse(report.text)
                        : json{{"rank", report.rank}, {"pid", report.pid}, {"does_not_answer", report.why_none}});
  return json{{"job", reports.front().job}, {"ranks", ranks}, {"verdict", verdict_on(reports)}}.dump(1) + "\n";
}

void write_trace(const std::vector<RankReport>& reports, const std::string& path) {
  std::ofstream file(path);
  file << trace_of(reports);
  file.close();
  if (!file) throw std::runtime_error(fmt::format("cannot write {}", path));
}

void save(const std::vector<RankReport>& reports, const std::string& directory) {
  for (const RankReport& report : reports) {
    if (!report.why_none.empty()) continue;
    const std::string wrong =
        write_record(directory, fmt::format("tutti-{}-rank{}.json", report.job, report.rank), report.text);
    if (!wrong.empty()) throw std::runtime_error(wrong);
  }
}

std::string heading(const std::vector<RankReport>& reports, bool of_files) {
  int size = 0, answers = 0;
  for (const RankReport& report : reports) {
    size = std::max(size, report.size);
    if (report.why_none.empty()) ++answers;
  }
  return fmt::format("job {}: {} {}{}\n", reports.front().job,
                     size > 0 ? fmt::format("{} ranks, of which {}", size, answers) : "no rank",
                     of_files ? "wrote a file" : "answer", of_files ? "" : " here");
}

// Several jobs, of which none is chosen.
int list(const std::map<std::string, std::vector<int>>& jobs) {
  print(fmt::format("{} jobs of this user run on this host; tutti status JOB says more of one:\n", jobs.size()));
  for (const auto& [job, ranks] : jobs) print(fmt::format("  {}  ranks {}\n", job, fmt::join(ranks, ", ")));
  return 0;
}

int run_status(const StatusOptions& options) {
  std::vector<RankReport> reports;
  if (!options.dumps.empty()) {
    reports = read_dumps(options.dumps, options.job);
    for (const RankReport& report : reports)
      if (report.job != reports.front().job)
        throw UsageError(fmt::format("{} has files of several jobs, {} and {}: say which", options.dumps,
                                     reports.front().job, report.job));
  } else {
    const auto jobs = find_jobs();
    if (jobs.empty()) throw std::runtime_error("no job of this user runs on this host");
    if (options.job.empty() && jobs.size() > 1) return list(jobs);
    const auto chosen = options.job.empty() ? jobs.begin() : jobs.find(options.job);
    if (chosen == jobs.end())
      throw std::runtime_error(fmt::format("no job {} of this user runs on this host", options.job));
    reports = ask(chosen->first, chosen->second, options.json || !options.trace.empty() || !options.save.empty());
  }
  if (!options.trace.empty()) write_trace(reports, options.trace);
  if (!options.save.empty()) save(reports, options.save);
  print(options.json ? json_of(reports)
                     : heading(reports, !options.dumps.empty()) + table_of(reports) + verdict_on(reports));
  return 0;
}

}  // namespace

Subcommand add_status(CLI::App& app) {
  CLI::App* parser = app.add_subcommand("status", "Say what each rank of a running job does, and who holds it up");
  const auto options = std::make_shared<StatusOptions>();
  parser->add_option("JOB", options->job, "the number of the job; needed if several run on this host");
  parser->add_flag("--json", options->json, "one object, with the last calls of each communicator");
  parser->add_option("--trace", options->trace, "write the last calls to FILE, for Perfetto or chrome://tracing")
      ->type_name("FILE");
  parser->add_option("--save", options->save, "write what each rank has recorded to DIRECTORY")->type_name("DIRECTORY");
  parser->add_option("--dumps", options->dumps, "read what ranks wrote to DIRECTORY (TUTTI_DUMP_DIR), and ask nobody")
      ->type_name("DIRECTORY");
  return {parser, [options] { return run_status(*options); }};
}

}  // namespace tutti::internal::tools
