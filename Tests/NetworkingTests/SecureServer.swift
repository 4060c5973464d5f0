import FerryTestSupport
import Foundation

/// `openssl s_server` with a certificate made here; it serves files with responses.
final class SecureServer: Sendable {
  static let openssl = URL(filePath: "/usr/bin/openssl")
  static var isAvailable: Bool { FileManager.default.isExecutableFile(atPath: openssl.path) }

  /// The PEM file to verify the server with.
  let certificate: URL
  let url: String
  private let folder: TemporaryDirectory
  private let process: ChildProcess

  /// Creates a server for the names `names`, such as `IP:127.0.0.1`, that serves `response` at
  /// ``url``.
  init(names: String, response: String = "HTTP/1.0 200 OK\r\n\r\nsafe") async throws {
    folder = try TemporaryDirectory()
    certificate = folder.file("certificate.pem")
    try Data(response.utf8).write(to: folder.file("answer"))
    let key = folder.file("key.pem").path
    let made = try await ChildProcess.run(
      Self.openssl,
      ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        + ["-subj", "/CN=ferry", "-addext", "subjectAltName=\(names)"]
        + ["-keyout", key, "-out", certificate.path])
    guard made.status == .exited(0) else { throw SecureServerFailure(output: made.error) }
    process = try ChildProcess(
      Self.openssl,
      ["s_server", "-accept", "127.0.0.1:0", "-HTTP", "-key", key, "-cert", certificate.path],
      directory: folder.url)
    let line = try await process.line { $0.contains("ACCEPT ") }
    guard let port = line.firstMatch(of: /ACCEPT \S+:(\d+)/)?.output.1 else {
      throw SecureServerFailure(output: line)
    }
    url = "https://127.0.0.1:\(port)/answer"
  }

  /// Ends the server.
  func stop() { process.send(SIGKILL) }
}

private struct SecureServerFailure: Error {
  let output: String
}
