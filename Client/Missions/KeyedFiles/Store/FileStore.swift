import FerryPlatform
import FerryProtocol
import FerrySQLite
import Foundation

/// Files by their keys, such as URLs, in a folder of the file system.
///
/// A file is stored whole or not at all, and is on the disk when `put(_:for:expecting:)` returns. A
/// process killed at any moment loses no stored file, and the next opening removes everything left
/// behind. Any number of processes may use one folder.
///
/// ```swift
/// let files = try await FileStore.open("/path/to/files")
/// try await files.put(Array("hello".utf8), for: "https://example.org/hello.txt")
/// let hello = try await files.read("https://example.org/hello.txt")
/// print(files.path(for: "https://example.org/hello.txt"), hello.count)
/// ```
///
/// Keys are compared by their bytes. `ContentAddress.canonical` gives equal URLs one form.
public final class FileStore: Sendable {
  /// The path of the folder.
  public let folder: String
  /// The limits.
  public let options: FileStoreOptions

  let folders: FileFolders
  let keys: FileKeys
  let index: IndexFile<FileIndex, FileStoreError>
  /// Threads for content, so the index does not wait for it.
  let writer: any WorkExecutor
  let reader: any WorkExecutor
  let now: @Sendable () -> Int64

  /// True if the files are encrypted.
  public var isSealed: Bool { keys.isSealed }

  /// Opens the store in `folder`, and removes leftovers of killed processes.
  ///
  /// - Parameters:
  ///   - key: 32 bytes; they encrypt contents and keys at rest (AES-256-GCM).
  ///   - creating: true to create an absent store.
  /// - Throws: ``FileStoreError/Kind/wrongKey``, ``FileStoreError/Kind/diskFull``,
  ///   ``FileStoreError/Kind/files``, ``FileStoreError/Kind/index``;
  ///   ``FileStoreError/Kind/notFound`` if there is no store and none is created.
  public static func open(
    _ folder: String, key: [UInt8]? = nil, options: FileStoreOptions = FileStoreOptions(),
    creating: Bool = true
  ) async throws(FileStoreError) -> FileStore {
    let system = SystemFileCalls()
    if !creating {
      var facts = stat()
      guard system.lstat(folder + "/index.db", &facts) == 0 else {
        throw FileStoreError(.notFound, "\(folder) contains no file store")
      }
    }
    return try await open(folder, key: key, options: options, system: system) {
      ThreadExecutor(name: $0)
    }
  }

  /// Opens a store on another disk, with other threads and another clock: `now` in milliseconds
  /// since 1970.
  package static func open(
    _ folder: String, key: [UInt8]?, options: FileStoreOptions, system: any FileCalls,
    fileSystem: String? = nil, now: @escaping @Sendable () -> Int64 = wallClock,
    makeExecutor: (String) -> any WorkExecutor
  ) async throws(FileStoreError) -> FileStore {
    let keys = try FileKeys(key: key)
    let folders = FileFolders(root: folder, system: system)
    let index = try await IndexFile<FileIndex, FileStoreError>(on: makeExecutor("file-index")) {
      try folders.make()
      return try FileIndex(folders: folders, keys: keys, fileSystem: fileSystem)
    }
    return FileStore(
      folders, keys, options, index, makeExecutor("file-writer"), makeExecutor("file-reader"), now)
  }

  private init(
    _ folders: FileFolders, _ keys: FileKeys, _ options: FileStoreOptions,
    _ index: IndexFile<FileIndex, FileStoreError>, _ writer: any WorkExecutor,
    _ reader: any WorkExecutor, _ now: @escaping @Sendable () -> Int64
  ) {
    folder = folders.root
    (self.folders, self.keys, self.options) = (folders, keys, options)
    (self.index, self.writer, self.reader) = (index, writer, reader)
    self.now = now
  }

  // MARK: Looking

  /// Returns the path of the key's file, whether it exists or not.
  ///
  /// The path is made of a hash, so no key leaves the folder. If the key is a URL, the path ends as
  /// the URL's path does, such as `.mp4`, unless the store is encrypted. The file is read-only. A
  /// later version replaces the file at the same path at once.
  public func path(for key: String) -> String {
    folders.path(of: keys.name(of: key), suffix: keys.suffix(of: key))
  }

