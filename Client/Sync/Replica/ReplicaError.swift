import FerryNetworking
import FerryPersistence
import FerryProtocol
import FerrySQLite

/// The reason why a replica's call failed. An error never loses a recorded change.
public enum ReplicaError: Error, LockReporting, Sendable, Equatable {
  /// The server could not be reached, or the connection broke. Try again later.
  case offline(String)
  /// The server answered with a problem.
  case refused(Problem)
  /// The server's answer is not Ferry's, or is an error without a problem document. Has the HTTP
  /// status and a description of the answer.
  case unexpectedAnswer(status: Int, String)
  /// There is no secure connection to the server. The certificate is from an untrusted authority,
  /// has expired, or is for another host. Not retried: a retry would fail as well.
  case untrusted(String)
  /// The server redirects requests to another address; it gets none of them.
  case redirected(String)
  /// The changes of this replica do not reach the server, and neither another pull nor another
  /// identifier helps. The changes stay in the replica; the reason names the obstacle.
  case leftBehind(String)
  /// The server's answer exceeds a limit of this device; names the limit.
  case tooLarge(String)
  /// The server's list of changes had no end within the pages of one sync. They are stored, and the
  /// next sync continues; the reason has their number.
  case unfinished(String)
  /// The replica's token is missing from the store, or belongs to another server. Names the
  /// searched place.
  case tokenMissing(String)
  /// The server's address is not valid.
  case badAddress(String)
  /// No server has been set for this replica.
  case notConfigured
  /// The table cannot be tracked; has the reason.
  case cannotTrack(table: Name, String)
  /// The table cannot be dropped, since rows of another table would go with it; has the reason.
  case cannotDrop(table: Name, String)
  /// The file cannot be opened as a replica; has the reason.
  case cannotOpen(path: String, String)
  /// The file cannot join the space; has the reason.
  case cannotJoin(space: String, String)
  /// The file cannot leave the space; has the reason.
  case cannotLeave(String)
  /// The space has operations unknown to the server; has their number.
  case unsent(space: String, Int)
  /// The replica does not have the named entry.
  case notFound(MissingEntry)
  /// A conflict cannot be answered, or an operation undone, in this way: the reason, and a way that
  /// works. Nothing was changed.
  case cannotAnswer(String, advice: String)
  /// The rejected operations cannot be written again; has the reason. The entry of the quarantine
  /// stays.
  case cannotRetry(entry: Int64, String)
  /// SQLite rejected a statement: the message and the extended result code.
  case database(String, code: Int32)
  /// The text cannot be a device's name; has the violated rule.
  case invalidName(String)
  /// A batch operation cannot be recorded; has the reason. Nothing of it was recorded.
  case invalidBatch(String)
  /// Another process still syncs this file, or another program still locks it, after the longest
  /// wait. Nothing was changed; the same call may succeed later.
  case busy(String)
  /// The work was cancelled.
  case cancelled
  /// The replica is suspended; see ``Replica/suspend()``. Nothing of the call was stored.
  case suspended
  /// The replica was closed; see ``Replica/close()``. Nothing of the call was stored.
  case closed

  /// True if the same call may succeed later without any change.
  public var isTransient: Bool { explanation.remedy == .later }

  /// True if a constraint of a table rejects the values: a key, NOT NULL, UNIQUE, CHECK or a
  /// reference.
  public var isConstraint: Bool {
    if case .database(let message, let code) = self {
      DatabaseError(message, code: code).isConstraint
    } else {
      false
    }
  }

  /// True if the replica's changes exceed the server's quota. Others' changes still arrive.
  var isOverQuota: Bool {
    if case .refused(let problem) = self { problem.code == .storageQuota } else { false }
  }

  /// True if the program itself ended the work: no failure to report.
  var isStop: Bool { self == .cancelled || self == .suspended || self == .closed }

  /// True if the file itself failed, with all spaces: the disk, the content, or the memory
  /// (https://sqlite.org/rescode.html).
  var concernsFile: Bool {
    guard case .database(_, let code) = self else { return false }
    return [7, 8, 10, 11, 13, 14, 26].contains(code & 0xFF)
  }

  /// True if another program uses the file.
  package var isBusy: Bool {
    if case .busy = self { true } else { false }
  }

  /// Returns the error of a file locked by another program.
  ///
  /// - Parameter path: the file, if the caller knows it.
  static func locked(_ message: String, path: String? = nil) -> ReplicaError {
    .busy(
      "another program keeps \(path ?? "the file") locked (\(message)); end that program's "
        + "transaction")
  }

  /// True if there is no secure connection.
  var isUntrusted: Bool {
    if case .untrusted = self { true } else { false }
  }

  /// Converts any error to an error of this module.
  package init(_ error: any Error) {
    switch error {
    case let error as ReplicaError: self = error
    case let error as AskedToWait: self = error.failure
    case let error as SQLiteError where error.isBusy: self = .locked(error.message)
    case let error as DatabaseError where error.isBusy: self = .locked(error.message)
    case let error as SQLiteError: self = .database(error.message, code: error.code)
    case let error as DatabaseError: self = .database(error.message, code: error.code)
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
    case StoppedWork.suspended: self = .suspended
    case StoppedWork.closed: self = .closed
    default: self = .database(String(describing: error), code: 1)
    }
  }

  /// Runs `body`; turns errors into ``ReplicaError``, except errors thrown by the caller's closure.
  static func converting<T: Sendable>(_ body: () async throws -> T) async throws -> T {
    do {
      return try await body()
    } catch let error as SQLiteError {
      throw ReplicaError(error)
    } catch let error as DatabaseError {
      throw ReplicaError(error)
    } catch let error as MalformedMessage {
      throw ReplicaError(error)
    } catch let error as ForeignAnswer {
      throw ReplicaError(error)
    } catch let error as TransportError {
      throw ReplicaError(error)
    } catch let error as NetworkError {
      throw ReplicaError(error)
    } catch let error as StoppedWork {
      throw ReplicaError(error)
    } catch is CancellationError {
      throw ReplicaError.cancelled
    }
  }
}
