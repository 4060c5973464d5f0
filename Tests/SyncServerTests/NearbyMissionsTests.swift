import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("A mission and the others of its space", .hangLimit)
struct NearbyMissionsTests {
  private func manifest(_ id: String, after: [String] = []) throws -> MissionManifest {
    MissionManifest(
      space: .known("notes"), id: try #require(MissionID(id)), version: 1,
      after: try after.map { try #require(MissionID($0)) },
      items: [MissionItem(path: "a", size: 1, hash: ContentHash(of: [1]))])
  }

  private func record(
    _ id: String, after: [String] = [], signer: UInt8 = 1
  ) throws -> MissionRecord {
    MissionRecord(
      of: try manifest(id, after: after), hash: ContentHash(of: [2]), manifestSize: 1,
      signature: [], signer: [signer], publishedAt: 0)
  }

  @Test("a name that differs from another mission's only in case is refused")
  func names() throws {
    let others = NearbyMissions([try record("Tour"), try record("base")])
    let problem = others.problem(with: try manifest("tour"))
    #expect(problem?.code == .missionConflict && problem?.detail.contains("mission Tour") == true)
    #expect(others.problem(with: try manifest("Tour")) == nil)
    #expect(others.problem(with: try manifest("tour-2")) == nil)
  }

  @Test("a circle of missions is refused with their names")
  func circles() throws {
    let others = NearbyMissions([
      try record("a", after: ["b", "x"]), try record("b", after: ["c", "d"]), try record("d"),
    ])
    let problem = others.problem(with: try manifest("c", after: ["d", "a"]))
    #expect(problem?.code == .missionConflict)
    #expect(problem?.detail.hasSuffix("c → a → b → c") == true, "\(problem?.detail ?? "")")
    #expect(others.problem(with: try manifest("c", after: ["d", "nowhere"])) == nil)
    // The earlier dependencies count no more.
    #expect(others.problem(with: try manifest("b")) == nil)
    #expect(others.problem(with: try manifest("d", after: ["a"])) != nil)
  }

  @Test("a key that differs from all other missions' keys is noticed")
  func signers() throws {
    #expect(NearbyMissions([]).signer(besides: [1]) == nil)
    #expect(NearbyMissions([try record("a")]).signer(besides: [1]) == nil)
    #expect(NearbyMissions([try record("a")]).signer(besides: [2]) == [1])
    // A publisher has agreed to it when the first one was published.
    let both = NearbyMissions([try record("a"), try record("b", signer: 2)])
    #expect(both.signer(besides: [2]) == nil)
  }
}
