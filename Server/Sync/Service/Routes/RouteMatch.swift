/// The route of a method and a path; pure.
package struct RouteMatch: Sendable {
  package var route: Route
  /// The part of the path that names the space, unchanged.
  package var spaceText: String?
  /// The part that names one thing in the space, or content, unchanged.
  package var itemText: String?
  /// `nil` if the route does not have the method.
  package var endpoint: Endpoint?

  /// Matches the decoded segments of a path.
  /// - Parameter path: The path as it was sent. Ferry takes its own names only without
  ///   percent-encoding: `/%6Detrics` is unknown, so that a proxy which bars `/metrics` bars it.
  package init(method: String, segments: [String], path: String? = nil) {
    route = Self.hidesName(segments, path) ? .unknown : RoutePattern.route(of: segments)
    endpoint = route.endpoints.first { $0.method == method }
    for (part, segment) in zip(route.pattern.parts, segments) {
      switch part {
      case .space: spaceText = segment
      case .item: itemText = segment
      case .name: break
      }
    }
  }

  /// Returns whether a part that is the same in all addresses of a route is written by other
  /// characters.
  private static func hidesName(_ segments: [String], _ path: String?) -> Bool {
    guard let path, path.utf8.contains(UInt8(ascii: "%")) else { return false }
    let raw = path.utf8.dropFirst()
      .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard raw.count == segments.count else { return true }
    return [0, 1, 3].contains { index in
      index < raw.count && !raw[index].elementsEqual(segments[index].utf8)
    }
  }
}
