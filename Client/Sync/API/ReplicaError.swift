import FerryProtocol
import Networking
import SQLite

/// Why a replica could not do what was asked. Nothing that was recorded is ever lost by an error.
public enum ReplicaError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The server could not be reached, or broke off. Try again later.
  case offline(String)
  /// The server answered with a problem.
  case refused(Problem)
  /// The server answered with something that is not Ferry's, or an error without a problem
  /// document: the HTTP status and what was found.
  case unexpectedAnswer(status: Int, String)
  /// There is no secure connection to the server: its certificate is from an authority that is not
  /// trusted, has expired, or is for another host. Not retried: a retry would fail as well.
  case untrusted(String)
  /// The server sends requests on to another address, which gets none of them.
  case redirected(String)
  /// The work of this replica does not reach the server, for a reason that neither another pull nor
  /// another identifier removes. It stays in the replica; the reason names the obstacle.
  case leftBehind(String)
  /// The server's answer is larger than this device takes; names the limit.
  case tooLarge(String)
  /// The replica's token is not where it is kept, or is for another server; says where it was looked
  /// for.
  case tokenMissing(String)
  /// The server's address is none.
  case badAddress(String)
  /// No server has been set for this replica.
  case notConfigured
  /// The table cannot be tracked, and why.
  case cannotTrack(table: Name, String)
  /// The file cannot be opened as a replica, and why.
  case cannotOpen(path: String, String)
  /// What was named is not there.
  case notFound(String)
  /// SQLite refused a statement: its message and extended result code.
  case database(String, code: Int32)
  /// A batch operation cannot be recorded, and why. Nothing of it was.
  case invalidBatch(String)
  /// Another process has been syncing this file for longer than was waited.
  case busy(String)
  /// The work was cancelled.
  case cancelled

  public var description: String {
    switch self {
    case .offline(let message): message
    case .refused(let problem): problem.description
    case .unexpectedAnswer(let status, let found): "the server answered \(status): \(found)"
    case .untrusted(let message), .redirected(let message), .tooLarge(let message),
      .badAddress(let message), .tokenMissing(let message), .leftBehind(let message):
      message
    case .notConfigured: "this replica has no server yet"
    case .cannotTrack(let table, let reason): "table \(table) cannot be tracked: \(reason)"
    case .cannotOpen(let path, let reason): "\(path) cannot be opened: \(reason)"
    case .notFound(let what): what
    case .database(let message, _): message
    case .invalidBatch(let reason): reason
    case .busy(let message): message
    case .cancelled: "cancelled"
    }
  }

  /// Whether the same call may succeed later without any change.
  public var isTransient: Bool {
    switch self {
    case .offline, .busy: true
    case .refused(let problem): problem.code.action == .retry
    case .unexpectedAnswer(let status, _): RetryPolicy.isTransient(status: status)
    default: false
    }
  }

  /// Whether the replica has more to send than the server has room for. Others' changes still come.
  var isOverQuota: Bool {
    if case .refused(let problem) = self { problem.code == .storageQuota } else { false }
  }

  /// Whether there is no secure connection.
  var isUntrusted: Bool {
    if case .untrusted = self { true } else { false }
  }

  /// Any error as one of this module's.
  package init(_ error: any Error) {
    switch error {
    case let error as ReplicaError: self = error
    case let error as AskedToWait: self = error.failure
    case let error as SQLiteError: self = .database(error.message, code: error.code)
    case let error as Problem: self = .refused(error)
    case let error as MalformedMessage: self = .unexpectedAnswer(status: 200, error.description)
    case let error as ForeignAnswer:
      self = .unexpectedAnswer(status: error.status, error.text)
    case let error as TransportError: self.init(NetworkError(error))
    case let error as NetworkError:
      self =
        switch error.kind {
        case .cancelled: .cancelled
        case .secureConnectionFailed: .untrusted(error.message)
        case .redirectRefused: .redirected(error.message)
        case .responseTooLarge: .tooLarge(error.message)
        case .badAddress: .badAddress(error.message)
        default: .offline(error.message)
        }
    case is CancellationError: self = .cancelled
    default: self = .database(String(describing: error), code: 1)
    }
  }
}
