import FerryPlatform
import FerryProtocol
import Synchronization

extension FileStore {
  /// Opens the file of a key for reads at any offset.
  ///
  /// The reader keeps this version of the file, even if it is replaced or removed meanwhile.
  ///
  /// - Throws: ``FileStoreError/Kind/notFound``; ``FileStoreError/Kind/damaged`` if the file has
  ///   another size.
  public func open(_ key: String) async throws(FileStoreError) -> FileReader {
    let name = keys.name(of: key)
    let isCounted = options.overflow == .removeLeastRecentlyUsed
    return try await indexed { [keys, reader] index in
      guard let found = try index.opened(name) else {
        throw FileStoreError(.notFound, "the file store has no file for \(key)")
      }
      let (row, size) = (found.row, try found.file.size())
      guard size == row.bytesOnDisk else {
        throw FileStoreError(
          .damaged, "the file of \(key) has \(size) bytes instead of \(row.bytesOnDisk)")
      }
      if isCounted { index.use(name) }
      let sealed = keys.sealed(name, id: row.version.id, size: row.size)
      return FileReader(try row.file(keys), found.release(), sealed, on: reader)
    }
  }

  /// Reads the whole file of a key into memory.
  public func read(_ key: String) async throws(FileStoreError) -> [UInt8] {
    try await open(key).readAll()
  }

  /// Reads up to `count` bytes from an offset; fewer at the end of the file.
  public func read(
    _ key: String, from offset: Int64, count: Int
  ) async throws(FileStoreError) -> [UInt8] {
    try await open(key).read(from: offset, count: count)
  }

  /// Reads the whole file of a key, and compares the hash with that at the time of writing, or with
  /// a known one.
  ///
  /// - Throws: ``FileStoreError/Kind/cancelled`` soon after the task was cancelled.
  public func check(
    _ key: String, expecting hash: ContentHash? = nil
  ) async throws(FileStoreError) -> FileCheck {
    let reader: FileReader
    do {
      reader = try await open(key)
    } catch {
      switch error.kind {
      case .notFound: return .missing
      case .damaged: return .damaged(error.message)
      default: throw error
      }
    }
    guard try await reader.isIntact() else {
      return .damaged("the content of \(key) differs from the stored one")
    }
    if let hash, hash != reader.file.hash {
      return .damaged("the content of \(key) has the hash \(reader.file.hash) instead of \(hash)")
    }
    return .intact
  }
}

/// A file of a ``FileStore``, open for reads at any offset. Memory holds only the bytes of a read.
///
/// ```swift
/// let film = try await files.open("https://example.org/film.mp4")
/// var offset: Int64 = 0
/// while offset < film.file.size {
///   let part = try await film.read(from: offset, count: 1 << 20)
///   offset += Int64(part.count)
/// }
/// ```
public final class FileReader: Sendable {
  /// The facts about the file.
  public let file: StoredFile
  private let box: ReaderBox
  private let executor: any WorkExecutor

  init(
    _ file: StoredFile, _ descriptor: consuming RandomAccessFile, _ sealed: SealedFile?,
    on executor: any WorkExecutor
  ) {
    self.file = file
    box = ReaderBox(descriptor, sealed)
    self.executor = executor
  }

  /// Reads up to `count` bytes from an offset; fewer at the end.
  ///
  /// - Throws: ``FileStoreError/Kind/damaged`` if the file was shortened, or if an encrypted file
  ///   differs from the stored one. `isIntact()` finds a change of an unencrypted file.
  public func read(from offset: Int64, count: Int) async throws(FileStoreError) -> [UInt8] {
    guard offset >= 0, offset < file.size, count > 0 else { return [] }
    let count = Int(min(Int64(count), file.size - offset))
    return try await executor.perform(FileStoreError.self) { [box] in
      try box.read(from: offset, count: count)
    }
  }

  /// Reads the whole content into memory.
  public func readAll() async throws(FileStoreError) -> [UInt8] {
    try await read(from: 0, count: Int(file.size))
  }

  /// Reads the whole content. Returns true if the hash is the one at the time of writing.
  public func isIntact() async throws(FileStoreError) -> Bool {
    let flag = CancellationFlag()
    let hash = file.hash
    let found: Result<Bool, FileStoreError> = await withTaskCancellationHandler {
      do throws(FileStoreError) {
        return .success(
          try await executor.perform(FileStoreError.self) { [box] in
            try box.hash { !flag.isSet } == hash
          })
      } catch {
        return .failure(error)
      }
    } onCancel: {
      flag.set()
    }
    return try found.get()
  }
}

/// An open file and the format.
private final class ReaderBox: Sendable {
  private let file: RandomAccessFile
  private let format: SealedFile?
  private let sealed: Mutex<SealedReader?>

  init(_ file: consuming RandomAccessFile, _ format: SealedFile?) {
    self.file = file
    self.format = format
    sealed = Mutex(format.map { SealedReader($0) })
  }

  func read(from offset: Int64, count: Int) throws(FileStoreError) -> [UInt8] {
    let bytes = try sealed.withLock { (sealed) throws(FileStoreError) -> [UInt8] in
      guard sealed != nil else { return try file.read(at: offset, count: count) }
      return try sealed?.read(file, from: offset, count: count) ?? []
    }
    guard bytes.count == count else {
      throw FileStoreError(.damaged, "\(file.path) was shortened")
    }
    return bytes
  }

  func hash(while goesOn: () -> Bool) throws(FileStoreError) -> ContentHash? {
    if let format { return try format.hash(of: file) { _ in goesOn() } }
    return try file.hash { _ in goesOn() }
  }
}
