import FerrySimulation
import FerryTestSupport
import Foundation
import Testing

/// The command `ferry-sim`: the output and the exit status.
@Suite(.hangLimit)
struct CommandTests {
  private func simulate(_ arguments: [String]) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(try Executables.ferrySim(), arguments)
  }

  @Test(
    "wrong usage ends with 2 and names the fault and the next step",
    arguments: [
      (["run", "--seed", "x"], "'x' is not a seed"), (["run", "--seed", "-1"], "seed"),
      (["run", "--dance"], "--dance"), (["run", "--profile", "rough"], "rough"),
      (["run", "--devices", "0"], "devices"), (["run", "--spaces", "0"], "spaces"),
      (["run", "--drop", "many"], "many"), (["replay"], "SEED"), (["replay", "soon"], "soon"),
      (["swarm", "--first", "one"], "one"), (["swarm", "--jobs", "0"], "jobs"),
      (["dance"], "dance"),
    ])
  func usage(_ arguments: [String], _ word: String) async throws {
    let finished = try await simulate(arguments)
    #expect(finished.status == .exited(2))
    #expect(finished.error.contains(word), "\(finished.error)")
    #expect(finished.error.contains("next: "))
    #expect(finished.output.isEmpty)
  }

  @Test("a world that passes ends with 0 and reports it")
  func passes() async throws {
    let finished = try await simulate(
      ["run", "--profile", "calm", "--devices", "2", "--operations", "10", "--seconds", "10"])
    #expect(finished.status == .exited(0))
    for text in ["seed 1: 2 devices", "trace ", "No oracle found a violation."] {
      #expect(finished.output.contains(text), "\(finished.output)")
    }
  }

  @Test("a report that cannot be written is an error, and one that can is written")
  func report() async throws {
    let run = [
      "run", "--profile", "calm", "--devices", "2", "--operations", "10", "--seconds", "10",
    ]
    let failed = try await simulate(run + ["--report", "/proc/none/report.html"])
    #expect(failed.status == .exited(1))
    #expect(failed.error.contains("the report cannot be written"), "\(failed.error)")
    #expect(failed.error.contains("next: "))
    let directory = try TemporaryDirectory()
    let page = directory.file("report.html")
    let written = try await simulate(run + ["--report", page.path])
    #expect(written.status == .exited(0))
    #expect(written.output.contains("The report of the run: \(page.path)"))
    #expect(try String(contentsOf: page, encoding: .utf8).hasPrefix("<!DOCTYPE html>"))
  }

  /// Options of a world that cannot drain in time, since no device syncs within a second.
  private static let failing = [
    "run", "--seed", "11", "--profile", "mobile", "--devices", "3", "--operations", "12",
    "--seconds", "20", "--liveness-seconds", "1", "--sync-pause", "30000", "--watchers", "0",
    "--partitions", "6",
  ]

  @Test("a failure ends with 1, the command that repeats it, and its smallest part")
  func fails() async throws {
    let finished = try await simulate(Self.failing + ["--json"])
    #expect(finished.status == .exited(1))
    let first = try RunAnswer(finished)
    #expect(!first.passed)
    #expect(first.violations.first?.hasPrefix("liveness: after 1 s without faults") == true)
    #expect(try #require(first.shrunk).count < 10)
    let words = first.replay.split(separator: " ").map(String.init)
    #expect(words.first == "ferry-sim")
    let again = try RunAnswer(
      await simulate(Array(words.dropFirst()) + ["--json", "--no-shrink"]))
    #expect(again.violations == first.violations)
    #expect(again.trace == first.trace)
    #expect(again.shrunk == nil)
    let text = try await simulate(Self.failing)
    #expect(text.status == .exited(1))
    for line in ["FAILED liveness: ", "Run it again: ferry-sim run ", "The smallest part found"] {
      #expect(text.output.contains(line), "\(text.output)")
    }
  }

  @Test("a swarm has the same traces in any number of processes")
  func swarm() async throws {
    func run(_ jobs: String) async throws -> SwarmAnswer {
      let finished = try await simulate([
        "swarm", "--seeds", "6", "--first", "3", "--devices", "3", "--operations", "30",
        "--jobs", jobs, "--json",
      ])
      #expect(finished.status == .exited(0), "\(finished.output)\(finished.error)")
      return try JSONDecoder().decode(SwarmAnswer.self, from: Data(finished.output.utf8))
    }
    let (two, one) = (try await run("2"), try await run("1"))
    #expect(two.worlds == 6 && two.traces.count == 6)
    #expect(two.traces == one.traces && two.faults == one.faults)
    #expect(two.operations == one.operations)
    let again = try RunAnswer(
      await simulate(["replay", "5", "--devices", "3", "--operations", "30", "--json"]))
    #expect(again.trace == two.traces["5"])
  }

  private struct SwarmAnswer: Decodable {
    let worlds: Int
    let operations: Int
    let faults: [String: Int]
    let traces: [String: String]
  }

  @Test("the command lists every option of a world with its values, one JSON object a line")
  func options() async throws {
    struct Line: Decodable {
      let name: String
      let help: String
      let calm: Int
      let mobile: Int
      let hostile: Int
    }
    let finished = try await simulate(["options", "--json"])
    let lines = try finished.output.split(separator: "\n").map {
      try JSONDecoder().decode(Line.self, from: Data($0.utf8))
    }
    #expect(lines.map(\.name) == WorldOptions.Field.all.map(\.name))
    #expect(lines.first { $0.name == "drop" }?.hostile == WorldOptions(.hostile).drop)
    #expect(lines.allSatisfy { !$0.help.isEmpty })
    let table = try await simulate(["options"]).output
    for field in WorldOptions.Field.all { #expect(table.contains("\n\(field.name) ")) }
  }

  @Test("a trace is printed line by line on request")
  func trace() async throws {
    let finished = try await simulate([
      "run", "--profile", "calm", "--devices", "2", "--operations", "5", "--seconds", "5",
      "--trace",
    ])
    for text in ["world  phase  safety", "world  phase  liveness", "made the tables", "push "] {
      #expect(finished.output.contains(text))
    }
  }
}
