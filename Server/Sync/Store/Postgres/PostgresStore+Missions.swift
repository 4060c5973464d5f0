import FerryPostgres
import FerryProtocol

extension PostgresStore {
  package func mission(
    _ id: MissionID, in space: Int64
  ) async throws(StoreError) -> StoredMission? {
    try await run { try PostgresMissions(space: space, now: 0).mission(id, on: $0) }
  }

  package func publishMission(
    _ record: MissionRecord, blobs: [MissionBlob], in space: Int64, now: Int64,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    let missions = PostgresMissions(space: space, now: now, mark: mark)
    let random = makeRandom()
    let (head, answer) = try await run { [timelines] connection in
      try missions.publish(record, blobs, random: random, timelines: timelines, on: connection)
    }
    if let head { notify(head, of: space) }
    return answer
  }

  package func retractMission(
    _ id: MissionID, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool {
    let missions = PostgresMissions(space: space, now: now, mark: mark)
    let random = makeRandom()
    let head = try await run { [timelines] connection in
      try missions.retract(id, random: random, timelines: timelines, on: connection)
    }
    if let head { notify(head, of: space) }
    return head != nil
  }

  package func changeBundle(
    _ id: BundleID, _ change: BundleChange, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    let missions = PostgresMissions(space: space, now: now, mark: mark)
    let random = makeRandom()
    let (head, answer) = try await run { [timelines] connection in
      try missions.change(id, by: change, random: random, timelines: timelines, on: connection)
    }
    if let head { notify(head, of: space) }
    return answer
  }

  package func storeUpload(
    _ blob: MissionBlob, in space: Int64, now: Int64
  ) async throws(StoreError) {
    try await run { try PostgresMissions(space: space, now: now).storeUpload(blob, on: $0) }
  }

  package func heldBlobs(
    among hashes: [ContentHash], in space: Int64
  ) async throws(StoreError) -> [MissionBlob] {
    try await run { try PostgresMissions(space: space, now: 0).held(among: hashes, on: $0) }
  }

  package func endBlobs(before moment: Int64) async throws(StoreError) -> Int {
    try await run { try PostgresMissions.endBlobs(before: moment, on: $0) }
  }

  package func neededBlobs(
    among hashes: [ContentHash]
  ) async throws(StoreError) -> [ContentHash] {
    try await run { [isDistributed] connection in
      try PostgresMissions.needed(among: hashes, isDistributed: isDistributed, on: connection)
    }
  }
}
