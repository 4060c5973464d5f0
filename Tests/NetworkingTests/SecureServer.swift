import Foundation

/// `openssl s_server` with a certificate of its own making; it serves files that hold responses.
final class SecureServer {
  static let openssl = URL(filePath: "/usr/bin/openssl")
  static var isAvailable: Bool { FileManager.default.isExecutableFile(atPath: openssl.path) }

  /// The PEM file that vouches for the server.
  let certificate: URL
  private let port: String
  private let folder: URL
  private let process = Process()

  /// A server for the names `names`, such as `IP:127.0.0.1`, that answers `url` with `response`.
  init(names: String, response: String = "HTTP/1.0 200 OK\r\n\r\nsafe") throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "ferry-tls-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    certificate = folder.appending(path: "certificate.pem")
    try Data(response.utf8).write(to: folder.appending(path: "answer"))
    let key = folder.appending(path: "key.pem").path
    let making = Process()
    making.executableURL = Self.openssl
    making.arguments =
      ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
      + ["-subj", "/CN=ferry", "-addext", "subjectAltName=\(names)"]
      + ["-keyout", key, "-out", certificate.path]
    let ending = Pipe()
    making.standardOutput = ending
    making.standardError = FileHandle.nullDevice
    try making.run()
    // Its output ends when it does; waitUntilExit would need this thread's run loop.
    _ = ending.fileHandleForReading.readDataToEndOfFile()
    let output = Pipe()
    process.executableURL = Self.openssl
    process.arguments =
      ["s_server", "-accept", "127.0.0.1:0", "-HTTP"]
      + ["-key", key, "-cert", certificate.path]
    process.currentDirectoryURL = folder
    process.standardInput = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    var said = ""
    while !said.contains(/ACCEPT \S+:\d+\n/) {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      said += String(decoding: more, as: UTF8.self)
    }
    port = said.firstMatch(of: /ACCEPT \S+:(\d+)\n/).map { String($0.output.1) } ?? "0"
  }

  var url: String { "https://127.0.0.1:\(port)/answer" }

  /// Ends the server and removes its files.
  func stop() {
    // SIGTERM would wait for ever: a child inherits the signals blocked on this thread.
    kill(process.processIdentifier, SIGKILL)
    try? FileManager.default.removeItem(at: folder)
  }
}
