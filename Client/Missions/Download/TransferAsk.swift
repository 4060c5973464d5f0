import FerryNetworking
import FerryPlatform
import FerryProtocol

/// The content of one request, and the known facts about its file.
struct TransferAsk: Equatable, Sendable {
  /// The requested bytes.
  var bytes: Range<Int64>
  /// Bytes of the file.
  var size: Int64
  /// True if the request names the range.
  var hasRange: Bool
  /// The version of the bytes before; `nil` if there are none, or if chunk hashes prove the
  /// content.
  var validator: TransferValidator?
  /// True if each chunk is checked by its own hash: no version needs to be known.
  var checksChunks: Bool
  /// True if the transport may request encodings; it decodes them.
  var isDecoded = false
  /// True if another size cannot be the file. Otherwise another size is another version of it.
  var isSizeKnown = true
  /// True if a hash proves the content. Otherwise the head must announce the exact length.
  var isProven = true

  /// The header fields.
  var headers: TransportHeaders {
    var headers: TransportHeaders = isDecoded ? [:] : ["Accept-Encoding": "identity"]
    guard hasRange else { return headers }
    headers.add("Range", "bytes=\(bytes.lowerBound)-\(bytes.upperBound - 1)")
    if let validator { headers.add("If-Range", validator.text) }
    return headers
  }
}

/// The head of an answer, with the parts for a decision.
struct AnswerHead: Equatable, Sendable {
  var status: Int
  var headers: TransportHeaders = [:]

  /// True if the body differs from the file's own bytes.
  var isEncoded: Bool {
    guard let encoding = headers["Content-Encoding"]?.lowercasedASCII else { return false }
    return !encoding.isEmpty && encoding != "identity"
  }

  /// The announced length of the body, in bytes; `nil` if it is missing or wrong.
  var length: Int64? {
    let lengths = lengths
    guard let first = lengths.first, lengths.allSatisfy({ $0 == first }) else { return nil }
    return first
  }

  /// True if the head announces an impossible length: not a number, a number beyond 63 bits, or
  /// several different ones. Equal ones count once (RFC 9110 §8.6).
  var hasWrongLength: Bool { !lengths.isEmpty && length == nil }

  private var lengths: [Int64?] {
    headers.values(of: "Content-Length").flatMap { field in
      field.parts(at: ",").map {
        ContentRange.number($0.trimmedBlanks)
      }
    }
  }

  var contentRange: ContentRange? { headers["Content-Range"].flatMap { ContentRange($0) } }

  var isMultipart: Bool {
    headers["Content-Type"]?.lowercasedASCII.begins(with: "multipart/") ?? false
  }
}
