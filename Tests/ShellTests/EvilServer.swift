import FerryTestSupport
import Foundation

/// A server of another origin, with one page.
final class EvilServer: Sendable {
  let port: UInt16
  private let listener: Int32

  init(page: @escaping @Sendable (_ port: UInt16) -> String) throws {
    let (listener, port) = try LoopbackSocket.listen()
    (self.listener, self.port) = (listener, port)
    let content = page(port)
    Thread {
      while let socket = LoopbackSocket.accept(on: listener) {
        Thread {
          var buffer = [UInt8](repeating: 0, count: 16 << 10)
          _ = LoopbackSocket.read(socket, &buffer)
          let answer =
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + content
          _ = LoopbackSocket.write(socket, Array(answer.utf8)[...])
          close(socket)
        }.start()
      }
      close(listener)
    }.start()
  }

  deinit { shutdown(listener, Int32(SHUT_RDWR)) }

  var address: String { "http://127.0.0.1:\(port)/" }
}
