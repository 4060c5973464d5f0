import FerryTestSupport
import Foundation
import Testing

/// `ferry-chaos`, run like a user's command. `make chaos` runs the long rounds.
@Suite(.serialized, .hangLimit)
struct ChaosTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Runs `ferry-chaos` with all files below the test's directory.
  private func chaos(_ arguments: String...) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(
      try Executables.ferryChaos(), arguments, environment: ["TMPDIR": directory.url.path],
      directory: directory.url)
  }

  private func json(_ finished: ChildProcess.Finished) throws -> [String: Any] {
    let object = try JSONSerialization.jsonObject(with: Data(finished.output.utf8))
    return try #require(object as? [String: Any])
  }

  @Test("a seed alone determines a schedule of faults, and the nemesis bounds their kinds")
  func schedules() async throws {
    func faults(_ nemesis: String, seed: Int) async throws -> [[String: Any]] {
      let shown = try await chaos(
        "schedule", "--json", "--nemesis", nemesis, "--seed", "\(seed)", "--duration", "60s")
      #expect(shown.status == .exited(0), "\(shown.error)")
      return try #require(try json(shown)["faults"] as? [[String: Any]])
    }
    let kinds = [
      "none": [], "pause": ["pause-device", "pause-server", "pause-backends"],
      "kill": [
        "kill-device", "kill-server", "kill-backend", "restart-database", "crash-database",
      ],
    ]
    for (nemesis, expected) in kinds {
      let found = try await faults(nemesis, seed: 7).map { $0["kind"] as? String ?? "" }
      #expect(Set(found) == Set(expected), "\(nemesis)")
    }
    let first = try await faults("all", seed: 7)
    #expect(first.count > 60)
    #expect(NSArray(array: first) == NSArray(array: try await faults("all", seed: 7)))
    #expect(NSArray(array: first) != NSArray(array: try await faults("all", seed: 8)))
  }

  @Test("a short round under every kind of fault loses, duplicates and mixes up nothing")
  func shortRound() async throws {
    let run = try await chaos(
      "run", "--json", "--nemesis", "all", "--devices", "4", "--rate", "20", "--duration", "5s",
      "--seed", "3", "--drain", "600s", "--evidence", "evidence")
    #expect(run.status == .exited(0), "\(run.output)")
    let report = try json(run)
    #expect(report["holds"] as? Bool == true)
    let round = try #require((report["rounds"] as? [[String: Any]])?.first)
    #expect(round["committed"] as? Int ?? 0 > 0)
    #expect((round["faults"] as? [String: Int])?.isEmpty == false)
    #expect(try #require(round["drainSeconds"] as? Double) > 0)
    try await eventually("no process to be left") { try processes().isEmpty }
    #expect(try leftovers() == [])
  }

  @Test("a Python backend on mirrored tables beside four devices loses nothing under faults")
  func backend() async throws {
    let run = try await chaos(
      "backend", "--json", "--duration", "6s", "--seed", "3", "--drain", "600s", "--evidence",
      "evidence")
    #expect(run.status == .exited(0), "\(run.output)\(run.error)")
    let report = try json(run)
    #expect(report["holds"] as? Bool == true)
    let round = try #require((report["rounds"] as? [[String: Any]])?.first)
    #expect(round["devices"] as? Int == 4)
    #expect(round["committed"] as? Int ?? 0 > 0)
    #expect((round["program"] as? [String: Any])?["committed"] as? Int ?? 0 > 0)
    #expect((round["faults"] as? [String: Int])?.isEmpty == false)
    try await eventually("no process to be left") { try processes().isEmpty }
    #expect(try leftovers() == [])
  }

  @Test("a seed alone determines the faults beside a backend, and they include each program")
  func backendSchedule() async throws {
    func faults(_ seed: Int) async throws -> [[String: Any]] {
      let shown = try await chaos(
        "schedule", "--backend", "--json", "--seed", "\(seed)", "--duration", "60s")
      #expect(shown.status == .exited(0), "\(shown.error)")
      return try #require(try json(shown)["faults"] as? [[String: Any]])
    }
    let first = try await faults(7)
    let kinds = Set(first.compactMap { $0["kind"] as? String })
    #expect(
      kinds.isSuperset(of: [
        "kill-server", "kill-mirror", "kill-device", "kill-program", "crash-database",
        "pause-mirror", "pause-program", "reset-program", "stall-mirror",
      ]))
    #expect(!kinds.contains("move-device"))
    #expect(NSArray(array: first) == NSArray(array: try await faults(7)))
  }

  @Test("a failed round reports its failure and its command, and keeps its evidence")
  func failure() async throws {
    let run = try await chaos(
      "run", "--nemesis", "none", "--devices", "4", "--rate", "40", "--duration", "1s", "--seed",
      "5", "--drain", "0", "--evidence", "evidence")
    #expect(run.status == .exited(1))
    #expect(run.output.contains("drains: not drained"))
    #expect(
      run.output.contains(
        "ferry-chaos run --nemesis none --devices 4 --rate 40 --duration 1000ms --seed 5"))
    let kept = try FileManager.default.contentsOfDirectory(
      atPath: directory.file("evidence").path)
    #expect(kept.count == 1)
    let evidence = directory.file("evidence/\(kept.first ?? "")")
    #expect(run.output.contains(evidence.path))
    let files = try FileManager.default.contentsOfDirectory(atPath: evidence.path)
    for file in [
      "report.txt", "chronicle.txt", "server.txt", "postgres.log", "node-1.log", "node-2.log",
      "device-4.log", "device-4.db",
    ] {
      #expect(files.contains(file), "\(file)")
    }
  }

  @Test("an interrupted run ends at once and leaves no process and no file behind")
  func interruption() async throws {
    let run = try ChildProcess(
      try Executables.ferryChaos(), ["run", "--devices", "3", "--duration", "60s", "--seed", "1"],
      environment: ["TMPDIR": directory.url.path], directory: directory.url)
    try await eventually("devices at work", from: run) {
      try processes().contains { $0.contains("sync") }
    }
    run.send(SIGINT)
    #expect(try await run.exitStatus() == .exited(130))
    try await eventually("no process to be left") { try processes().isEmpty }
    #expect(try leftovers() == [])
  }

  /// Returns the command lines of all processes with this test's directory in their environment.
  private func processes() throws -> [String] {
    let mark = "TMPDIR=\(directory.url.path)"
    return try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { name in
      guard Int32(name) != nil,
        let environment = try? String(contentsOfFile: "/proc/\(name)/environ", encoding: .utf8),
        environment.contains(mark)
      else { return nil }
      return try? String(contentsOfFile: "/proc/\(name)/cmdline", encoding: .utf8)
    }
  }

  private func leftovers() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory.url.path)
  }
}
