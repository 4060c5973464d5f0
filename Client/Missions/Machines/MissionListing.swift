import FerryProtocol

/// Combines the catalogue, the rows and the queue into a list of missions (SPEC.md §21).
enum MissionListing {
  /// Returns every mission that is published, is here, or ended without being here, by name.
  static func list(
    catalogue: [MissionRecord], rows: [MissionRow], endings: [MissionEnding]
  ) -> [MissionStatus] {
    var found: [MissionID: MissionStatus] = [:]
    for record in catalogue {
      var status = MissionStatus(record)
      status.publishedVersion = record.version
      found[record.id] = status
    }
    for ending in endings {
      var status = found[ending.version.mission] ?? MissionStatus(ending)
      status.state = ending.state
      status.reason = ending.reason
      found[ending.version.mission] = status
    }
    for row in rows.filter(\.isActive) {
      found.apply(row, activeVersion: row.record.version)
      let isOther = catalogue.contains {
        $0.id == row.record.id && $0.version == row.record.version
          && $0.manifest != row.record.manifest
      }
      if isOther { found[row.record.id]?.isRepublished = true }
    }
    for row in rows.filter({ !$0.isComplete }) {
      found.apply(row, activeVersion: found[row.record.id]?.activeVersion)
    }
    return found.values.sorted { $0.id < $1.id }
  }
}

extension [MissionID: MissionStatus] {
  /// Applies a row: it overrides earlier facts, except for the end of a later attempt.
  fileprivate mutating func apply(_ row: MissionRow, activeVersion: Int64?) {
    let known = self[row.record.id]
    var status = MissionStatus(row.record)
    status.publishedVersion = known?.publishedVersion
    status.isRepublished = known?.isRepublished ?? false
    status.activeVersion = activeVersion
    let isEnded = row.isComplete && (known?.state == .failed || known?.state == .cancelled)
    status.state = isEnded ? known?.state : row.state
    status.reason = isEnded ? known?.reason : row.reason
    status.itemsDone = row.itemsDone
    status.bytesDone = row.bytesDone
    self[row.record.id] = status
  }
}

extension MissionStatus {
  /// Creates the status of a mission from the catalogue.
  init(_ record: MissionRecord) {
    self.init(
      id: record.id, version: record.version, title: record.title, summary: record.summary,
      items: record.items, itemsDone: 0, bytesDone: 0, bytesTotal: record.size)
  }

  fileprivate init(_ ending: MissionEnding) {
    self.init(
      id: ending.version.mission, version: ending.published, title: ending.title,
      summary: "", items: 0, itemsDone: 0, bytesDone: 0, bytesTotal: 0)
  }
}
