/// A user of a server: the owner of tokens, or the subject of JSON Web Tokens (SPEC.md §41).
///
/// ```swift
/// UserID("owner:ada")?.name  // ada
/// UserID("jwt:https://id.example#248289761001")?.name  // 248289761001
/// ```
public struct UserID: Sendable, Hashable, CustomStringConvertible {
  /// Bytes of UTF-8 at most.
  static let bytesMax = 512

  private static let kinds = ["owner:", "jwt:"]

  /// The principal (SPEC.md §8): `owner:` and the owner, or `jwt:`, the issuer, `#` and the subject.
  public let text: String

  /// Returns `nil` for a text of another form, and for one that is not safe to show.
  public init?(_ text: String) {
    guard text.utf8.count <= Self.bytesMax, ReadableName.hiddenScalar(in: text) == nil,
      Self.kinds.contains(where: {
        text.utf8.starts(with: $0.utf8) && text.utf8.count > $0.utf8.count
      })
    else { return nil }
    self.text = text
  }

  /// Creates the user of a text from a command line: a user, or the owner of tokens alone.
  public init?(owner text: String) {
    if let user = UserID(text) {
      self = user
    } else {
      self.init("\(Self.kinds[0])\(text)")
    }
  }

  private init(unchecked text: String) { self.text = text }

  /// Stands for a user that is read next.
  package static let blank = UserID(unchecked: "owner:-")

  /// For people: the owner, or the subject.
  public var name: String {
    let isOwner = text.utf8.starts(with: Self.kinds[0].utf8)
    let mark = UInt8(ascii: isOwner ? ":" : "#")
    let rest = text.utf8.drop { $0 != mark }.dropFirst()
    return rest.isEmpty ? text : String(decoding: rest, as: UTF8.self)
  }

  public var description: String { text }

  public static func == (left: UserID, right: UserID) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  public func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }
}
