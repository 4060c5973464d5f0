import FerrySimulation
import FerryTestSupport
import Foundation
import Testing

/// Two runs of one seed are the same, byte for byte.
@Suite(.hangLimit)
struct DeterminismTests {
  @Test("one seed results in one run", arguments: WorldOptions.Profile.allCases)
  func profiles(_ profile: WorldOptions.Profile) async throws {
    let options = WorldOptions.small(profile, devices: 4)
    let runs = [
      try await WorldThreads.world(7, options), try await WorldThreads.world(7, options),
    ]
    #expect(runs[0].traceHash == runs[1].traceHash)
    #expect(runs[0].happened == runs[1].happened)
    #expect(runs[0].steps == runs[1].steps)
    #expect(runs[0].virtualTime == runs[1].virtualTime)
    #expect(runs[0].faultCounts.map(\.count) == runs[1].faultCounts.map(\.count))
  }

  @Test("a world is drawn and run the same twice", arguments: 1...3)
  func drawn(_ seed: UInt64) async throws {
    let options = WorldOptions.drawn(seed: seed, devices: 4, operations: 80)
    #expect(options == .drawn(seed: seed, devices: 4, operations: 80))
    let first = try await WorldThreads.world(seed, options)
    #expect(first.traceHash == (try await WorldThreads.world(seed, options).traceHash))
  }

  @Test("a run that keeps all events is the same run")
  func kept() async throws {
    let options = WorldOptions.small(.hostile)
    let plain = try await WorldThreads.world(3, options)
    let kept = try await WorldThreads.world(3, options, keepsEvents: true)
    #expect(plain.traceHash == kept.traceHash)
    #expect(plain.events.isEmpty)
    #expect(kept.events.count == kept.counts.values.reduce(0, +))
    #expect(kept.events.map(\.at) == kept.events.map(\.at).sorted())
  }

  @Test("different seeds result in different runs")
  func different() async throws {
    var hashes = Set<String>()
    for seed in 1...6 as ClosedRange<UInt64> {
      hashes.insert(try await WorldThreads.world(seed, .small(.calm)).traceHash)
    }
    #expect(hashes.count == 6)
  }

  @Test("two processes have the same run", arguments: ["sqlite", "postgres"])
  func processes(_ store: String) async throws {
    let size = store == "sqlite" ? ["5", "100"] : ["3", "40"]
    var runs: [RunAnswer] = []
    for _ in 0..<2 {
      let finished = try await Self.simulate(
        "run", "--seed", "7", "--profile", "hostile", "--devices", size[0], "--operations", size[1],
        "--seconds", "40", "--store", store, "--json", "--no-shrink")
      runs.append(try RunAnswer(finished))
    }
    #expect(runs[0].trace == runs[1].trace)
    #expect(runs[0].faults == runs[1].faults)
    #expect(runs[0].violations == [])
  }

  @Test("the same world in this process and in another is one run")
  func between() async throws {
    let other = try RunAnswer(
      await Self.simulate("replay", "4", "--devices", "4", "--operations", "60", "--json"))
    let here = try await WorldThreads.world(4, .drawn(seed: 4, devices: 4, operations: 60))
    #expect(here.traceHash == other.trace)
    #expect(here.committed == other.operations)
  }

  private static func simulate(_ arguments: String...) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(try Executables.ferrySim(), arguments)
  }
}

/// The output of `ferry-sim run --json` and `ferry-sim replay --json`.
struct RunAnswer: Decodable {
  let seed: String
  let trace: String
  let passed: Bool
  let operations: Int
  let faults: [String: Int]
  let violations: [String]
  let replay: String
  let shrunk: [String]?

  init(_ finished: ChildProcess.Finished) throws {
    self = try JSONDecoder().decode(RunAnswer.self, from: Data(finished.output.utf8))
  }
}
