import CFerryMicroHTTPD
import Glibc

extension HTTPResponse {
  /// The live body, if there is one.
  var stream: HTTPStream? {
    switch body {
    case .stream(let stream), .relay(let stream, _): stream
    case .bytes, .file, .segments: nil
    }
  }

  /// Returns the response as libmicrohttpd's object, to be released with MHD_destroy_response; nil
  /// when it is out of memory. Content is not copied.
  func daemonResponse(
    outlet: StreamOutlet, method: String, closes: Bool
  ) -> OpaquePointer? {
    let response: OpaquePointer? =
      switch body {
      case .bytes(let bytes): ContentOwner(bytes, share).daemonResponse()
      case .stream(let stream): StreamOwner(stream, outlet).daemonResponse()
      case .relay(let stream, let count) where count > 0 && sendsContent(for: method):
        StreamOwner(stream, outlet).daemonResponse(count: count)
      case .file(let content) where sendsContent(for: method): content.daemonResponse()
      case .segments(let content) where sendsContent(for: method): content.daemonResponse()
      case .file, .segments, .relay: contentlessDaemonResponse(count: body.count ?? 0)
      }
    guard let response else { return nil }
    for field in headers.fields {
      // Refuses line breaks in names and values, which would split the response.
      MHD_add_response_header(response, field.name, field.value)
    }
    if closes { MHD_add_response_header(response, "Connection", "close") }
    return response
  }

  /// Returns a whole HTTP/1.1 message that ends the connection. A live body and files are left out.
  func closingMessage(omitsContent: Bool) -> [UInt8] {
    let content: [UInt8] = if case .bytes(let bytes) = body { bytes } else { [] }
    let reason = MHD_get_reason_phrase_for(UInt32(status)).map { String(cString: $0) } ?? ""
    var head = "HTTP/1.1 \(status) \(reason)\r\nDate: \(Self.date())\r\n"
    head += "Connection: close\r\nContent-Length: \(content.count)\r\n"
    for field in headers.fields
    where !(field.name + field.value).utf8.contains(where: { $0 == 10 || $0 == 13 }) {
      head += "\(field.name): \(field.value)\r\n"
    }
    return Array((head + "\r\n").utf8) + (omitsContent ? [] : content)
  }

  /// Returns the present time in the form of RFC 9110 §5.6.7.
  private static func date() -> String {
    var now = time(nil)
    var parts = tm()
    gmtime_r(&now, &parts)
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
      guard let text = text.baseAddress else { return "" }
      // The process keeps the C locale, in which these names are English.
      let count = strftime(text, 64, "%a, %d %b %Y %H:%M:%S GMT", &parts)
      return count > 0 ? String(cString: text) : ""
    }
  }
}

/// The owner of a response's bytes while libmicrohttpd sends them.
private final class ContentOwner {
  private let bytes: [UInt8]
  private let share: MemoryShare?

  init(_ bytes: [UInt8], _ share: MemoryShare?) {
    self.bytes = bytes
    self.share = share
  }

  func daemonResponse() -> OpaquePointer? {
    guard !bytes.isEmpty else {
      return MHD_create_response_from_buffer(0, nil, .RESPMEM_PERSISTENT)
    }
    // SAFETY: a native array's elements stay at their address while the array does not change, and
    // this object holds it unchanged until libmicrohttpd releases the object.
    let address = bytes.withUnsafeBytes { UnsafeMutableRawPointer(mutating: $0.baseAddress) }
    let owner = Unmanaged.passRetained(self)
    let response = MHD_create_response_from_buffer_with_free_callback_cls(
      bytes.count, address, { releaseOwner($0, ContentOwner.self) }, owner.toOpaque())
    if response == nil { owner.release() }
    return response
  }
}

/// The owner of a live body, read by libmicrohttpd.
private final class StreamOwner {
  /// Not the number of bytes sent at once to an HTTP/1.1 client: this is the connection's own
  /// buffer.
  private static let blockSize = 1024
  /// Bytes handed over at once by an answer of a known size.
  private static let relayedBlockSize = 64 << 10
  private static let unknownSize = UInt64.max

  private let stream: HTTPStream
  private let exchange: Exchange

  init(_ stream: HTTPStream, _ outlet: StreamOutlet) {
    self.stream = stream
    exchange = outlet.exchange
    stream.attach(outlet)
  }

  /// - Parameter count: The size in bytes; `nil` if it is not known.
  func daemonResponse(count: Int? = nil) -> OpaquePointer? {
    let owner = Unmanaged.passRetained(self)
    let response = MHD_create_response_from_callback(
      count.map { UInt64($0) } ?? Self.unknownSize,
      count == nil ? Self.blockSize : Self.relayedBlockSize,
      { owner, _, buffer, size in
        guard let owner else { return StreamOwner.failure }
        return Unmanaged<StreamOwner>.fromOpaque(owner).takeUnretainedValue()
          .read(into: UnsafeMutableRawBufferPointer(start: buffer, count: size))
      }, owner.toOpaque(), { releaseOwner($0, StreamOwner.self) })
    if response == nil { owner.release() }
    return response
  }

  /// MHD_CONTENT_READER_END_OF_STREAM and MHD_CONTENT_READER_END_WITH_ERROR.
  private static let end = -1
  private static let failure = -2

  private func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    switch stream.read(into: buffer) {
    case .bytes(let count):
      exchange.countStreamed(count)
      return count
    case .suspended: return 0
    case .end: return Self.end
    case .failure: return Self.failure
    }
  }
}

/// Undoes `Unmanaged.passRetained`.
func releaseOwner<T: AnyObject>(_ pointer: UnsafeMutableRawPointer?, _: T.Type) {
  if let pointer { Unmanaged<T>.fromOpaque(pointer).release() }
}
