import Foundation

/// A description and a remedy for the app's user. `failureReason` has SQLite's message, for the app's
/// developers.
extension DatabaseError: LocalizedError {
  /// Creates an error for the texts alone.
  package init(code: Int32) { self.init("", code: code) }

  public var errorDescription: String? {
    switch code & 0xFF {
    case 8: "The app's data is read-only."
    case 10, 14: "The app's data cannot be read from the disk."
    case 11, 26: "The app's data is damaged."
    case 13: "The disk is full."
    case 19: "The entry breaks a rule of the app's data, such as one for duplicates."
    default: "The app cannot read or change its data in this way."
    }
  }

  public var failureReason: String? { message }

  public var recoverySuggestion: String? {
    // https://sqlite.org/rescode.html
    switch code & 0xFF {
    case 8: "Make the file and its folder writable. No recorded change is lost."
    case 10: "Check whether the disk is full or failing. No recorded change is lost."
    case 13: "Free some disk space. No recorded change is lost."
    case 11, 14, 26: "Check the file and its folder, or restore the file from a backup."
    case 19: "Change the entry, and save it again. Nothing of it was stored."
    default: "Contact the app's support. Nothing was stored."
    }
  }
}

/// A description and a remedy for the app's user. `failureReason` names the table, the column and the
/// value, for the app's developers.
extension RecordError: LocalizedError {
  public var errorDescription: String? {
    kind == .wrongValue
      ? "A value does not fit the app's data."
      : "The app cannot read or change its data in this way."
  }

  public var failureReason: String? { message }

  public var recoverySuggestion: String? { "Contact the app's support. Nothing was stored." }
}
