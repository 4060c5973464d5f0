import CFerryMicroHTTPD
import Glibc

/// The unread bytes of a non-blocking socket.
enum PendingInput {
  case none
  case some
  /// The peer has stopped sending, or the connection is broken.
  case ended

  /// Peeks at the input without removing anything.
  init(peeking socket: Int32) {
    var byte: UInt8 = 0
    let count = recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
    self =
      if count > 0 { .some } else if count < 0 && (errno == EAGAIN || errno == EINTR) { .none } else
      { .ended }
  }
}
