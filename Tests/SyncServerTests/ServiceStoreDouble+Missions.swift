import FerryProtocol

@testable import FerrySyncServer

/// Nothing is published in the double; tests send requests for missions to a real store.
extension ServiceStoreDouble {
  func mission(_ id: MissionID, in space: Int64) async throws(StoreError) -> StoredMission? { nil }

  func missions(
    in space: Int64, after mission: MissionID?, limit: Int
  ) async throws(StoreError) -> MissionPage {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      return MissionPage()
    }
  }

  func publishMission(
    _ record: MissionRecord, blobs: [MissionBlob], in space: Int64, now: Int64,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem> { .success(record) }

  func changeBundle(
    _ id: BundleID, _ change: BundleChange, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    .failure(.unknownBundle(id))
  }

  func storeBundleReports(
    _ reports: [BundleReport], of device: DeviceID, in space: Int64, now: Int64,
    by principal: Principal, quota: Int64
  ) async throws(StoreError) -> Result<Int, Problem> { .success(0) }

  func bundleTallies(
    of bundles: [BundleID], in space: Int64, latest: Int
  ) async throws(StoreError) -> [BundleID: BundleTally] { [:] }

  func retractMission(
    _ id: MissionID, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool { false }

  func unpublishedUse(in space: Int64) async throws(StoreError) -> UnpublishedUse {
    UnpublishedUse()
  }

  func storeUpload(_ blob: MissionBlob, in space: Int64, now: Int64) async throws(StoreError) {}

  func heldBlobs(
    among hashes: [ContentHash], in space: Int64
  ) async throws(StoreError) -> [MissionBlob] { [] }

  func readableBlob(
    _ hash: ContentHash, in pattern: SpacePattern
  ) async throws(StoreError) -> MissionBlob? { nil }

  func endBlobs(before moment: Int64) async throws(StoreError) -> Int { 0 }

  func neededBlobs(
    among hashes: [ContentHash]
  ) async throws(StoreError) -> [ContentHash] { hashes }
}
