import FerryNetworking
import FerryPlatform

/// Distinguishes versions of a file byte for byte (RFC 9110 §8.8.1): a strong entity tag, or a date
/// of last change that is old enough.
///
/// A weak tag does not count: it may stay the same when unimportant bytes change.
struct TransferValidator: Equatable, Sendable {
  /// The least age of a last change relative to the answer, in seconds. It excludes a second change
  /// within the same second, even if two clocks made the dates (RFC 9110 §8.8.2.2).
  private static let ageMin: Int64 = 60

  /// The text as it travels in `ETag` or `Last-Modified`, and in `If-Range`.
  let text: String

  /// Creates a validator from the stored text of an earlier answer.
  init(kept text: String) { self.text = text }

  /// Reads an answer's validator; `nil` if it has no strong one.
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

  /// Returns true if an answer confirms exactly this version.
  func isConfirmed(by headers: TransportHeaders) -> Bool {
    headers[text.begins(with: "\"") ? "ETag" : "Last-Modified"]?.isSame(as: text) ?? false
  }

  /// Returns true if the text is one tag in quotes (RFC 9110 §8.8.3), without the mark of a weak
  /// one.
  private static func isStrongTag(_ tag: String) -> Bool {
    let bytes = tag.utf8
    guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"")
    else { return false }
    return bytes.dropFirst().dropLast().allSatisfy {
      $0 != UInt8(ascii: "\"") && $0 > 0x20 && $0 != 0x7F
    }
  }
}
