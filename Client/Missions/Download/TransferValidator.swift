import Networking

/// What tells one version of a file from another, byte for byte (RFC 9110 §8.8.1): a strong entity
/// tag, or a date of last change that is old enough.
///
/// A weak tag is none: it stays the same when bytes change that the server thinks unimportant.
struct TransferValidator: Equatable, Sendable {
  /// How much older than the answer a last change must be, in seconds, so that a second one within
  /// the same second is ruled out even where two clocks made the dates (RFC 9110 §8.8.2.2).
  private static let ageMin: Int64 = 60

  /// As it travels in `ETag` or `Last-Modified`, and in `If-Range`.
  let text: String

  /// What was kept of an earlier answer.
  init(kept text: String) { self.text = text }

  /// Reads an answer's; nil when it has none that is strong.
  init?(_ headers: TransportHeaders) {
    if let tag = headers["ETag"], Self.isStrongTag(tag) {
      text = tag
      return
    }
    guard let changed = headers["Last-Modified"], let sent = headers["Date"],
      let changedAt = HTTPDate.parse(changed, now: 0), let sentAt = HTTPDate.parse(sent, now: 0),
      sentAt - changedAt >= Self.ageMin
    else { return nil }
    text = changed
  }

  /// Whether an answer is about this very version; one that does not say so is not.
  func isConfirmed(by headers: TransportHeaders) -> Bool {
    headers[text.first == "\"" ? "ETag" : "Last-Modified"] == text
  }

  /// One tag in quotes (RFC 9110 §8.8.3), without the mark of a weak one.
  private static func isStrongTag(_ tag: String) -> Bool {
    let bytes = tag.utf8
    guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"")
    else { return false }
    return bytes.dropFirst().dropLast().allSatisfy {
      $0 != UInt8(ascii: "\"") && $0 > 0x20 && $0 != 0x7F
    }
  }
}