  /// Returns true if there is a file for a key, with the whole size. Does not read the content.
  public func contains(_ key: String) async throws(FileStoreError) -> Bool {
    try await file(key) != nil
  }

  /// Returns the facts about the file of a key; `nil` if there is none.
  public func file(_ key: String) async throws(FileStoreError) -> StoredFile? {
    let name = keys.name(of: key)
    return try await indexed { [keys] index in
      guard let found = try index.opened(name), try found.file.size() == found.row.bytesOnDisk
      else { return nil }
      return try found.row.file(keys)
    }
  }

  /// Returns up to `limit` files, in a constant order.
  ///
  /// ```swift
  /// var last: String?
  /// repeat {
  ///   let page = try await files.list(after: last, limit: 100)
  ///   for file in page { print(file.key, file.size) }
  ///   last = page.last?.key
  /// } while last != nil
  /// ```
  ///
  /// - Parameters:
  ///   - prefix: the beginning of the keys, such as `https://example.org/`.
  ///   - key: the last key of the page before; `nil` for the first page.
  public func list(
    prefix: String = "", after key: String? = nil, limit: Int = 100
  ) async throws(FileStoreError) -> [StoredFile] {
    var last = key.map { keys.name(of: $0) }
    var found: [StoredFile] = []
    while found.count < limit {
      // The index does not know the order of keys: it reads all rows of another prefix.
      let from = last
      let count = prefix.isEmpty ? min(limit - found.count, Self.rowsAtOnce) : Self.rowsAtOnce
      let rows = try await indexed { try $0.rows(after: from, limit: count) }
      for row in rows where found.count < limit {
        let file = try row.file(keys)
        if file.key.utf8.starts(with: prefix.utf8) { found.append(file) }
      }
      guard rows.count == count else { break }
      last = rows.last?.version.name
    }
    return found
  }

  private static let rowsAtOnce = 500

  /// Returns the number of files, their bytes, and the remaining space.
  public func usage() async throws(FileStoreError) -> FileStoreUsage {
    try await indexed { [folders, options] index in
      let totals = try index.totals()
      return FileStoreUsage(
        count: totals.count, bytes: totals.bytes, bytesOnDisk: totals.stored,
        bytesMax: options.bytesMax, bytesFree: try folders.system.freeBytes(at: folders.root))
    }
  }

  // MARK: Removing

  /// Removes the file of a key. Returns true if there was one. Open readers keep their file.
  @discardableResult
  public func remove(_ key: String) async throws(FileStoreError) -> Bool {
    let name = keys.name(of: key)
    return try await indexed { try $0.remove(name) }
  }

  /// Removes the files stored longer ago than this. Returns their number.
  @discardableResult
  public func removeAll(olderThan age: Duration) async throws(FileStoreError) -> Int {
    let (seconds, fraction) = age.components
    let (whole, isHuge) = seconds.multipliedReportingOverflow(by: 1_000)
    let milliseconds = isHuge ? .max : whole + fraction / 1_000_000_000_000_000
    let time = now().subtractingReportingOverflow(milliseconds)
    if time.overflow { return 0 }
    return try await indexed { try $0.remove(storedBefore: time.partialValue) }
  }

  /// Removes all files. Returns their number.
  @discardableResult
  public func removeAll() async throws(FileStoreError) -> Int {
    try await indexed { try $0.remove(storedBefore: nil) }
  }

  /// Writes the uses of files to the index. The next opening is faster then; no file depends on it.
  public func close() async throws(FileStoreError) { try await indexed { try $0.finishMoves() } }

  // MARK: Parts

  func indexed<T: Sendable>(
    _ body: @escaping @Sendable (FileIndex) throws -> T
  ) async throws(FileStoreError) -> T {
    try await index.use(body)
  }

  /// Returns the time of the machine's clock.
  @Sendable package static func wallClock() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }
}

extension FileStoreError: ConvertingError {
  package init(converting error: any Error) {
    switch error {
    case let error as FileStoreError: self = error
    case let error as SQLiteError:
      self.init(
        error.isDiskFull ? .diskFull : .index,
        "the index of the file store could not be used: \(error.message)")
    default: self.init(.files, String(describing: error))
    }
  }
}
