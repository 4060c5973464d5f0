import FerryProtocol

/// An entry named by a call and missing from the replica.
public enum MissingEntry: Sendable, Equatable, CustomStringConvertible {
  /// No conflict of the space has the number.
  case conflict(Int64)
  /// This device's history has no operation with the identifier, or with such a beginning of it.
  case operation(String)
  /// The quarantine has no entry of the number.
  case quarantineEntry(Int64)
  /// A record of an upload-only table has no failed change.
  case failedChange(table: Name, record: Name)
  /// The file has no table of the name.
  case table(String)
  /// The file has not joined the space.
  case space(String)
  /// The file has left the space of this replica.
  case leftSpace

  public var description: String {
    switch self {
    case .conflict(let number): "there is no conflict \(number)"
    case .operation(let text): "this device has no operation \(text)"
    case .quarantineEntry(let number): "the quarantine has no entry \(number)"
    case .failedChange(let table, let record): "\(table) \(record) has no failed change"
    case .table(let name): "there is no table \(name)"
    case .space(let name): "this file has not joined the space '\(name)'"
    case .leftSpace: "the file has left this space"
    }
  }
}
