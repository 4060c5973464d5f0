import FerryTestSupport
import Foundation

/// A real nginx before a server, with TLS by a certificate authority made here.
final class SecureProxy: Sendable {
  private static let nginx = URL(filePath: "/usr/sbin/nginx")
  private static let openssl = URL(filePath: "/usr/bin/openssl")
  static var isAvailable: Bool {
    [nginx, openssl].allSatisfy { FileManager.default.isExecutableFile(atPath: $0.path) }
  }

  private let directory: TemporaryDirectory
  private let process: ChildProcess
  private let port: UInt16

  /// - Parameters:
  ///   - name: The name in the certificate, such as `IP:127.0.0.1`.
  ///   - bodyMax: Bytes of a request's body; above them it responds with 413 itself.
  init(to server: Server, name: String = "IP:127.0.0.1", bodyMax: Int = 1 << 20) async throws {
    directory = try TemporaryDirectory(prefix: "ferry-nginx")
    // If root starts nginx, the files belong to other users.
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: directory.url.path)
    let folder = directory.file("state")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    try await Self.makeCertificates(in: directory, name: name)
    port = try FreePort.next()
    let path = directory.url.path
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map { "\($0)_temp_path \(path)/state;" }.joined(separator: " ")
    let text = """
      daemon off; master_process off; pid \(path)/state/pid; error_log stderr notice;
      events { worker_connections 256; }
      http {
        access_log off; \(temporary)
        server {
          listen 127.0.0.1:\(port) ssl;
          ssl_certificate \(path)/certificate.pem; ssl_certificate_key \(path)/key.pem;
          client_max_body_size \(bodyMax);
          location / { proxy_pass \(server.url); proxy_buffering off; }
        }
      }
      """
    let configuration = directory.file("nginx.conf")
    try Data(text.utf8).write(to: configuration)
    process = try ChildProcess(
      Self.nginx, ["-p", path, "-e", "stderr", "-c", configuration.path])
    _ = try await process.line { $0.contains("start worker processes") || $0.contains("epoll") }
  }

  var url: String { "https://127.0.0.1:\(port)" }

  /// The authority's PEM file.
  var authority: String { directory.file("authority.pem").path }

  private static func makeCertificates(
    in directory: TemporaryDirectory, name: String
  ) async throws {
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    let files = ["authority", "key", "certificate"].map { directory.file("\($0).pem").path }
    let signer = directory.file("authority-key.pem").path
    for arguments in [
      ["req", "-x509"] + key + [
        "-subj", "/CN=Test authority", "-keyout", signer, "-out", files[0],
      ],
      ["req", "-x509"] + key + ["-subj", "/CN=ferry", "-addext", "subjectAltName=\(name)"]
        + ["-addext", "basicConstraints=critical,CA:FALSE", "-CA", files[0], "-CAkey", signer]
        + ["-keyout", files[1], "-out", files[2]],
    ] {
      let made = try await ChildProcess.run(openssl, arguments)
      guard made.status == .exited(0) else { throw TestSupportError(made.error) }
    }
  }
}
