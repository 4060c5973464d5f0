import FerryPlatform

/// The name of a bundle in a space: 1 to 64 characters of `a–z 0–9 _ -`, the first one a letter or
/// digit.
public struct BundleName: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// Characters of a name.
  public static let bytesMax = 64

  /// The name as in a URL.
  public let value: String

  /// Creates a name; `nil` if it breaks the rule.
  public init?(_ value: String) {
    let bytes = value.utf8
    guard (1...Self.bytesMax).contains(bytes.count), let first = bytes.first,
      Self.isAlphanumeric(first),
      bytes.allSatisfy({ Self.isAlphanumeric($0) || $0 == 0x5F || $0 == 0x2D })
    else { return nil }
    self.value = value
  }

  private init(unchecked value: String) { self.value = value }

  /// Stands for a name that is read next.
  static let blank = BundleName(unchecked: "-")

  public var description: String { value }

  public static func < (left: Self, right: Self) -> Bool { left.value < right.value }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte)
  }
}

/// The version of a bundle, of a service or of a shell: one to four numbers with dots between them,
/// such as `1.12`.
///
/// Versions compare number by number. If one is the beginning of the other, the longer one is
/// later: `1 < 1.0 < 1.1 < 1.12 < 2`.
public struct BundleVersion: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// Numbers in a version.
  public static let numbersMax = 4
  /// The largest number in a version.
  public static let numberMax = 999_999_999

  /// Version 1.
  public static let first = BundleVersion(numbers: [1])

  /// The numbers, the most significant one first.
  public let numbers: [Int]

  private init(numbers: [Int]) { self.numbers = numbers }

  /// Reads a version; `nil` for anything else. A number has no leading zero.
  public init?(_ text: String) {
    var numbers: [Int] = []
    for part in text.utf8.split(separator: 0x2E, omittingEmptySubsequences: false) {
      guard (1...9).contains(part.count), part.allSatisfy({ 0x30...0x39 ~= $0 }),
        part.count == 1 || part.first != 0x30, numbers.count < Self.numbersMax
      else { return nil }
      numbers.append(part.reduce(0) { $0 * 10 + Int($1 - 0x30) })
    }
    guard !numbers.isEmpty else { return nil }
    self.numbers = numbers
  }

  /// Creates the version of one number; `nil` if it is negative or too large.
  public init?(_ number: Int) { self.init("\(number)") }

  public var description: String { numbers.map(String.init).joined(separator: ".") }

  /// Returns `true` if a service of this version serves a page with another declared version: the
  /// first numbers are equal, and this version is not older.
  public func serves(_ declared: BundleVersion) -> Bool {
    numbers[0] == declared.numbers[0] && declared <= self
  }

  public static func < (left: Self, right: Self) -> Bool {
    left.numbers.lexicographicallyPrecedes(right.numbers)
  }
}

/// A version of a bundle. Each is a separate mission, named after the version (SPEC.md §31).
public struct BundleID: Hashable, Sendable, Comparable, CustomStringConvertible {
  private static let prefix = "bundle."

  public let name: BundleName
  public let version: BundleVersion
  /// The mission with the files: `bundle.NAME.VERSION`.
  public let mission: MissionID

  /// Stands for a version that is read next.
  static let blank = BundleID(.blank, .first)

  public init(_ name: BundleName, _ version: BundleVersion) {
    self.name = name
    self.version = version
    guard let mission = MissionID("\(Self.prefix)\(name).\(version)") else {
      preconditionFailure("a bundle's name and version are always a mission's name")
    }
    self.mission = mission
  }

  /// Returns the text with which the missions of a bundle begin, or those of all bundles.
  package static func missions(of bundle: BundleName?) -> MissionID {
    guard let prefix = MissionID(bundle.map { "\(Self.prefix)\($0)." } ?? Self.prefix) else {
      preconditionFailure("a bundle's name is always a mission's name")
    }
    return prefix
  }

  /// Reads the name of a mission; `nil` if it is not a bundle's.
  public init?(mission: MissionID) {
    guard let rest = mission.value.rest(after: Self.prefix), let dot = rest.first("."),
      let name = BundleName(String(rest[..<dot])),
      let version = BundleVersion(String(rest[rest.utf8.index(after: dot)...]))
    else { return nil }
    self.init(name, version)
  }

  public var description: String { "\(name) \(version)" }

  public static func < (left: Self, right: Self) -> Bool {
    (left.name, left.version) < (right.name, right.version)
  }
}
