import Networking

/// What one request asks for, and what is known of the file it asks from.
struct TransferAsk: Equatable, Sendable {
  /// The bytes wanted.
  var bytes: Range<Int64>
  /// Bytes of the file.
  var size: Int64
  /// Whether the request names the range.
  var hasRange: Bool
  /// Which version the bytes before came from; nil where there are none, or where chunk hashes
  /// tell by content.
  var validator: TransferValidator?
  /// Whether each chunk is checked by its own hash, so that no version needs to be known.
  var checksChunks: Bool
  /// Whether the transport may ask for encodings, which it decodes.
  var isDecoded = false

  /// The header fields.
  var headers: TransportHeaders {
    var headers: TransportHeaders = isDecoded ? [:] : ["Accept-Encoding": "identity"]
    guard hasRange else { return headers }
    headers.add("Range", "bytes=\(bytes.lowerBound)-\(bytes.upperBound - 1)")
    if let validator { headers.add("If-Range", validator.text) }
    return headers
  }
}

/// The head of an answer, as a decision needs it.
struct AnswerHead: Equatable, Sendable {
  var status: Int
  var headers: TransportHeaders = [:]

  /// Whether the body is anything but the file's own bytes.
  var isEncoded: Bool {
    guard let encoding = headers["Content-Encoding"]?.lowercased() else { return false }
    return !encoding.isEmpty && encoding != "identity"
  }

  /// The announced length of the body, in bytes; nil where none is, or none that is a number.
  var length: Int64? { headers["Content-Length"].flatMap { ContentRange.number($0[...]) } }

  var contentRange: ContentRange? { headers["Content-Range"].flatMap { ContentRange($0) } }

  var isMultipart: Bool {
    headers["Content-Type"]?.lowercased().hasPrefix("multipart/") ?? false
  }
}
