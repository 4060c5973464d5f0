import Cryptography
import Executors
import Foundation

/// The hash of a whole file, taken while its chunks come in: it follows the part from the start
/// that is there, on a thread of its own.
actor WholeHash {
  private let path: String
  private let cipher: PartialCipher?
  private let executor: any WorkExecutor
  private let system: any FileCalls
  private var hash: SHA256? = SHA256()
  private var position: Int64 = 0
  private var descriptor: Int32 = -1

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// The hash of the file at `path`, of which nothing has been read yet.
  init(
    path: String, cipher: PartialCipher? = nil, executor: any WorkExecutor,
    system: any FileCalls = SystemFileCalls()
  ) {
    self.path = path
    self.cipher = cipher
    self.executor = executor
    self.system = system
  }

  deinit { if descriptor >= 0 { system.close(descriptor) } }

  /// Reads on up to `end`; stops early when the task is cancelled.
  func advance(to end: Int64) throws(DownloadError) {
    if descriptor < 0 { descriptor = system.open(path, O_RDONLY | O_CLOEXEC, 0) }
    guard descriptor >= 0 else { throw .file("open", path) }
    while position < end, !Task.isCancelled {
      let bytes = try PartialFile.read(descriptor, position..<end, path, system)
      if bytes.isEmpty { throw DownloadError(.file, "\(path) has become shorter") }
      hash?.update(cipher.applied(to: bytes, at: position))
      position += Int64(bytes.count)
    }
  }

  /// The 32 bytes of the hash of all that was read; nil when asked twice.
  func finish() -> [UInt8]? { hash.take()?.finish() }
}

extension SHA256 {
  /// Takes in a piece of a part.
  mutating func update(_ bytes: [UInt8], _ range: Range<Int>) {
    bytes.withUnsafeBytes { update(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }
}
