import FerryProtocol

/// The memory to build an answer, including the source data.
enum AnswerSize {
  /// Below a small constant, or with separate memory: packets, streams and files.
  case small
  /// Entries of a few hundred bytes.
  case list
  /// Records or texts up to the bytes at which a page is closed, and one record beyond them.
  case page

  /// Bytes of a list: 500 entries, or a schema, as data and as JSON.
  static let listBytes = 2 << 20

  /// Returns the memory in bytes; `nil` if none is taken.
  func bytes(_ limits: Limits) -> Int? {
    switch self {
    case .small: nil
    case .list: Self.listBytes
    case .page: limits.pageBytes + limits.recordStateBytes
    }
  }
}
