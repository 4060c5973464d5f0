import FerryPersistence
import FerryProtocol
import Foundation

/// A description and a remedy for the app's user, and the detail for its developers.
///
/// | property | reader | contents |
/// |---|---|---|
/// | `errorDescription` | user | the event, without words of SQL or of the protocol |
/// | `recoverySuggestion` | user | the next step |
/// | `failureReason`, `description` | developer | the message of SQLite, of the server or of the network |
///
/// ```swift
/// catch let error as LocalizedError {
///   show(error.errorDescription, hint: error.recoverySuggestion)
///   print(error.failureReason ?? "")
/// }
/// ```
extension ReplicaError: LocalizedError {
  public var errorDescription: String? {
    switch self {
    case .offline: "The server cannot be reached."
    case .refused(let problem): Self.event(problem.code)
    case .unexpectedAnswer, .redirected: "Another server has answered, or a network's sign-in page."
    case .untrusted: "There is no secure connection to the server."
    case .leftBehind: "Your changes do not reach the server."
    case .tooLarge: "The server's answer is too large for this device."
    case .unfinished: "Not all changes have arrived yet."
    case .tokenMissing: "You are not signed in."
    case .badAddress: "The server's address is not valid."
    case .notConfigured: "No server has been chosen yet."
    case .cannotTrack, .cannotDrop, .invalidBatch: "The app cannot change its data in this way."
    case .cannotOpen: "The app's data cannot be opened."
    case .cannotJoin(let space, _): "\(space) cannot be added to this app."
    case .cannotLeave: "This cannot be removed from the app."
    case .unsent(let space, let count):
      "\(count.counted("change")) of \(space) \(count == 1 ? "has" : "have") not been sent yet."
    case .notFound: "This entry does not exist any more."
    case .cannotAnswer: "This answer is not possible."
    case .cannotRetry: "This change cannot be sent again."
    case .database(_, let code): DatabaseError(code: code).errorDescription
    case .invalidName: "This name cannot be used for the device."
    case .busy: "Another program is using the app's data."
    case .cancelled: "The work was cancelled."
    case .suspended, .closed: "The app's data is not in use at the moment."
    }
  }

  public var failureReason: String? { description }

  public var recoverySuggestion: String? {
    switch self {
    case .offline, .busy, .cancelled: "Sync again later. Your changes are safe on this device."
    case .refused(let problem): Self.remedy(problem.code)
    case .unexpectedAnswer, .redirected:
      "Check the server's address, and sign in to the network if it asks for that."
    case .untrusted: "Check the clock of this device, or use another network."
    case .leftBehind:
      "Sync again. If that fails as well, contact the app's support. Your changes are kept."
    case .unfinished: "Sync again: the next sync continues. Your changes are safe on this device."
    case .tooLarge: "Contact the app's support: the server's answer is too large for this device."
    case .tokenMissing: "Sign in again."
    case .badAddress: "Write the address as https://HOST or http://HOST:PORT."
    case .notConfigured: "Choose a server and a space."
    case .cannotTrack, .cannotDrop, .invalidBatch:
      "Contact the app's support. Nothing was changed."
    case .cannotOpen: "Install the newest version of the app, or contact its support."
    case .cannotJoin, .cannotLeave: "Contact the app's support. Nothing was changed."
    case .unsent: "Sync first, or discard these changes."
    case .notFound: "Choose another entry."
    case .cannotAnswer: "Choose another answer. Nothing was changed."
    case .cannotRetry: "Discard this change, and make it again."
    case .database(_, let code): DatabaseError(code: code).recoverySuggestion
    case .suspended: "Try again when the app is active. Your changes are safe."
    case .closed: "Start the app again. Your changes are safe."
    case .invalidName: "Choose another name for the device."
    }
  }

  private static func event(_ code: ProblemCode) -> String {
    switch code {
    case .unauthorized: "The server does not accept your sign-in any more."
    case .forbidden: "You are not permitted to do this."
    case .unknownSpace: "The server does not have this data yet."
    case .upgradeRequired: "The server needs a newer version of the app."
    case .storageQuota: "The server has no room for your changes."
    default:
      code.action == .fix
        ? "The server rejects the app's request." : "The server is busy at the moment."
    }
  }

  private static func remedy(_ code: ProblemCode) -> String {
    switch code {
    case .unauthorized: "Sign in again."
    case .forbidden: "Ask the owner of the data for the permission."
    case .unknownSpace: "Ask the app's support to set it up. Your changes are safe on this device."
    case .upgradeRequired: "Install a newer version. Your changes are safe on this device."
    case .storageQuota:
      "Delete records that are not needed, or ask for a larger quota. Your changes are safe."
    default:
      code.action == .fix
        ? "If this does not pass, contact the app's support. Your changes are kept."
        : "Sync again later. Your changes are safe on this device."
    }
  }
}
