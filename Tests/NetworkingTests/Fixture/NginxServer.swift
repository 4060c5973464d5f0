import FerryTestSupport
import Foundation

/// A real nginx with TLS and HTTP/2, and a certificate made here.
final class NginxServer: Sendable {
  private static let nginx = URL(filePath: "/usr/sbin/nginx")
  static var isAvailable: Bool {
    SecureServer.isAvailable && FileManager.default.isExecutableFile(atPath: nginx.path)
  }

  private let directory: TemporaryDirectory
  private let process: ChildProcess
  private let port: UInt16

  /// Creates a server for `files` and uploads; every response states the protocol and connection.
  init(files: [String: [UInt8]] = [:]) async throws {
    directory = try TemporaryDirectory(prefix: "ferry-nginx")
    // If root starts nginx, the files belong to other users.
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: directory.url.path)
    for folder in ["files", "state"] {
      try FileManager.default.createDirectory(
        at: directory.file(folder), withIntermediateDirectories: false)
    }
    for (name, content) in files {
      try Data(content).write(to: directory.file("files/\(name)"))
    }
    _ = try await ChildProcess.run(
      SecureServer.openssl,
      ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        + ["-subj", "/CN=ferry", "-addext", "subjectAltName=IP:127.0.0.1"]
        + ["-keyout", directory.file("key.pem").path]
        + ["-out", directory.file("certificate.pem").path])
    port = try FreePort.next()
    let configuration = directory.file("nginx.conf")
    try Data(Self.configuration(in: directory.url.path, port: port).utf8).write(to: configuration)
    process = try ChildProcess(
      Self.nginx, ["-p", directory.url.path, "-e", "stderr", "-c", configuration.path])
    _ = try await process.line { $0.contains("start worker processes") || $0.contains("epoll") }
  }

  /// The PEM file to verify the server with.
  var certificate: String { directory.file("certificate.pem").path }

  func url(_ path: String) -> String { "https://127.0.0.1:\(port)\(path)" }

  /// Returns the content uploaded as `name`.
  func file(_ name: String) -> [UInt8]? {
    FileManager.default.contents(atPath: directory.file("files/\(name)").path).map(Array.init)
  }

  /// Returns the size of the content uploaded as `name`.
  func size(_ name: String) -> Int? {
    let path = directory.file("files/\(name)").path
    return (try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? Int
  }

  private static func configuration(in directory: String, port: UInt16) -> String {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map { "\($0)_temp_path \(directory)/state;" }.joined(separator: " ")
    return """
      daemon off; master_process off; pid \(directory)/state/pid;
      error_log stderr notice;
      events { worker_connections 256; }
      http {
        # A busy machine may give a client no turn for many seconds.
        client_header_timeout 600s; client_body_timeout 600s; send_timeout 600s;
        keepalive_timeout 600s;
        access_log off; \(temporary)
        client_max_body_size 0; client_body_in_file_only off;
        add_header Protocol $server_protocol always;
        add_header Connection-Number $connection always;
        server {
          listen 127.0.0.1:\(port) ssl http2;
          ssl_certificate \(directory)/certificate.pem;
          ssl_certificate_key \(directory)/key.pem;
          root \(directory)/files;
          location / { dav_methods PUT DELETE; }
          location = /loop { return 302 /loop; }
          location = /busy {
            add_header Retry-After 0 always; add_header Protocol $server_protocol always;
            return 503;
          }
        }
      }
      """
  }
}
