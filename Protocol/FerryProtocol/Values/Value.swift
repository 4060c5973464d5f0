/// The value of one column: SQLite's five storage classes. NaN does not exist in SQLite (it stores
/// NULL), so it does not exist here.
public enum Value: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])

  /// About how many bytes the value takes in memory and on disk.
  package var byteCount: Int {
    switch self {
    case .null: 1
    case .integer, .real: 8
    case .text(let text): text.utf8.count
    case .blob(let bytes): bytes.count
    }
  }

  /// About how many bytes the value takes as JSON; escapes need more.
  package var jsonBytes: Int {
    switch self {
    case .null: 4
    case .integer, .real: 24
    case .text(let text): text.utf8.count + 2
    case .blob(let bytes): (bytes.count + 2) / 3 * 4 + 16
    }
  }

  // Doubles compare by their bits, so -0.0 and 0.0 are two values and every value equals itself:
  // the sync compares stored bytes, not numbers.
  public static func == (left: Value, right: Value) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.integer(let left), .integer(let right)): left == right
    case (.real(let left), .real(let right)): left.bitPattern == right.bitPattern
    case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
    case (.blob(let left), .blob(let right)): left == right
    default: false
    }
  }

  public func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0)
    case .integer(let value): hasher.combine(value)
    case .real(let value): hasher.combine(value.bitPattern)
    case .text(let value):
      for byte in value.utf8 { hasher.combine(byte) }
    case .blob(let value): hasher.combine(value)
    }
  }
}

/// A named value.
public struct Column: Hashable, Sendable {
  /// The column's name, ``Limits/nameBytes`` at most.
  public let name: Name
  /// The column's value.
  public let value: Value

  /// About how many bytes the column takes as JSON; escapes need more.
  package var jsonBytes: Int { name.utf8.count + value.jsonBytes + 4 }

  /// Creates a column from the given parts.
  public init(_ name: Name, _ value: Value) {
    self.name = name
    self.value = value
  }

  /// Creates a column from the given parts, the name as a text.
  public init(_ name: String, _ value: Value) { self.init(Name(name), value) }
}
