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

extension SyncStore {
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
