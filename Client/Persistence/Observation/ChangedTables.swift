import FerrySQLite

/// The changed rows of a table.
package enum ChangedRows: Sendable, Equatable {
  /// Any rows.
  case all
  /// These rows, as they were before a change or are after it.
  case rows([SQLiteRowImage], TableShape)
}

/// Changed tables.
package enum ChangedTables: Sendable, Equatable {
  /// The most comparisons for one table and one query. With more, the query runs without them.
  static let comparisonsMax = 100_000

  case some([String: ChangedRows])
  /// Another process has changed the file, or the schema is another one.
  case unknown

  /// Returns true if this part of the file may have changed.
  func concern(_ region: ReadRegion) -> Bool {
    guard case .some(let changed) = self else { return true }
    return region.tables.contains { table, rows in
      switch changed[table] {
      case nil: false
      case .all: true
      case .rows(let images, let shape): rows.isAll || Self.concern(images, of: shape, rows)
      }
    }
  }

  private static func concern(
    _ images: [SQLiteRowImage], of shape: TableShape, _ rows: ReadRegion.Rows
  ) -> Bool {
    if rows.valueCount > comparisonsMax / max(images.count, 1) { return true }
    return images.contains { image in
      rows.conditions.contains { $0.mayHold(for: image, of: shape) }
    }
  }

  mutating func add(_ other: ChangedTables) {
    guard case .some(let new) = other, case .some(let known) = self else {
      self = .unknown
      return
    }
    self = .some(
      known.merging(new) { known, new in
        guard case .rows(let images, let shape) = known, case .rows(let more, shape) = new,
          images.count + more.count <= SQLiteChanges.imagesMax
        else { return .all }
        return .rows(images + more, shape)
      })
  }
}
