import FerryCommandLine
import FerryConformance
import Foundation

/// One process of a run: makes inputs, has them read, and checks the properties.
struct FuzzWorker {
  /// Bytes by which reading one input may raise the process's memory peak.
  private static let memoryMax = 96 << 20
  /// Inputs of one target from which others are made.
  private static let samplesMax = 600
  private static let reportEach = 20_000

  let targets: [FuzzTarget]
  let corpus: FuzzCorpus
  let fixtures: URL
  let seed: UInt64

  /// A target's inputs and results.
  private struct State {
    var valid: [FuzzSample]
    var refused: [FuzzSample] = []
    var cases = 0
    var read = 0
    var kinds: [String: Int] = [:]
    /// Kinds without a kept input.
    var new: [(kind: String, bytes: [UInt8])] = []
  }

  /// Reads `cases` inputs. Prints a line for each target at the end.
  ///
  /// - Parameter box: The file for the present input.
  /// - Throws: ``FuzzFinding`` for a violated property.
  func run(_ cases: Int, box path: String) async throws {
    let box = try FuzzBox(writing: path)
    let scratch = URL(filePath: path).deletingLastPathComponent()
    var states = try targets.map { try state(of: $0) }
    var mutator = FuzzMutator(SeededRandom(seed, "fuzz"))
    let requests = targets.firstIndex { $0.name == FuzzService.name }
    let service = requests == nil ? nil : try await FuzzService(seed: seed, scratch: scratch)
    defer { service?.close() }
    for number in 0..<cases {
      if number % Self.reportEach == 0 { try TextOutput.standardOutput.line("at \(number)") }
      var place = mutator.below(targets.count)
      // A request costs as much as thirty messages.
      if place == requests, targets.count > 1, mutator.below(4) > 0 {
        place = (place + 1) % targets.count
      }
      let input = mutator.input(
        valid: states[place].valid, refused: states[place].refused)
      try box.write(place, input)
      let before = Self.memoryPeak()
      let kind =
        if place == requests, let service { try await service.read(input) } else {
          try read(input, targets[place], isChecked: number % 8 == 0)
        }
      let growth = Self.memoryPeak() - before
      guard growth <= Self.memoryMax else {
        throw FuzzFinding("\(input.count) bytes took \(growth >> 20) MiB of memory")
      }
      record(kind, input, in: &states[place])
    }
    for (target, state) in zip(targets, states) { try report(target, state) }
  }

  /// Reads one input, some of them twice: the same bytes have the same result.
  private func read(_ input: [UInt8], _ target: FuzzTarget, isChecked: Bool) throws -> String {
    let kind = try target.read(input)
    guard isChecked, try target.read(input) != kind else { return kind }
    throw FuzzFinding("the same bytes are read as another kind than \(kind)")
  }

  private func record(_ kind: String, _ input: [UInt8], in state: inout State) {
    state.cases += 1
    let isRead = Self.isRead(kind)
    if isRead { state.read += 1 }
    let count = state.kinds[kind, default: 0]
    state.kinds[kind] = count + 1
    guard count == 0, input.count <= 4 << 10 else { return }
    state.new.append((kind, input))
    if isRead, state.valid.count < Self.samplesMax {
      state.valid.append(FuzzSample(input))
    } else if !isRead, state.refused.count < Self.samplesMax {
      state.refused.append(FuzzSample(input))
    }
  }

  /// Returns `true` if a kind of result is a value, or an answer other than a refusal.
  private static func isRead(_ kind: String) -> Bool {
    !["refused", "finding", "4"].contains { kind.hasPrefix($0) }
  }

  private func report(_ target: FuzzTarget, _ state: State) throws {
    let output = TextOutput.standardOutput
    try output.line("target \(target.name) \(state.cases) \(state.read)")
    for (kind, bytes) in state.new {
      try output.line("kind \(target.name)\t\(kind)\t\(FuzzCorpus.text(bytes))")
    }
  }

  // MARK: Samples

  private func state(of target: FuzzTarget) throws -> State {
    var inputs = target.samples.map { Array($0.utf8) }
    if target.name == FuzzService.name {
      var bodies: [String: [[UInt8]]] = [:]
      for other in FuzzTarget.messages {
        bodies[other.name] = try files(of: other) + other.samples.map { Array($0.utf8) }
      }
      inputs = FuzzService.samples(bodies)
    }
    inputs += try files(of: target)
    guard !inputs.isEmpty else { throw FuzzFinding("\(target.name) has no samples") }
    let kept = try corpus.inputs(of: target.name)
    inputs += kept.filter { Self.isRead($0.kind) }.map(\.bytes)
    return State(
      valid: inputs.map { FuzzSample($0) },
      refused: kept.filter { !Self.isRead($0.kind) }.map { FuzzSample($0.bytes) })
  }

  private func files(of target: FuzzTarget) throws -> [[UInt8]] {
    try target.fixtures.flatMap { name in
      let place = fixtures.appending(path: name)
      let names =
        name.hasSuffix(".json")
        ? [place]
        : try FileManager.default.contentsOfDirectory(
          at: place, includingPropertiesForKeys: nil
        ).sorted { $0.path < $1.path }
      return try names.map { Array(try Data(contentsOf: $0)) }
    }
  }

  private static func memoryPeak() -> Int {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return Int(usage.ru_maxrss) << 10
  }
}
