import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// Keeps the description of the endpoints from trailing the routes.
@Suite("The description of the endpoints", .hangLimit)
struct OpenAPITests {
  /// Returns methods and their statuses, by path.
  private static func operations() throws -> [String: [String: [String]]] {
    var found: [String: [String: [String]]] = [:]
    var (path, method) = ("", "")
    let text = try Self.text()
    let start = try #require(text.firstRange(of: "\npaths:\n")).upperBound
    let end = try #require(text.firstRange(of: "\ncomponents:\n")).lowerBound
    for line in text[start..<end].split(separator: "\n") {
      if let match = line.wholeMatch(of: #/  (/\S*):/#) { path = String(match.1) }
      if let match = line.wholeMatch(of: #/    ([a-z]+):/#) {
        method = match.1.uppercased()
        found[path, default: [:]][method] = []
      }
      if let match = line.prefixMatch(of: #/        '(\d{3})':/#) {
        found[path]?[method]?.append(String(match.1))
      }
    }
    return found
  }

  private static func text() throws -> String {
    let here = URL(filePath: #filePath).deletingLastPathComponent()
    let file = here.appending(path: "../../Protocol/openapi.yaml").standardized
    return try String(contentsOf: file, encoding: .utf8)
  }

  @Test("the description names the paths of all routes and no others")
  func paths() throws {
    let routes = Route.allCases.filter { $0 != .unknown }.map(\.rawValue)
    #expect(try Set(Self.operations().keys) == Set(routes))
  }

  @Test("the description names the methods of each route; HEAD can be implied by GET")
  func methods() throws {
    let operations = try Self.operations()
    for route in Route.allCases where route != .unknown {
      let methods = Set(route.methods.map(\.name))
      let named = Set((operations[route.rawValue] ?? [:]).keys)
      #expect(named.isSubset(of: methods), "\(route.rawValue)")
      let missing = methods.subtracting(named)
      #expect(missing.isEmpty || missing == ["HEAD"] && named.contains("GET"), "\(route.rawValue)")
    }
  }

  @Test("each operation names the statuses that any request of its kind can get")
  func statuses() throws {
    for (path, methods) in try Self.operations() where path.hasPrefix("/v1/") {
      for (method, statuses) in methods {
        let common = ["400", "401", "403", "404", "405", "500", "503"]
        #expect(Set(common).isSubset(of: statuses), "\(method) \(path)")
        let takesContent = method == "POST" || method == "PUT" && path != Route.space.rawValue
        let ofContent: Set = ["400", "413", "415"]
        #expect(!takesContent || ofContent.isSubset(of: statuses), "\(method) \(path)")
        #expect(Set(statuses).count == statuses.count, "\(method) \(path)")
        #expect(statuses.contains { $0.hasPrefix("2") }, "\(method) \(path)")
      }
    }
  }

  @Test("the description lists the existing problem codes and no others")
  func codes() throws {
    let text = try Self.text()
    let problem = try #require(text.split(separator: "\n    Problem:\n").last)
    let list = try #require(problem.split(separator: "          enum:\n").dropFirst().first)
    let codes = list.split(separator: "\n").prefix { $0.hasPrefix("            - ") }
      .map { String($0.dropFirst(14)) }
    #expect(codes.sorted() == ProblemCode.allCases.map(\.rawValue).sorted())
  }
}
