import FerryPlatform
import FerryProtocol
import Foundation

/// The file of a ledger. A new version replaces the old one whole.
struct PatchLedgerFile: Sendable {
  /// Bytes of a ledger.
  private static let bytesMax = 1 << 20

  let path: String

  /// Reads the ledger; an empty one if there is no file.
  func read() throws(PatchError) -> PatchLedger {
    let content = BoundedFile.read(path, limit: Self.bytesMax)
    switch content {
    case .success(let bytes):
      do throws(MalformedMessage) {
        return try PatchLedger(decoding: bytes)
      } catch {
        throw fault("it is no ledger: \(error). Remove it, and the app trusts patches as at first")
      }
    case .failure(.absent): return PatchLedger()
    case .failure(let error): throw fault(error.reason)
    }
  }

  func write(_ ledger: PatchLedger) throws(PatchError) {
    let draft = path + ".new"
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw fault(Self.reason(errno)) }
    defer { close(descriptor) }
    var rest = ledger.encoded()[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 || errno == EINTR else { throw fault(Self.reason(errno)) }
      rest = rest.dropFirst(max(0, count))
    }
    // After a loss of power, the former ledger would trust patches distrusted by this one.
    guard fsync(descriptor) == 0, rename(draft, path) == 0, Platform.flushFolder(of: path) else {
      throw fault(Self.reason(errno))
    }
  }

  private func fault(_ reason: String) -> PatchError { .ledger(path: path, reason: reason) }

  private static func reason(_ code: Int32) -> String { String(cString: strerror(code)) }
}

/// The patches in a folder.
enum PatchFolder {
  typealias Fault = BoundedFile.Fault

  /// The end of a patch's name.
  static let suffix = ".ferrypatch"
  /// Patches in a folder.
  static let filesMax = 1_000

  /// Reads the patches by name; each at most as long as a patch can be.
  static func read(
    _ folder: String
  ) throws(PatchError) -> [(source: String, content: Result<[UInt8], Fault>)] {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: folder)
    } catch {
      throw .folder(path: folder, reason: "it cannot be read")
    }
    let patches = names.filter { $0.ends(with: suffix) }.sorted()
    guard patches.count <= filesMax else {
      throw .folder(path: folder, reason: "it has more than \(filesMax) patches")
    }
    let limit = PatchDocumentLimits.standard.documentBytes
    return patches.map { ("\(folder)/\($0)", BoundedFile.read("\(folder)/\($0)", limit: limit)) }
  }
}

/// Reads whole regular files up to a size.
enum BoundedFile {
  enum Fault: Error, Equatable, Sendable {
    case absent
    case system(Int32)
    case notAFile
    case tooLarge(limit: Int)

    var reason: String {
      switch self {
      case .absent: "there is no such file"
      case .system(let code): String(cString: strerror(code))
      case .notAFile: "it is no regular file"
      case .tooLarge(let limit): "it has more than \(limit) bytes"
      }
    }
  }

  static func read(_ path: String, limit: Int) -> Result<[UInt8], Fault> {
    // Opening a pipe would wait for the writer.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return .failure(errno == ENOENT ? .absent : .system(errno)) }
    defer { close(descriptor) }
    var facts = stat()
    guard fstat(descriptor, &facts) == 0 else { return .failure(.system(errno)) }
    guard facts.st_mode & S_IFMT == S_IFREG else { return .failure(.notAFile) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Foundation.read(descriptor, &part, part.count)
      if count < 0 && errno == EINTR { continue }
      if count < 0 { return .failure(.system(errno)) }
      if count == 0 { return .success(bytes) }
      bytes += part[..<count]
      if bytes.count > limit { return .failure(.tooLarge(limit: limit)) }
    }
  }
}
