import FerryProtocol
import FerrySyncServer

// Missions, bundles and their content.
extension StandStillStore {
  func mission(
    _ id: MissionID, in space: Int64
  ) async throws(StoreError) -> StoredMission? {
    try await still { store async throws(StoreError) in try await store.mission(id, in: space) }
  }

  func missions(
    in space: Int64, after mission: MissionID?, limit: Int
  ) async throws(StoreError) -> MissionPage {
    try await still { store async throws(StoreError) in
      try await store.missions(in: space, after: mission, limit: limit)
    }
  }

  func publishMission(
    _ record: MissionRecord, blobs: [MissionBlob], in space: Int64, now: Int64,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    try await still { store async throws(StoreError) in
      try await store.publishMission(record, blobs: blobs, in: space, now: now, by: mark)
    }
  }

  func changeBundle(
    _ id: BundleID, _ change: BundleChange, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    try await still { store async throws(StoreError) in
      try await store.changeBundle(id, change, in: space, now: now, by: mark)
    }
  }

  func storeBundleReports(
    _ reports: [BundleReport], of device: DeviceID, in space: Int64, now: Int64,
    by principal: Principal, quota: Int64
  ) async throws(StoreError) -> Result<Int, Problem> {
    try await still { store async throws(StoreError) in
      try await store.storeBundleReports(
        reports, of: device, in: space, now: now, by: principal, quota: quota)
    }
  }

  func bundleTallies(
    of bundles: [BundleID], in space: Int64, latest: Int
  ) async throws(StoreError) -> [BundleID: BundleTally] {
    try await still { store async throws(StoreError) in
      try await store.bundleTallies(of: bundles, in: space, latest: latest)
    }
  }

  func retractMission(
    _ id: MissionID, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool {
    try await still { store async throws(StoreError) in
      try await store.retractMission(id, in: space, now: now, by: mark)
    }
  }

  func storeUpload(_ blob: MissionBlob, in space: Int64, now: Int64) async throws(StoreError) {
    try await still { store async throws(StoreError) in
      try await store.storeUpload(blob, in: space, now: now)
    }
  }

  func heldBlobs(
    among hashes: [ContentHash], in space: Int64
  ) async throws(StoreError) -> [MissionBlob] {
    try await still { store async throws(StoreError) in
      try await store.heldBlobs(among: hashes, in: space)
    }
  }

  func readableBlob(
    _ hash: ContentHash, in pattern: SpacePattern
  ) async throws(StoreError) -> MissionBlob? {
    try await still { store async throws(StoreError) in
      try await store.readableBlob(hash, in: pattern)
    }
  }

  func endBlobs(before moment: Int64) async throws(StoreError) -> Int {
    try await still { store async throws(StoreError) in try await store.endBlobs(before: moment) }
  }

  func neededBlobs(
    among hashes: [ContentHash]
  ) async throws(StoreError) -> [ContentHash] {
    try await still { store async throws(StoreError) in
      try await store.neededBlobs(among: hashes)
    }
  }
}
