import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// How a mission is put in force and taken back, by the machine alone.
@Suite("A mission's changes", .hangLimit)
struct MissionChangeTests {
  private let space = SpaceState(epoch: Epoch(7), head: 41, historyHash: 9)
  private let id = MissionSamples.id("tour")

  private func publish(
    _ version: Int64, last: Int64, over stored: RecordState? = nil, count: Int = 0,
    in state: SpaceState? = nil, now: Int64 = 1_000
  ) -> Result<MissionChange.Decision, Problem> {
    MissionChange.publish(
      MissionSamples.record(version: version), last: last, stored: stored, count: count,
      in: state ?? space, now: now, random: 5)
  }

  private func state(_ effects: IngestEffects) throws -> RecordState {
    let row = try #require(effects.records.first)
    return try row.state.withUnsafeBytes { try RecordState(stored: $0, limits: .standard) }
  }

  @Test("a mission takes the next sequence as an operation of the server")
  func operation() throws {
    let decision = try publish(1, last: 0).get()
    let effects = decision.effects
    #expect(effects.space.head == 42)
    let row = try #require(effects.operations.first)
    #expect(row.sequence == 42 && row.device == ServerWrite.author && row.kind == .insert)
    #expect(row.key == RecordKey(table: "ferry_missions", record: "tour"))
    #expect(effects.space.newest == row.id)
    #expect(
      effects.space.historyHash == HistoryHash.appending(row.id, at: row.time, base: 41, to: 9))
    #expect(effects.records.map(\.isNew) == [true])
    #expect(MissionRecord(id, stored: try state(effects)) == decision.record)
  }

  @Test("a space has a limited number of missions, and those in force get new versions")
  func many() throws {
    let full = MissionLimits.standard.missions
    let first = try publish(1, last: 0, count: full - 1).get()
    guard case .failure(let problem) = publish(1, last: 0, count: full) else {
      Issue.record("one more than the limit was published")
      return
    }
    #expect(problem.code == .storageQuota && problem.detail.contains("10000 missions"))
    let next = publish(
      2, last: 1, over: try state(first.effects), count: full, in: first.effects.space)
    #expect(try !next.get().effects.isEmpty)
    // A retracted mission is a new one.
    let gone = MissionChange.retract(
      id, stored: try state(first.effects), in: first.effects.space, now: 5, random: 6)
    let back = publish(2, last: 1, over: try state(gone), count: full, in: gone.space)
    #expect(throws: Problem.self) { try back.get() }
  }

  @Test("a later version wins even if the server's clock went back")
  func clock() throws {
    let first = try publish(1, last: 0, now: 1_000_000).get()
    let second = try publish(
      2, last: 1, over: state(first.effects), in: first.effects.space, now: 5
    ).get()
    #expect(second.effects.operations.map(\.kind) == [.update])
    #expect(MissionRecord(id, stored: try state(second.effects)) == second.record)
    let gone = MissionChange.retract(
      id, stored: try state(second.effects), in: second.effects.space, now: 5, random: 6)
    #expect(gone.operations.map(\.kind) == [.delete] && gone.operations[0].data == nil)
    #expect(gone.records.map(\.isDead) == [true])
    let third = try publish(3, last: 2, over: state(gone), in: gone.space, now: 5).get()
    #expect(third.effects.operations.map(\.kind) == [.insert])
    #expect(MissionRecord(id, stored: try state(third.effects)) == third.record)
  }

  @Test("republishing a current version or retracting an absent mission has no effects")
  func nothing() throws {
    let first = try publish(1, last: 0).get()
    let again = try publish(1, last: 1, over: state(first.effects), now: 2_000).get()
    #expect(again.effects.isEmpty && again.record == first.record)
    #expect(MissionChange.retract(id, stored: nil, in: space, now: 1, random: 1).isEmpty)
    let gone = MissionChange.retract(
      id, stored: try state(first.effects), in: first.effects.space, now: 1, random: 1)
    #expect(
      MissionChange.retract(id, stored: try state(gone), in: space, now: 1, random: 1).isEmpty)
  }

  @Test("any other version than the next one is refused", arguments: [0, 1, 2, 3, 5, -1])
  func versions(version: Int64) throws {
    guard case .failure(let problem) = publish(version, last: 3) else {
      Issue.record("version \(version) replaced version 3")
      return
    }
    #expect(problem.code == .missionConflict)
    #expect(problem.detail.contains("the next version is 4"))
  }
}

/// Missions published by tests.
enum MissionSamples {
  static func id(_ text: String) -> MissionID {
    guard let id = MissionID(text) else { preconditionFailure("\(text) is no mission's name") }
    return id
  }

  static func record(_ name: String = "tour", version: Int64) -> MissionRecord {
    let hash = ContentHash((0..<32).map { UInt8($0) &+ UInt8(truncatingIfNeeded: version) })
    guard let hash else { preconditionFailure("32 bytes are a hash") }
    let manifest = MissionManifest(
      space: .known("notes"), id: id(name), version: version, title: "A tour",
      items: [MissionItem(path: "a", size: 5, hash: hash)])
    return MissionRecord(
      of: manifest, hash: hash, manifestSize: 77, signature: [UInt8](repeating: 3, count: 64),
      signer: [UInt8](repeating: 4, count: 32), publishedAt: 1_000)
  }
}
