/// One replica. A cloned or restored device takes a new one.
public struct DeviceID: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The UUID on the wire.
  public let value: UniqueID

  /// Wraps a UUID.
  public init(_ value: UniqueID) { self.value = value }

  /// Parses the 36-character UUID form.
  public init?(_ text: some StringProtocol) {
    guard let value = UniqueID(text) else { return nil }
    self.value = value
  }

  /// The server itself, as the author of records: the nil UUID, which no device may take.
  package static let server = DeviceID(UniqueID(high: 0, low: 0))

  public var description: String { value.description }

  public static func < (left: DeviceID, right: DeviceID) -> Bool { left.value < right.value }
}

/// One operation of one device; unique in the space, and assigned when the user's data is written
/// (SPEC.md §2).
public struct OperationID: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The UUID on the wire.
  public let value: UniqueID

  /// Wraps a UUID.
  public init(_ value: UniqueID) { self.value = value }

  /// Parses the 36-character UUID form.
  public init?(_ text: some StringProtocol) {
    guard let value = UniqueID(text) else { return nil }
    self.value = value
  }

  public var description: String { value.description }

  public static func < (left: OperationID, right: OperationID) -> Bool {
    left.value < right.value
  }
}

/// The unit of sync and of permission, with a separate total order of changes.
///
/// 1 to 63 characters of `A–Z a–z 0–9 . _ -`, the first one a letter or digit.
public struct SpaceName: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The name as in a URL.
  public let value: String

  /// Creates a name; `nil` if it breaks the rule.
  public init?(_ value: String) {
    let bytes = value.utf8
    guard (1...63).contains(bytes.count), let first = bytes.first, isAlphanumeric(first),
      bytes.allSatisfy({ isAlphanumeric($0) || $0 == 0x2E || $0 == 0x5F || $0 == 0x2D })
    else { return nil }
    self.value = value
  }

  private init(unchecked value: String) { self.value = value }

  /// Stands for a name that is read next.
  package static let blank = SpaceName(unchecked: "-")

  public var description: String { value }

  public static func < (left: SpaceName, right: SpaceName) -> Bool { left.value < right.value }
}

private func isAlphanumeric(_ byte: UInt8) -> Bool {
  (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
}

/// A change's place in the order of the space: 1, 2, 3, … without gaps that a reader could skip.
public typealias SequenceNumber = Int64

/// One row of one table.
public struct RecordKey: Hashable, Sendable, Comparable {
  /// The table's name, ``Limits/nameBytes`` at most.
  public let table: Name
  /// The record's identifier, which the app chose.
  public let record: Name

  /// Creates a key from the given parts.
  public init(table: Name, record: Name) {
    self.table = table
    self.record = record
  }

  /// Creates a key from the two parts as texts.
  public init(table: String, record: String) {
    self.init(table: Name(table), record: Name(record))
  }

  public func hash(into hasher: inout Hasher) {
    record.hash(into: &hasher)
    table.hash(into: &hasher)
  }

  public static func < (left: RecordKey, right: RecordKey) -> Bool {
    left.table == right.table ? left.record < right.record : left.table < right.table
  }
}
