import FerryLaboratory
import Foundation

/// The operations described by `Protocol/openapi.yaml`, read line by line.
package struct OpenAPIDescription: Sendable {
  /// A method of a path.
  package struct Operation: Sendable, Equatable {
    /// The statuses of the answers, in their order.
    package var statuses: [String] = []
    /// The required role; `nil` if every caller may use the operation.
    package var role: String?
    /// Whether a request has content.
    package var hasContent = false
    /// The names of the query parameters.
    package var query: Set<String> = []
    /// The required query parameters.
    package var required: Set<String> = []
    /// The smallest and the largest value of each numeric query parameter.
    package var ranges: [String: Range] = [:]
  }

  /// A range of a number; `nil` for no end.
  package struct Range: Sendable, Equatable {
    package var minimum: Int?
    package var maximum: Int?
  }

  package let text: String
  /// The operations by path and method.
  package private(set) var operations: [String: [String: Operation]] = [:]

  /// Reads the file of this package.
  package init() throws {
    try self.init(Project.text("Protocol/openapi.yaml"))
  }

  init(_ text: String) throws {
    self.text = text
    guard let start = text.firstRange(of: "\npaths:\n")?.upperBound,
      let end = text.firstRange(of: "\ncomponents:\n")?.lowerBound
    else { throw TestSupportError("openapi.yaml has no paths before its components") }
    var (path, method, parameter) = ("", "", "")
    for line in text[start..<end].split(separator: "\n") {
      if let match = line.wholeMatch(of: #/  (/\S*):/#) { path = String(match.1) }
      if let match = line.wholeMatch(of: #/    ([a-z]+):/#) {
        method = match.1.uppercased()
        operations[path, default: [:]][method] = Operation()
      }
      if let match = line.wholeMatch(of: #/      security: \[\{token: \[([a-z]+)\]\}\]/#) {
        operations[path]?[method]?.role = String(match.1)
      }
      if line == "      requestBody:" { operations[path]?[method]?.hasContent = true }
      if let match = line.prefixMatch(of: #/        '(\d{3})':/#) {
        operations[path]?[method]?.statuses.append(String(match.1))
      }
      if let match = line.wholeMatch(of: #/        - name: (\S+)/#) { parameter = String(match.1) }
      if line == "          in: query" { operations[path]?[method]?.query.insert(parameter) }
      if line.hasPrefix("          schema: {type: integer"),
        operations[path]?[method]?.query.contains(parameter) == true
      {
        operations[path]?[method]?.ranges[parameter] = Range(
          minimum: line.firstMatch(of: #/minimum: (\d+)/#).flatMap { Int($0.1) },
          maximum: line.firstMatch(of: #/maximum: (\d+)/#).flatMap { Int($0.1) })
      }
      if line == "          required: true",
        operations[path]?[method]?.query.contains(parameter) == true
      {
        operations[path]?[method]?.required.insert(parameter)
      }
    }
  }

  /// Returns the reason why a request is not described; `nil` for a described one.
  ///
  /// - Parameter target: The path and the query of the request, as they are sent.
  package func fault(_ method: String, _ target: String) -> String? {
    let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let segments = parts[0].split(separator: "/", omittingEmptySubsequences: false)
    // A path without parameters is more exact than one with them.
    let paths = operations.keys.filter { Self.matches($0, segments) }.sorted {
      $0.count { $0 == "{" } < $1.count { $0 == "{" }
    }
    guard let path = paths.first else { return "\(target): no path of openapi.yaml is like it" }
    guard let operation = operations[path]?[method] else { return "\(path) has no \(method)" }
    let fields = (parts.count > 1 ? parts[1] : "").split(separator: "&")
    let names = fields.map { String($0.prefix { $0 != "=" }) }
    if let unknown = names.first(where: { !operation.query.contains($0) }) {
      return "\(method) \(path) has no query parameter \(unknown)"
    }
    if let missing = operation.required.subtracting(names).sorted().first {
      return "\(method) \(path) needs the query parameter \(missing)"
    }
    return nil
  }

  private static func matches(_ path: String, _ segments: [Substring]) -> Bool {
    let pattern = path.split(separator: "/", omittingEmptySubsequences: false)
    guard pattern.count == segments.count else { return false }
    return zip(pattern, segments).allSatisfy { part, segment in
      // The console's own page has an empty name.
      part.hasPrefix("{") ? !segment.isEmpty || part == "{file}" : part == segment
    }
  }
}
