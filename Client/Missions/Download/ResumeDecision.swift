import FerryNetworking

/// The decision about an answer by its head.
///
/// One rule is behind all cases: bytes are written only if the answer identifies them exactly. They
/// are written only beside bytes of the same version, unless hashes of chunks prove them (SPEC.md
/// §20).
enum ResumeDecision: Equatable {
  /// The body is these bytes of the file.
  case take(Range<Int64>)
  /// The body is the file from the start, although the request named a part.
  case takeWhole
  /// The file differs from the version of the fetched part: remove the part and start from scratch.
  case startOver(DownloadError)
  /// The server does not support such requests.
  case change(ChunkPlan.Way, DownloadError)
  /// The server may answer later, after the requested pause.
  case tryAgain(DownloadError, after: Duration?)
  /// The server's answer will not change.
  case giveUp(DownloadError)

  /// Decides about the answer to a request; `now` is in seconds since 1970.
  init(_ head: AnswerHead, to ask: TransferAsk, now: Int64) {
    switch head.status {
    case 200 where head.hasWrongLength, 206 where head.hasWrongLength:
      self = .giveUp(.wrongLength)
    case 200: self = Self.whole(head, ask)
    case 206: self = Self.part(head, ask)
    case 416: self = Self.unsatisfiable(head, ask)
    default: self = Self.refusal(head, now)
    }
  }

  private static func whole(_ head: AnswerHead, _ ask: TransferAsk) -> Self {
    if !ask.isProven, head.isEncoded || head.length == nil {
      return .giveUp(DownloadError(.changed, "the server no longer announces the file's length"))
    }
    if head.isEncoded {
      // The announced length would be that of the encoded body.
      return ask.isDecoded
        ? .take(0..<ask.size)
        : .change(.decoded, wrong("it has a coding that Ferry did not request"))
    }
    if let length = head.length, length != ask.size { return otherSize(length, head, ask) }
    return ask.hasRange ? .takeWhole : .take(0..<ask.size)
  }

  private static func part(_ head: AnswerHead, _ ask: TransferAsk) -> Self {
    guard ask.hasRange else {
      return wholly("it is a part, but Ferry requested the whole file", ask)
    }
    if head.isMultipart { return wholly("it is in several parts", ask) }
    if head.isEncoded { return wholly("it is a part of an encoded file", ask) }
    guard let range = head.contentRange, let bytes = range.bytes else {
      return wholly("it does not name its range", ask)
    }
    if let total = range.total, total != ask.size { return otherSize(total, head, ask) }
    guard range.total != nil || ask.checksChunks else {
      return wholly("it does not name the file's size", ask)
    }
    // A server may send less than requested (RFC 9110 §15.3.7), but from the requested start.
    guard bytes.lowerBound == ask.bytes.lowerBound, bytes.upperBound <= ask.bytes.upperBound else {
      return wholly("its range differs from the requested range", ask)
    }
    if let length = head.length, length != bytes.upperBound - bytes.lowerBound {
      return wholly("its length and its range contradict each other", ask)
    }
    if let validator = ask.validator, !validator.isConfirmed(by: head.headers) {
      return .startOver(DownloadError(.changed, "the file has changed on the server"))
    }
    return .take(bytes)
  }

  private static func unsatisfiable(_ head: AnswerHead, _ ask: TransferAsk) -> Self {
    if let total = head.contentRange?.total, total != ask.size {
      return otherSize(total, head, ask)
    }
    return wholly("it does not have the requested range", ask)
  }

  private static func refusal(_ head: AnswerHead, _ now: Int64) -> Self {
    let wish = head.headers["Retry-After"].flatMap { RetryPolicy.retryAfter($0, now: now) }
    let asked = wish.map { ", and asks for a pause of \($0.components.seconds) s" } ?? ""
    let error = DownloadError(
      .server(head.status), "the server answered with status \(head.status)\(asked)")
    guard RetryPolicy.isTransient(status: head.status) else { return .giveUp(error) }
    return .tryAgain(error, after: wish)
  }

  /// Requests the whole file from now on; if the request was for the whole file already, gives up.
  private static func wholly(_ fault: String, _ ask: TransferAsk) -> Self {
    ask.hasRange ? .change(.whole, wrong(fault)) : .giveUp(wrong(fault))
  }

  /// Rejects an answer of another size: it cannot be the file, and a fetched part may be of the
  /// answer's version.
  private static func otherSize(_ size: Int64, _ head: AnswerHead, _ ask: TransferAsk) -> Self {
    guard ask.isSizeKnown else {
      return .giveUp(
        DownloadError(.changed, "the file has changed on the server: it has \(size) bytes now"))
    }
    let type = head.headers["Content-Type"].map { " of \($0.prefix(80))" } ?? ""
    return .giveUp(
      DownloadError(
        .wrongContent(chunk: nil),
        "the server's file has \(size) bytes\(type) instead of \(ask.size)"))
  }

  private static func wrong(_ fault: String) -> DownloadError { .unusable(fault) }
}

extension DownloadError {
  /// An answer with a `Content-Length` that is no length.
  static let wrongLength = unusable("its Content-Length is not a length of at most 2^63-1 bytes")

  fileprivate static func unusable(_ fault: String) -> DownloadError {
    DownloadError(.wrongAnswer, "the server's answer cannot be used: \(fault)")
  }
}
