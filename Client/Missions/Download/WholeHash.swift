import FerryCryptography
import FerryPlatform
import Foundation

/// The hash of a whole file, computed while chunks arrive. It follows the fetched part from the
/// start, on a separate thread.
actor WholeHash {
  private let path: String
  private let format: SealedFile?
  private let executor: any WorkExecutor
  private let system: any FileCalls
  private var hash: SHA256? = SHA256()
  private var position: Int64 = 0
  private var opened: OpenFile?
  private var descriptor: Int32 = -1

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Creates the hash of the file at `path`, before any read.
  init(
    path: String, format: SealedFile? = nil, executor: any WorkExecutor,
    system: any FileCalls = SystemFileCalls()
  ) {
    self.path = path
    self.format = format
    self.executor = executor
    self.system = system
  }

  /// Reads on up to `end`; stops early if the task is cancelled.
  func advance(to end: Int64) throws(DownloadError) {
    if opened == nil {
      descriptor = system.open(path, O_RDONLY | O_CLOEXEC, 0)
      guard descriptor >= 0 else { throw .file("open", path) }
      opened = OpenFile(RandomAccessFile(descriptor: descriptor, path: path, system))
    }
    while position < end, !Task.isCancelled {
      let bytes = try block(before: end)
      if bytes.isEmpty { throw DownloadError(.file, "\(path) was shortened") }
      hash?.update(bytes)
      position += Int64(bytes.count)
    }
  }

  /// Returns the next bytes. The fetched part ends where a sealed part does.
  private func block(before end: Int64) throws(DownloadError) -> [UInt8] {
    guard let format, let opened else {
      return try PartialFile.read(descriptor, position..<end, path, system)
    }
    do throws(FileStoreError) {
      return try format.open(position / SealedFile.partBytes, of: opened.file)
    } catch {
      throw DownloadError(converting: error)
    }
  }

  /// Returns the 32 bytes of the hash of all bytes read; `nil` on a second call.
  func finish() -> [UInt8]? { hash.take()?.finish() }
}

extension SHA256 {
  /// Adds a piece of a part to the hash.
  mutating func update(_ bytes: [UInt8], _ range: Range<Int>) {
    bytes.withUnsafeBytes { update(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }
}
