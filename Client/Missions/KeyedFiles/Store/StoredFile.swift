import FerryProtocol

/// The facts about one file of a ``FileStore``.
public struct StoredFile: Sendable, Equatable {
  /// The key, such as a URL.
  public var key: String
  /// The bytes of the content.
  public var size: Int64
  /// The SHA-256 of the content at the time of writing.
  public var hash: ContentHash
  /// The bytes of the file on disk: more than ``size`` if it is encrypted.
  public var bytesOnDisk: Int64
  /// When it was stored, in milliseconds since 1970.
  public var storedAt: Int64

  public init(
    key: String, size: Int64, hash: ContentHash, bytesOnDisk: Int64, storedAt: Int64
  ) {
    self.key = key
    self.size = size
    self.hash = hash
    self.bytesOnDisk = bytesOnDisk
    self.storedAt = storedAt
  }
}

/// The space of a ``FileStore``.
public struct FileStoreUsage: Sendable, Equatable {
  /// The number of files.
  public var count: Int
  /// The bytes of all contents.
  public var bytes: Int64
  /// The bytes of all files on disk, without the index. ``bytesMax`` limits them.
  public var bytesOnDisk: Int64
  /// The store's limit; `nil` for none.
  public var bytesMax: Int64?
  /// The free bytes on the disk.
  public var bytesFree: Int64

  public init(
    count: Int, bytes: Int64, bytesOnDisk: Int64, bytesMax: Int64?, bytesFree: Int64
  ) {
    self.count = count
    self.bytes = bytes
    self.bytesOnDisk = bytesOnDisk
    self.bytesMax = bytesMax
    self.bytesFree = bytesFree
  }
}

/// The result of an integrity check.
public enum FileCheck: Sendable, Equatable {
  /// Every byte is as it was written.
  case intact
  /// There is no file for the key.
  case missing
  /// The content differs, for this reason.
  case damaged(String)
}

/// The limits of a ``FileStore``.
public struct FileStoreOptions: Sendable, Equatable {
  /// The action when a new file does not fit within ``FileStoreOptions/bytesMax``.
  public enum Overflow: Sendable, Equatable {
    /// The new file is rejected with ``FileStoreError/Kind/limitReached``.
    case fail
    /// The least recently used files are removed. A file is used when it is stored or opened.
    case removeLeastRecentlyUsed
  }

  /// The most bytes of all files on disk; `nil` for no limit.
  public var bytesMax: Int64?
  /// The action when a new file does not fit.
  public var overflow: Overflow

  /// Creates limits; by default there is none.
  public init(bytesMax: Int64? = nil, overflow: Overflow = .fail) {
    self.bytesMax = bytesMax
    self.overflow = overflow
  }
}
