import FerryProtocol

/// Content of a mission, by hash.
package struct MissionBlob: Sendable, Hashable, Comparable {
  package let hash: ContentHash
  /// Bytes.
  package let size: Int64

  package init(hash: ContentHash, size: Int64) {
    (self.hash, self.size) = (hash, size)
  }

  package static func < (left: MissionBlob, right: MissionBlob) -> Bool {
    (left.hash, left.size) < (right.hash, right.size)
  }
}

/// Uploaded content of a space, named by no mission yet.
package struct UnpublishedUse: Sendable, Equatable {
  package var files: Int64
  package var bytes: Int64

  package init(files: Int64 = 0, bytes: Int64 = 0) { (self.files, self.bytes) = (files, bytes) }
}

/// A mission as a store knows it.
package struct StoredMission: Sendable, Equatable {
  /// The last published version, even if retracted since.
  package let lastVersion: Int64
  /// `nil` if it was retracted.
  package let record: MissionRecord?

  package init(lastVersion: Int64, record: MissionRecord?) {
    (self.lastVersion, self.record) = (lastVersion, record)
  }
}

/// A part of the list of a space's missions.
package struct MissionPage: Sendable, Equatable {
  /// Records of a page at most.
  package static let countMax = 1_000
  /// Bytes of a page's records as they are stored; the first record is always in it.
  package static let bytesMax = 1 << 20

  package let records: [MissionRecord]
  /// The place at which the list continues; `nil` at the end.
  package let next: MissionID?

  package init(records: [MissionRecord] = [], next: MissionID? = nil) {
    (self.records, self.next) = (records, next)
  }
}

extension PublishedMissionStore {
  /// Returns all missions in force, by the bytes of their names.
  package func missions(in space: Int64) async throws(StoreError) -> [MissionRecord] {
    var (records, place) = ([MissionRecord](), MissionID?.none)
    repeat {
      let page = try await missions(in: space, after: place, limit: MissionPage.countMax)
      records += page.records
      place = page.next
    } while place != nil
    return records.sorted { $0.id < $1.id }
  }
}

/// The published missions of a store, and the readable content of each space. The content itself is
/// elsewhere.
///
/// A space may read the content of its missions in force. It may read that of their former versions
/// until ``endBlobs(before:)`` forgets it, so a device can finish a download. The content of a
/// retracted mission ends with the mission.
package protocol PublishedMissionStore: Sendable {
  /// Returns a mission; `nil` if no such mission was ever published.
  func mission(_ id: MissionID, in space: Int64) async throws(StoreError) -> StoredMission?

  /// Returns missions in force in the order of their names, UUIDs last.
  ///
  /// - Parameters:
  ///   - mission: The place of the list before the page; `nil` for the start.
  ///   - limit: The records to read.
  func missions(
    in space: Int64, after mission: MissionID?, limit: Int
  ) async throws(StoreError) -> MissionPage

  /// Puts a mission in force as an operation of the server, and lets the space read its content.
  /// Returns the record in force; an equal record changes nothing. Any version but the next one is
  /// refused with ``ProblemCode/missionConflict``.
  ///
  /// - Parameters:
  ///   - blobs: The manifest's document and the content of hosted items, each once.
  ///   - now: The wall clock, milliseconds since 1970.
  func publishMission(
    _ record: MissionRecord, blobs: [MissionBlob], in space: Int64, now: Int64,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem>

  /// Changes the rollout of a published bundle as an operation of the server's. Returns the record
  /// in force; the same change again writes nothing. ``ProblemCode/notFound`` if there is no such
  /// version, and ``ProblemCode/missionConflict`` if it was withdrawn.
  func changeBundle(
    _ id: BundleID, _ change: BundleChange, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem>

  /// Deletes a mission's record, and the reports about it. Returns whether it was in force.
  func retractMission(
    _ id: MissionID, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool

  /// Returns the content uploaded to a space and named by no mission yet.
  func unpublishedUse(in space: Int64) async throws(StoreError) -> UnpublishedUse

  /// Records content uploaded by a space's admin, which no device may read yet.
  func storeUpload(_ blob: MissionBlob, in space: Int64, now: Int64) async throws(StoreError)

  /// Returns the contents named by the space's missions or uploaded by its admins. In order.
  func heldBlobs(
    among hashes: [ContentHash], in space: Int64
  ) async throws(StoreError) -> [MissionBlob]

  /// Returns the content, if a mission of one of these spaces names it.
  func readableBlob(
    _ hash: ContentHash, in pattern: SpacePattern
  ) async throws(StoreError) -> MissionBlob?

  /// Forgets the content of former versions, and unpublished uploads, if their use ended before
  /// `moment` (milliseconds since 1970). Returns the number of entries.
  func endBlobs(before moment: Int64) async throws(StoreError) -> Int

  /// Returns the contents still needed by some space. In order.
  func neededBlobs(among hashes: [ContentHash]) async throws(StoreError) -> [ContentHash]
}
