import FerryProtocol
import Foundation

/// A description and a remedy, for alerts.
///
/// ```swift
/// catch let error as LocalizedError {
///   show(error.errorDescription, hint: error.recoverySuggestion)
/// }
/// ```
extension ReplicaError: LocalizedError {
  public var errorDescription: String? { description }

  public var recoverySuggestion: String? {
    switch self {
    case .offline, .busy, .cancelled: "Sync again later. Your changes are safe in the replica."
    case .refused(let problem): Self.remedy(problem.code)
    case .unexpectedAnswer, .redirected:
      "Check the server's address. A proxy or a network's sign-in page may have answered."
    case .untrusted:
      "Check the machine's clock and the server's certificate. Name a private authority when you "
        + "open the replica."
    case .leftBehind:
      "Sync again. If that fails as well, contact the app's support. Your changes are kept."
    case .unfinished: "Sync again: the next sync continues. Your changes are safe in the replica."
    case .tooLarge: "Contact the app's support: the server's answer is too large for this device."
    case .tokenMissing: "Sign in again."
    case .badAddress: "Write the address as https://HOST or http://HOST:PORT."
    case .notConfigured: "Choose a server and a space."
    case .cannotTrack: "Correct the table, and track it again."
    case .cannotDrop: "Untrack the referring table first, and track it again after the migration."
    case .cannotOpen: "Name another file, or open it with the version of Ferry that wrote it."
    case .cannotJoin: "List the spaces of this file, or use another file."
    case .cannotLeave: "List the spaces of this file, and leave a joined one."
    case .unsent: "Sync first, or leave the space and discard these changes."
    case .notFound: "List the existing entries, and name one of them."
    case .database(_, let code): Self.remedy(afterSQLite: code & 0xFF)
    case .suspended: "Try again when the app is active. Your changes are safe in the replica."
    case .closed: "Open the replica again. Your changes are safe in it."
    case .invalidName: "Choose another name for the device."
    case .invalidBatch: "Correct the condition or the columns of the batch."
    }
  }

  private static func remedy(_ code: ProblemCode) -> String {
    switch code {
    case .unauthorized: "Sign in again: the server rejects the token."
    case .forbidden: "Ask for a token with another role, or for this space."
    case .unknownSpace: "Check the space's name, or create the space on the server."
    case .upgradeRequired: "Install a newer version. Your changes are safe in the replica."
    case .storageQuota:
      "Delete records that are not needed, or ask for a larger quota. Your changes are safe."
    default:
      code.action == .fix
        ? "If this does not pass, contact the app's support. Your changes are kept."
        : "Sync again later. Your changes are safe in the replica."
    }
  }

  /// Returns a remedy for a primary result code of SQLite's (https://sqlite.org/rescode.html).
  private static func remedy(afterSQLite code: Int32) -> String {
    switch code {
    case 8: "Make the file and its folder writable. No recorded change is lost."
    case 10: "Check whether the disk is full or failing. No recorded change is lost."
    case 13: "Free some disk space. No recorded change is lost."
    case 11, 14, 26: "Check the file and its folder, or restore the file from a backup."
    default: "Correct the statement or its values. Nothing of the transaction was stored."
    }
  }
}
