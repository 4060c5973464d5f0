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
    // There may be any number of these rows. No device needs them, so they go before the mission does.
    try await inSlices { try $0.forgetReports(of: id, in: space, upTo: $1) }
    try await endFormerBlobs(of: id, in: space)
    return try await change(space) { file, random in
      try file.retractMission(id, in: space, now: now, random: random, by: mark)
    }
  }

  private func endFormerBlobs(of id: MissionID, in space: Int64) async throws(StoreError) {
    let limit = slice.rows
    var place: [UInt8]? = []
    while let after = place {
      place = try await write {
        try $0.endFormerBlobs(of: id, in: space, after: after, upTo: limit)
      }
    }
  }

  package func changeBundle(
    _ id: BundleID, _ change: BundleChange, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    try await self.change(space) { file, random in
      try file.changeBundle(id, change, in: space, now: now, random: random, by: mark)
    }
  }

  package func storeUpload(
    _ blob: MissionBlob, in space: Int64, now: Int64
  ) async throws(StoreError) {
    try await write { try $0.storeUpload(blob, in: space, now: now) }
  }

  package func heldBlobs(
    among hashes: [ContentHash], in space: Int64
  ) async throws(StoreError) -> [MissionBlob] {
    try await read { try $0.heldBlobs(among: hashes, in: space) }
  }

  package func endBlobs(before moment: Int64) async throws(StoreError) -> Int {
    try await inSlices { try $0.endBlobs(before: moment, upTo: $1) }
  }

  package func neededBlobs(
    among hashes: [ContentHash]
  ) async throws(StoreError) -> [ContentHash] {
    // Not from a reader: a publication committed a moment ago counts.
    try await write { try $0.neededBlobs(among: hashes) }
  }
}
