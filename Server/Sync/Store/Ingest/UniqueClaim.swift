import FerryCryptography
import FerryProtocol

/// The values of one unique key, which one record of a table may hold at a time (SPEC.md §11).
package struct UniqueClaim: Sendable, Hashable, Comparable {
  /// The longest JSON stored unchanged, in bytes: PostgreSQL's indexes bound a key's size.
  static let plainBytes = 512

  package let table: Name
  /// The key's columns as a JSON array; longer ones as `#` and their SHA-256.
  package let columns: [UInt8]
  /// Their values in the same order, written in the same way.
  package let value: [UInt8]

  package init(table: Name, columns: [UInt8], value: [UInt8]) {
    self.table = table
    self.columns = columns
    self.value = value
  }

  /// Creates the claim of `key` by a record with these columns; `nil` if one of them is NULL or
  /// absent.
  init?(table: Name, key: [Name], value: (Name) -> Value?) {
    var json = JSONWriter(capacity: 64)
    json.beginArray()
    for column in key {
      guard let value = value(column), value != .null else { return nil }
      json.element()
      json.value(value.comparable)
    }
    json.endArray()
    self.init(
      table: table, columns: Self.stored(columns: key), value: Self.bounded(json.finish()))
  }

  /// Returns the stored form of a key's columns.
  static func stored(columns: [Name]) -> [UInt8] {
    var json = JSONWriter(capacity: 64)
    json.array(of: columns)
    return bounded(json.finish())
  }

  private static func bounded(_ json: [UInt8]) -> [UInt8] {
    if json.count <= plainBytes { return json }
    let digest = SHA256.digest(of: String(decoding: json, as: UTF8.self))
    return [0x23] + digest.flatMap { [hexDigit(UInt64($0 >> 4)), hexDigit(UInt64($0))] }
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(value)
    hasher.combine(columns)
  }

  package static func < (left: UniqueClaim, right: UniqueClaim) -> Bool {
    if left.table != right.table { return left.table < right.table }
    if left.columns != right.columns {
      return left.columns.lexicographicallyPrecedes(right.columns)
    }
    return left.value.lexicographicallyPrecedes(right.value)
  }
}

extension RecordState {
  /// Returns the record's claims of a table's unique keys; none while it does not exist.
  func claims(in table: Name, _ keys: [[Name]]) -> [UniqueClaim] {
    if !isAlive { return [] }
    return keys.compactMap { key in
      UniqueClaim(table: table, key: key) { value(of: $0) }
    }
  }

  /// Returns the value of a column; `nil` if the record has no such column.
  func value(of column: Name) -> Value? {
    let place = columns.partitioningIndex { $0.name >= column }
    return place < columns.count && columns[place].name == column ? columns[place].value : nil
  }
}

extension Value {
  /// The same for all values equal in SQL: a real without a fraction is its integer.
  fileprivate var comparable: Value {
    if case .real(let real) = self, let integer = Int64(exactly: real) {
      .integer(integer)
    } else {
      self
    }
  }
}
