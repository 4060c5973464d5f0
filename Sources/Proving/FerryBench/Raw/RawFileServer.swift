import FerryLaboratory
import Foundation

/// The minimum for serving files: a blocking thread for each connection, and sendfile(2).
final class RawFileServer: Sendable {
  let port: UInt16
  private let listener: Int32
  private let directory: String

  init(directory: String) throws {
    self.directory = directory
    (listener, port) = try LoopbackSocket.listen()
    Thread.detachNewThread { [self] in
      while let socket = LoopbackSocket.accept(on: listener) {
        Thread.detachNewThread { [self] in
          serve(socket)
          close(socket)
        }
      }
    }
  }

  private func serve(_ socket: Int32) {
    var buffer = [UInt8](repeating: 0, count: 4_096)
    // Each request comes in one piece: the client waits for the response before the next.
    while case let request = LoopbackSocket.read(socket, &buffer), !request.isEmpty {
      let words = request.split(separator: UInt8(ascii: " "), maxSplits: 2)
      guard words.count == 3 else { return }
      let file = open(directory + String(decoding: words[1], as: UTF8.self), O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { return }
      defer { close(file) }
      let size = Int(lseek(file, 0, SEEK_END))
      let head = Array("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n".utf8)
      guard send(socket, head, head.count, Int32(MSG_MORE)) == head.count else { return }
      var offset: off_t = 0
      while offset < size {
        guard sendfile(socket, file, &offset, size - Int(offset)) > 0 else { return }
      }
    }
  }
}
