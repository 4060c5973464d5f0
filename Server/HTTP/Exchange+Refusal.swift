import CFerryMicroHTTPD
import Glibc

extension Exchange {
  /// Bytes that libmicrohttpd may hold of a chunk's head without being stuck in it.
  private static let chunkHeadMax: UInt64 = 128

  /// Answers and closes in the middle of a request, which libmicrohttpd cannot do. It would first
  /// read all content, or reset the connection if it does not.
  func refuse(_ failure: HTTPFailure) -> Bool {
    let answer = core.configuration.failure(failure, remoteAddress).negotiated(acceptEncoding: nil)
    return refuse(core.configuration.amend(answer, receivedHeaders()))
  }

  func refuse(_ response: HTTPResponse) -> Bool {
    let message = response.closingMessage(omitsContent: method == "HEAD")
    let flags = Int32(MSG_DONTWAIT | MSG_NOSIGNAL)
    // Nothing else is on its way here, so the kernel's buffer takes the message whole.
    if send(socket, message, message.count, flags) == message.count {
      status = response.status
      responseBytes = message.count
      isRefused = true
      LingeringClose.begin(socket)
    }
    phase = .answered
    return false
  }

  /// Answers instead of libmicrohttpd when it is about to answer an error badly. It would answer
  /// twice if the headers cannot be parsed as a whole, and with 500 if a chunk's head is too long.
  /// Its own answers then find a closed socket. Called on the thread of a connection with an error,
  /// for each exchange of this thread.
  func answerDaemonFault() {
    guard let failure = daemonFault else { return }
    _ = refuse(failure)
    // The daemon goes on to send; nothing of it may go out.
    shutdown(socket, Int32(SHUT_WR))
  }

  /// The fault of the request, if it is this one.
  private var daemonFault: HTTPFailure? {
    // An answered one may still wait for the answer to go out.
    guard ferry_mhd_status(connection) == 0 else { return nil }
    switch phase {
    case .headers:
      // Complete headers not seen by `proceed`: they are looked at this very moment.
      guard ferry_mhd_has_headers(connection) else { return nil }
      let framing = Result { () throws(HTTPFailure) in
        try RequestFraming(headers: receivedHeaders(), version: "HTTP/1.1", authority: nil)
      }
      switch framing {
      case .failure(let failure): return failure
      case .success(let framing) where framing.declaredLength == .max:
        return .contentTooLarge(limit: core.configuration.bodyLimit)
      case .success: return .headersTooLarge
      }
    case .content(let intake) where intake.declaredLength == nil:
      guard let before = consumedBytes, let now = SocketProgress.consumedBytes(of: socket),
        now > before + Self.chunkHeadMax
      else { return nil }
      return .malformedChunk
    default: return nil
    }
  }

  /// Returns the request's header fields, in order. Bytes that are not UTF-8 are replaced.
  func receivedHeaders() -> HTTPHeaders {
    var headers = HTTPHeaders()
    forEachHeader { name, value in
      headers.append(
        String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
    }
    return headers
  }

  /// Returns `true` if the client sent nothing but the request line and the header fields.
  func isHeadWhole(
    _ line: (method: UnsafePointer<CChar>, version: UnsafePointer<CChar>)
  ) -> Bool {
    var layout = HeadLayout(
      line: UInt(bitPattern: line.method), version: UInt(bitPattern: line.version),
      versionCount: strlen(line.version))
    forEachHeader { name, value in
      layout.append(
        name: UInt(bitPattern: name.baseAddress), nameCount: name.count,
        value: UInt(bitPattern: value.baseAddress), valueCount: value.count)
    }
    return layout.fills(ferry_mhd_header_size(connection))
  }

  private typealias Visit = (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Void

  /// Visits the names and the values of the header fields, in order, where they were read to.
  private func forEachHeader(_ visit: Visit) {
    withoutActuallyEscaping(visit) { visit in
      withUnsafePointer(to: visit) { visit in
        _ = MHD_get_connection_values_n(
          connection, .HEADER_KIND,
          { visit, _, name, nameSize, value, valueSize in
            visit?.assumingMemoryBound(to: Visit.self).pointee(
              bytes(name, nameSize), bytes(value, valueSize))
            return .YES
          }, UnsafeMutableRawPointer(mutating: visit))
      }
    }
  }
}

/// A request's target, as libmicrohttpd hands it on before it decodes it.
struct RequestLineTarget {
  let text: String
  /// The address of the target, to find the target's length.
  private let start: UInt
  private let count: Int

  init(_ target: UnsafePointer<CChar>?) {
    start = UInt(bitPattern: target)
    count = target.map { strlen($0) } ?? 0
    text = target.map { String(cString: $0) } ?? ""
  }

  /// Returns the target, whose end is just before the version. A NUL would end it too early for C,
  /// so a longer target contains the NUL and is refused.
  func text(before version: UnsafePointer<CChar>) -> String {
    UInt(bitPattern: version) == start + UInt(count) + 1 ? text : text + "\0"
  }
}

private func bytes(_ start: UnsafePointer<CChar>?, _ count: Int) -> UnsafeRawBufferPointer {
  UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
}
