import FerryPlatform
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

  public var description: String { explanation.description }

  /// The entry in words for each reader.
  var explanation: Explanation {
    let (event, reason, next) =
      switch self {
      case .conflict(let number):
        (
          "there is no conflict \(number)", "no conflict of this space has this number",
          "`ferry conflicts` lists them; --in SPACE names another space"
        )
      case .operation(let text):
        (
          "this device has no operation \(text)",
          "its history has none with this identifier; confirmed operations stay for 14 days",
          "`ferry history` lists them"
        )
      case .quarantineEntry(let number):
        (
          "the quarantine has no entry \(number)",
          "the entry was written again or discarded, or another space has it",
          "`ferry quarantine list` lists the entries; --in SPACE names another space"
        )
      case .failedChange(let table, let record):
        (
          "\(table) \(record) has no failed change", "the server has not rejected a change of it",
          "`ferry uploads` lists the rows that the server has not confirmed"
        )
      case .table(let name):
        (
          "there is no table \(name)", "the file has no table of this name",
          "`.tables` in `ferry sql` lists the tables"
        )
      case .space(let name):
        (
          "this file has not joined the space '\(name)'",
          "each command works on one of the file's spaces",
          "`ferry spaces` lists them; "
            + SuggestedCommand.line("ferry join", [name], or: "SPACE") + " joins this one"
        )
      case .leftSpace:
        (
          "the file has left this space", "another program has left it",
          "`ferry spaces` lists the file's spaces"
        )
      }
    return Explanation(
      "not_found", event, reason, next: next,
      user: ("This entry does not exist any more.", "Choose another entry."), description: event)
  }
}
