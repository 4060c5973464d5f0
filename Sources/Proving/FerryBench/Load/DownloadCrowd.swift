import FerryLaboratory
import Foundation

/// Clients that download files over kept connections, a thread each, and throw them away.
enum DownloadCrowd {
  /// Returns whole downloads a second of files of `size` bytes, by this many clients for some
  /// seconds.
  static func run(
    on server: FileServer, files: [String], size: Int, clients: Int, seconds: Double
  ) async throws -> Double {
    let watch = Stopwatch()
    let counts = try await withThrowingTaskGroup(of: Int.self) { group in
      for client in 0..<clients {
        let port = server.ports[client % server.ports.count]
        group.addTask {
          try await onThread {
            let connection = try DownloadConnection(port)
            var count = 0
            // Neighbours do not ask for the same file at the same time.
            var next = client * 7
            while watch.seconds < seconds {
              let bytes = try connection.download(files[next % files.count])
              guard bytes == size else { throw BenchError("received \(bytes) of \(size) bytes") }
              count += 1
              next += 1
            }
            return count
          }
        }
      }
      return try await group.reduce(0, +)
    }
    return Double(counts) / watch.seconds
  }

  /// Runs blocking code off the cooperative pool.
  private static func onThread<T: Sendable>(
    _ body: @escaping @Sendable () throws -> T
  ) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
    }
  }
}

/// One kept connection.
private final class DownloadConnection {
  private let socket: Int32
  private var buffer = [UInt8](repeating: 0, count: 4_096)

  init(_ port: UInt16) throws { socket = try LoopbackSocket.connect(to: port) }

  deinit { close(socket) }

  /// Returns the number of bytes of content.
  func download(_ name: String) throws -> Int {
    let request = Array("GET /\(name) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8)
    guard LoopbackSocket.write(socket, request[...]) else {
      throw BenchError("the file server has closed the connection")
    }
    var head: [UInt8] = []
    var end: Range<Int>?
    while end == nil {
      let piece = LoopbackSocket.read(socket, &buffer)
      guard !piece.isEmpty else { throw BenchError("the file server did not answer") }
      head += piece
      end = head.firstRange(of: Array("\r\n\r\n".utf8))
    }
    let text = String(decoding: head[..<(end?.lowerBound ?? 0)], as: UTF8.self)
    let lines = text.lowercased().components(separatedBy: "\r\n")
    let field = lines.first { $0.hasPrefix("content-length: ") }
    guard lines[0].hasPrefix("http/1.1 200"),
      let length = field.flatMap({ Int($0.dropFirst("content-length: ".count)) })
    else { throw BenchError("the file server answered \(text)") }
    try discard(length - (head.count - (end?.upperBound ?? 0)))
    return length
  }

  /// Without copying it out of the kernel (tcp(7), MSG_TRUNC), so the server's work counts and not
  /// this one's.
  private func discard(_ count: Int) throws {
    var rest = count
    while rest > 0 {
      let taken = recv(socket, nil, rest, Int32(MSG_TRUNC))
      guard taken > 0 else { throw BenchError("the file server closed the connection early") }
      rest -= taken
    }
  }
}
