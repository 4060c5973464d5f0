import FerryLaboratory
import Foundation

/// A real nginx over a directory, slow enough to be interrupted, with a count of sent bytes.
package final class NginxFileServer: Sendable {
  private static let nginx = URL(filePath: "/usr/sbin/nginx")
  package static var isAvailable: Bool { FileManager.default.isExecutableFile(atPath: nginx.path) }

  private let directory: TemporaryDirectory
  private let process: ChildProcess
  package let port: UInt16

  /// Creates a server without a file; each response gets `rate` bytes a second after the first
  /// part.
  package init(rate: Int) async throws {
    directory = try TemporaryDirectory(prefix: "ferry-nginx")
    for folder in ["files", "state"] {
      try FileManager.default.createDirectory(
        at: directory.file(folder), withIntermediateDirectories: false)
    }
    port = try FreePort.next()
    let configuration = directory.file("nginx.conf")
    let text = Self.configuration(in: directory.url.path, port: port, rate: rate)
    try Data(text.utf8).write(to: configuration)
    process = try ChildProcess(
      Self.nginx, ["-p", directory.url.path, "-e", "stderr", "-c", configuration.path])
    _ = try await process.line { $0.contains("start worker processes") || $0.contains("epoll") }
  }

  /// Of the server's one file.
  package var url: String { "http://127.0.0.1:\(port)/file" }

  /// Replaces the file as a deployment does: whole, at once.
  package func replace(_ content: [UInt8], modified: Int) throws {
    let next = directory.file("files/next")
    try Data(content).write(to: next)
    try FileManager.default.setAttributes(
      [
        .modificationDate: Date(timeIntervalSince1970: TimeInterval(modified)),
        .posixPermissions: 0o644,
      ], ofItemAtPath: next.path)
    guard rename(next.path, directory.file("files/file").path) == 0 else {
      throw TestSupportError("cannot replace the file: error \(errno)")
    }
  }

  /// Returns status and bytes of the body, for each ended response.
  package func log() throws -> [(status: Int, bytes: Int)] {
    let text = try String(contentsOf: directory.file("state/log"), encoding: .utf8)
    return text.split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ").compactMap { Int($0) }
      return words.count == 2 ? (words[0], words[1]) : nil
    }
  }

  /// Returns the same, once a response like this has ended: nginx records it a little later.
  @discardableResult
  package func log(
    with isWanted: (_ status: Int, _ bytes: Int) -> Bool
  ) async throws -> [(status: Int, bytes: Int)] {
    var found: [(status: Int, bytes: Int)] = []
    return try await eventually("an answer of nginx, not only \(found)", from: process) {
      found = try log()
      return found.contains { isWanted($0.status, $0.bytes) } ? found : nil
    }
  }

  private static func configuration(in directory: String, port: UInt16, rate: Int) -> String {
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
        log_format bytes '$status $body_bytes_sent';
        access_log \(directory)/state/log bytes; \(temporary)
        server {
          listen 127.0.0.1:\(port) sndbuf=64k;
          root \(directory)/files;
          limit_rate \(rate);
          location = /loop { return 302 /loop; }
        }
      }
      """
  }
}
