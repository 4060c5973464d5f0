import FerryPlatform

/// The parts of the paths of a route; pure.
struct RoutePattern: Sendable {
  enum Part: Sendable, Equatable {
    /// The same in all paths.
    case name(String)
    /// Names the space.
    case space
    /// Names one thing in the space, or content.
    case item(mayBeEmpty: Bool)
  }

  let parts: [Part]

  /// Reads a path with its parameters in braces, such as `/v1/spaces/{space}`.
  init(_ path: String) {
    parts = path.utf8.split(separator: UInt8(ascii: "/")).map { bytes -> Part in
      let part = String(decoding: bytes, as: UTF8.self)
      return switch part {
      case "{space}": .space
      // The console's own page has an empty name.
      case "{file}": .item(mayBeEmpty: true)
      default: part.begins(with: "{") ? .item(mayBeEmpty: false) : .name(part)
      }
    }
  }

  func matches(_ segments: [String]) -> Bool {
    parts.count == segments.count
      && zip(parts, segments).allSatisfy { part, segment in
        switch part {
        case .name(let name): segment == name
        case .space, .item(mayBeEmpty: false): !segment.isEmpty
        case .item(mayBeEmpty: true): true
        }
      }
  }

  /// Returns the route of the decoded segments of a path.
  static func route(of segments: [String]) -> Route {
    // Leads to the console's own page.
    if segments == ["console"] { return .console }
    return Route.allCases.first { $0 != .unknown && $0.pattern.matches(segments) } ?? .unknown
  }
}

extension Route {
  private static let patterns = Dictionary(
    uniqueKeysWithValues: allCases.map { ($0, RoutePattern($0.rawValue)) })

  var pattern: RoutePattern { Self.patterns[self] ?? RoutePattern("") }
}
