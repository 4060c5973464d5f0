import Foundation

/// The reason why a call on a ``FileStore`` failed.
public struct FileStoreError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The reasons that callers treat differently.
  public enum Kind: String, Sendable, CaseIterable {
    /// The store has no file for this key, or the folder has no store.
    case notFound
    /// The key is empty or too long.
    case badKey
    /// The file does not fit within the store's own limit. Nothing was changed.
    case limitReached
    /// The disk has not enough space. Nothing was lost.
    case diskFull
    /// The stored or the written content differs from the expected one.
    case damaged
    /// The files are encrypted with another key, or there is a key and they are not encrypted.
    case wrongKey
    /// A file or folder could not be read or written.
    case files
    /// The index could not be read or written.
    case index
    /// The task was cancelled. Nothing was changed.
    case cancelled
  }

  public var kind: Kind
  /// A description in one sentence.
  public var message: String

  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  public var description: String { message }
}

/// A description for the app's user. `failureReason` has the detail, for the app's developers.
extension FileStoreError: LocalizedError {
  public var errorDescription: String? {
    switch kind {
    case .notFound: "The file does not exist any more."
    case .badKey: "This name cannot be used for a file."
    case .limitReached: "There is no room for the file."
    case .diskFull: "The disk is full."
    case .damaged: "The file is damaged."
    case .wrongKey: "The file cannot be unlocked."
    case .files, .index: "The file cannot be read or written."
    case .cancelled: "The work was cancelled."
    }
  }

  public var failureReason: String? { message }
}

extension FileStoreError {
  /// Creates an error from the operating system's error number.
  package init(errno code: Int32, _ what: String) {
    let isFull = code == ENOSPC || code == EDQUOT
    self.init(isFull ? .diskFull : .files, "\(what): \(String(cString: strerror(code)))")
  }
}
