import FerryProtocol

/// The size of the next request for single records, when a server rejects some of them: a pure
/// machine.
///
/// A rejected group is halved, until one record is alone. Such a record is left out, and the others
/// are fetched.
///
/// ```swift
/// var group = FetchGroup(size: 1_000)
/// group.reject(sent: 1_000)  // .smaller: the next request has 500 records
/// group.reject(sent: 1)  // .alone: this record is the cause
/// ```
struct FetchGroup: Equatable {
  /// The result of a rejection.
  enum Rejection: Equatable {
    /// The next request has fewer records.
    case smaller
    /// The only record of the request is the cause.
    case alone
    /// Too many requests were rejected: all other records wait for the next pull.
    case tooMany
  }

  /// The most rejected requests of one pull: a server that rejects everything costs no more.
  static let rejectionsMax = 64

  private let sizeMax: Int
  /// The number of records in the next request.
  private(set) var size: Int
  private var rejections = 0

  /// - Parameter size: the most records of one request.
  init(size: Int) { (sizeMax, self.size) = (size, size) }

  /// Records an answered request.
  mutating func accept() { size = min(sizeMax, size * 2) }

  /// Handles the server's rejection of a request with so many records.
  mutating func reject(sent: Int) -> Rejection {
    rejections += 1
    if rejections >= Self.rejectionsMax { return .tooMany }
    size = max(1, sent / 2)
    return sent == 1 ? .alone : .smaller
  }
}

extension ProblemCode {
  /// True if a server that rejects a request for single records may accept it without some of them.
  var isAboutRecords: Bool { self == .malformedMessage || self == .limitExceeded }
}
