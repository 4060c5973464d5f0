import FerryTestSupport
import Foundation
import Testing

/// The settings for nginx in Documentation/server.md, in a real nginx before a real server.
@Suite(
  "The documented nginx", .hangLimit,
  .enabled(if: DocumentedNginx.isAvailable, "needs nginx"))
struct DocumentedNginxTests {
  @Test("nginx as documented passes requests on, and refuses the metrics, however they are written")
  func metrics() async throws {
    let server = try await Server.start()
    let proxy = try await DocumentedNginx(before: server)
    #expect(try await Wire.send(.get, "\(server.url)/metrics").status == 200)
    #expect(try await Wire.send(.get, "\(proxy.url)/healthz").status == 200)
    let space = try await Wire.send(.put, "\(proxy.url)/v1/spaces/notes")
    // The server has no tokens, and recognises a proxy's request by the header.
    #expect(space.status == 403 && space.text.contains("X-Forwarded-For"), "\(space.text)")
    for path in ["/metrics", "/metrics?x=1", "//metrics", "/%6Detrics", "/x/%2e%2e/metrics"] {
      #expect(try await Wire.send(.get, proxy.url + path).status == 403, "\(path)")
    }
    for path in ["/metrics/", "/metrics/x", "/METRICS"] {
      #expect(try await Wire.send(.get, proxy.url + path).status == 404, "\(path)")
    }
  }
}

/// An nginx with the settings of the document.
private final class DocumentedNginx: Sendable {
  private static let nginx = URL(filePath: "/usr/sbin/nginx")
  static var isAvailable: Bool { FileManager.default.isExecutableFile(atPath: nginx.path) }

  private let directory: TemporaryDirectory
  private let process: ChildProcess
  private let port: UInt16

  init(before server: Server) async throws {
    let text = try DocumentedCode("Documentation/server.md").text
    let row = try #require(text.split(separator: "\n").first { $0.hasPrefix("| nginx |") })
    let code = row.matches(of: /`([^`]+)`/).map { String($0.1) }
    try #require(code.count == 2 && code[0].contains("http://127.0.0.1:8080"), "\(code)")
    let pass = code[0].replacing("http://127.0.0.1:8080", with: server.url)
    directory = try TemporaryDirectory(prefix: "ferry-nginx")
    // If root starts nginx, the files belong to other users.
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: directory.url.path)
    try FileManager.default.createDirectory(
      at: directory.file("state"), withIntermediateDirectories: false)
    port = try FreePort.next()
    let path = directory.url.path
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map { "\($0)_temp_path \(path)/state;" }.joined(separator: " ")
    let settings = """
      daemon off; master_process off; pid \(path)/state/pid; error_log stderr notice;
      events { worker_connections 256; }
      http {
        access_log off; \(temporary)
        server {
          listen 127.0.0.1:\(port);
          location / { \(pass) }
          \(code[1])
        }
      }
      """
    let configuration = directory.file("nginx.conf")
    try Data(settings.utf8).write(to: configuration)
    process = try ChildProcess(
      Self.nginx, ["-p", path, "-e", "stderr", "-c", configuration.path])
    _ = try await process.line { $0.contains("start worker processes") || $0.contains("epoll") }
  }

  var url: String { "http://127.0.0.1:\(port)" }
}
