import FerryProtocol
import Foundation
import Synchronization

/// Stores each replica's token in a separate file beside the replica, `<replica>-token`. Only the
/// owner may read it (mode 0600 from the file's creation).
public struct FileCredentialStore: CredentialStore {
  /// The most bytes of a token file; a longer one is not Ferry's.
  private static let bytesMax = 64 << 10

  /// Creates a store.
  public init() {}

  /// Returns the path of the file with the token of the replica at `path`.
  public static func file(of path: String) -> String { path + "-token" }

  public func credential(of path: String) throws -> Credential? {
    let name = Self.file(of: path)
    let descriptor = open(name, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 && errno == ENOENT { return nil }
    guard descriptor >= 0 else { throw Self.failure(name) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Self.failure(name) }
    // For example, a copy has the default mode of the copying program.
    if status.st_mode & 0o077 != 0 { fchmod(descriptor, 0o600) }
    var bytes = [UInt8](repeating: 0, count: Self.bytesMax)
    let count = read(descriptor, &bytes, bytes.count)
    guard count >= 0 else { throw Self.failure(name) }
    guard let credential = try? Credential(decoding: Array(bytes.prefix(count))) else {
      throw ReplicaError.tokenMissing("\(name) is not a file that Ferry wrote")
    }
    return credential
  }

  public func store(_ credential: Credential?, of path: String) throws {
    let name = Self.file(of: path)
    guard let credential else {
      guard unlink(name) == 0 || errno == ENOENT else { throw Self.failure(name) }
      return
    }
    // The name always has a complete file: the new one or the former one.
    let partial = "\(name).\(getpid()).new"
    unlink(partial)
    let descriptor = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure(partial) }
    let bytes = credential.encoded() + [0x0A]
    let isWritten = write(descriptor, bytes, bytes.count) == bytes.count && fsync(descriptor) == 0
    close(descriptor)
    guard isWritten, rename(partial, name) == 0 else {
      let failure = Self.failure(name)
      unlink(partial)
      throw failure
    }
  }

  private static func failure(_ name: String) -> ReplicaError {
    .tokenMissing("\(name): \(String(cString: strerror(errno)))")
  }
}

/// Stores tokens in memory while the process runs.
public final class MemoryCredentialStore: CredentialStore {
  private let kept = Mutex<[String: Credential]>([:])

  /// Creates an empty store.
  public init() {}

  public func credential(of path: String) -> Credential? { kept.withLock { $0[path] } }

  public func store(_ credential: Credential?, of path: String) {
    kept.withLock { $0[path] = credential }
  }
}

extension Credential: JSONMessage {
  package static var blank: Self { Self(server: "", space: .blank, token: "") }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("server", &server)
    try json.required("space", &space)
    try json.required("token", &token)
  }
}
