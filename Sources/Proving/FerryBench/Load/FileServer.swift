import FerryCommandLine
import FerryHTTPServer
import FerryLaboratory
import Foundation

/// Processes to serve the files of a directory on 127.0.0.1, killed when this object goes away.
final class FileServer: Sendable {
  /// For people.
  let name: String
  /// Where to connect; connections are to be spread over them evenly.
  let ports: [UInt16]
  private let children: [ChildProcess]

  private init(_ name: String, ports: [UInt16], _ children: [ChildProcess]) {
    self.name = name
    self.ports = ports
    self.children = children
  }

  /// Starts Ferry's HTTP server with two threads, in a separate process.
  static func ferry(_ directory: TemporaryDirectory) async throws -> FileServer {
    try await own("Ferry", ["serve-files", directory.url.path])
  }

  /// Starts nginx with two workers if it is installed, otherwise a bare loop of sendfile(2).
  static func best(_ directory: TemporaryDirectory) async throws -> FileServer {
    let places = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"]
    if let nginx = places.first(where: { access($0, X_OK) == 0 }) {
      return try await Self.nginx(URL(filePath: nginx), directory)
    }
    return try await own("sendfile(2)", ["serve-files", "--raw", directory.url.path])
  }

  private static func own(_ name: String, _ arguments: [String]) async throws -> FileServer {
    let child = try ChildProcess(try Executables.ferryBench(), arguments)
    let line = try await child.line { $0.hasPrefix("port ") }
    guard let port = UInt16(line.dropFirst("port ".count)) else { throw BenchError(line) }
    return FileServer(name, ports: [port], [child])
  }

  /// Starts two processes without a master, for the workers of one would outlive it when it is
  /// killed.
  private static func nginx(
    _ program: URL, _ directory: TemporaryDirectory
  ) async throws -> FileServer {
    var (ports, children) = ([UInt16](), [ChildProcess]())
    for number in 0..<2 {
      let port = try FreePort.next()
      let file = directory.file("nginx-\(number).conf")
      let text = configuration(port: port, number, directory)
      try Data(text.utf8).write(to: file)
      children.append(
        try ChildProcess(program, ["-c", file.path, "-e", "stderr", "-p", directory.url.path]))
      ports.append(port)
    }
    let server = FileServer("nginx", ports: ports, children)
    try await server.waitUntilListening()
    return server
  }

  private static func configuration(
    port: UInt16, _ number: Int, _ directory: TemporaryDirectory
  ) -> String {
    """
    daemon off;
    master_process off;
    pid \(directory.url.path)/nginx-\(number).pid;
    events { worker_connections 256; }
    http {
      access_log off;
      sendfile on;
      tcp_nopush on;
      keepalive_requests 1000000000;
      server { listen 127.0.0.1:\(port); root \(directory.url.path); }
    }
    """
  }

  private func waitUntilListening() async throws {
    let watch = Stopwatch()
    for (port, child) in zip(ports, children) {
      while true {
        if let descriptor = try? LoopbackSocket.connect(to: port) {
          close(descriptor)
          break
        }
        guard child.endedWith == nil, watch.seconds < 10 else {
          throw BenchError("\(name) does not listen: \(child.error)")
        }
        try await Task.sleep(for: .milliseconds(10))
      }
    }
  }
}

/// The process behind `FileServer`.
enum FileServerProcess {
  static let command = CommandSpec(
    "serve-files", summary: "Serve the files of a directory until killed.",
    flags: [FlagSpec("raw", help: "Use only sendfile(2).")],
    arguments: [ArgumentSpec("directory", help: "The directory with the files.")], hidden: true
  ) { arguments in
    let directory = try arguments.string("directory")
    if arguments.flag("raw") {
      let server = try RawFileServer(directory: directory)
      try TextOutput.standardOutput.line("port \(server.port)")
      while true { try await Task.sleep(for: .seconds(3_600)) }
    }
    let server = try HTTPServer(configuration: .init()) { request in
      answer(request, from: directory)
    }
    try TextOutput.standardOutput.line("port \(server.port)")
    while true { try await Task.sleep(for: .seconds(3_600)) }
  }

  @Sendable private static func answer(
    _ request: HTTPRequest, from directory: String
  ) -> HTTPResponse {
    guard let name = request.segments.first,
      let file = try? ReadableFile(path: "\(directory)/\(name)")
    else { return HTTPResponse(status: 404) }
    return HTTPResponse(
      answering: request, with: .file(FileContent(file)), tag: EntityTag(strong: name),
      mediaType: "application/octet-stream")
  }
}
