import FerryProtocol

extension SQLiteStore {
  package func mission(
    _ id: MissionID, in space: Int64
  ) async throws(StoreError) -> StoredMission? {
    try await read { try $0.mission(id, in: space) }
  }

  package func publishMission(
    _ record: MissionRecord, blobs: [MissionBlob], in space: Int64, now: Int64,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    try await change(space) { file, random in
      try file.publishMission(record, blobs: blobs, in: space, now: now, random: random, by: mark)
    }
  }

  package func retractMission(
    _ id: MissionID, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool {
    try await change(space) { file, random in
      try file.retractMission(id, in: space, now: now, random: random, by: mark)
    }
  }

  package func changeBundle(
    _ id: BundleID, _ change: BundleChange, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    try await self.change(space) { file, random in
      try file.changeBundle(id, change, in: space, now: now, random: random, by: mark)
    }
  }

  package func noteUpload(
    _ blob: MissionBlob, in space: Int64, now: Int64
  ) async throws(StoreError) {
    try await write { try $0.noteUpload(blob, in: space, now: now) }
  }

  package func heldBlobs(
    among hashes: [ContentHash], in space: Int64
  ) async throws(StoreError) -> [MissionBlob] {
    try await read { try $0.heldBlobs(among: hashes, in: space) }
  }

  package func neededBlobs(
    among hashes: [ContentHash]
  ) async throws(StoreError) -> [ContentHash] {
    // Not from a reader: a publication that has just been committed counts.
    try await write { try $0.neededBlobs(among: hashes) }
  }
}
