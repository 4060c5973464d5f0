import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// Keeps the description of the endpoints from trailing the routes.
@Suite("The description of the endpoints", .hangLimit)
struct OpenAPITests {
  @Test("the description names the paths of all routes and no others")
  func paths() throws {
    let routes = Route.allCases.filter { $0 != .unknown }.map(\.rawValue)
    #expect(try Set(OpenAPIDescription().operations.keys) == Set(routes))
  }

  @Test("the description names the methods of each route; HEAD can be implied by GET")
  func methods() throws {
    let operations = try OpenAPIDescription().operations
    for route in Route.allCases where route != .unknown {
      let methods = Set(route.endpoints.map(\.method))
      let named = Set((operations[route.rawValue] ?? [:]).keys)
      #expect(named.isSubset(of: methods), "\(route.rawValue)")
      let missing = methods.subtracting(named)
      #expect(missing.isEmpty || missing == ["HEAD"] && named.contains("GET"), "\(route.rawValue)")
    }
  }

  @Test("each operation needs the described role, and has content if the description has it")
  func rules() throws {
    for (path, methods) in try OpenAPIDescription().operations {
      for (method, operation) in methods {
        let endpoint = try #require(Route(rawValue: path)?.endpoints.first { $0.method == method })
        #expect(operation.role == endpoint.need?.rawValue, "\(method) \(path)")
        #expect(operation.hasContent == (endpoint.content != nil), "\(method) \(path)")
        #expect(operation.statuses.contains("413") == operation.hasContent, "\(method) \(path)")
      }
    }
    // A HEAD that is not described is like a GET.
    for endpoints in Route.allCases.map(\.endpoints) {
      guard let get = endpoints.first(where: { $0.method == "GET" }) else { continue }
      for head in endpoints where head.method == "HEAD" { #expect(head.need == get.need) }
    }
  }

  @Test("each operation names the statuses that any request of its kind can get")
  func statuses() throws {
    for (path, methods) in try OpenAPIDescription().operations where path.hasPrefix("/v1/") {
      for (method, operation) in methods {
        let statuses = operation.statuses
        let common = ["400", "401", "403", "404", "405", "500", "503"]
        #expect(Set(common).isSubset(of: statuses), "\(method) \(path)")
        let ofContent: Set = ["400", "413", "415"]
        #expect(!operation.hasContent || ofContent.isSubset(of: statuses), "\(method) \(path)")
        #expect(Set(statuses).count == statuses.count, "\(method) \(path)")
        #expect(statuses.contains { $0.hasPrefix("2") }, "\(method) \(path)")
      }
    }
  }

  @Test("the description lists the existing problem codes and no others")
  func codes() throws {
    let text = try OpenAPIDescription().text
    let problem = try #require(text.split(separator: "\n    Problem:\n").last)
    let list = try #require(problem.split(separator: "          enum:\n").dropFirst().first)
    let codes = list.split(separator: "\n").prefix { $0.hasPrefix("            - ") }
      .map { String($0.dropFirst(14)) }
    #expect(codes.sorted() == ProblemCode.allCases.map(\.rawValue).sorted())
  }

  @Test("numbers of a query are taken within the described range, and refused outside of it")
  func ranges() async throws {
    let fixture = ServiceFixture()
    var count = 0
    for (path, methods) in try OpenAPIDescription().operations {
      guard let operation = methods["GET"] else { continue }
      let needed = operation.required.map { "\($0)=a" }.sorted()
      let address = path.replacing("{space}", with: "notes")
      func ask(_ name: String, _ value: Int) async -> Int {
        let query = (needed + ["\(name)=\(value)"]).joined(separator: "&")
        return await fixture.send("GET", "\(address)?\(query)").status
      }
      for (name, range) in operation.ranges {
        count += 1
        if let minimum = range.minimum {
          #expect(await ask(name, minimum) == 200, "\(path) \(name)")
          #expect(await ask(name, minimum - 1) == 400, "\(path) \(name)")
        }
        if let maximum = range.maximum {
          #expect(await ask(name, maximum) == 200, "\(path) \(name)")
          #expect(await ask(name, maximum + 1) == 400, "\(path) \(name)")
        }
      }
    }
    #expect(count >= 12)
  }

  @Test(
    "a request is described if its path, its method and its query parameters are",
    arguments: [
      ("GET", "/v1/spaces", nil), ("GET", "/v1/spaces?after=a&limit=1", nil),
      ("GET", "/v1/spaces?before=a", "GET /v1/spaces has no query parameter before"),
      ("DELETE", "/v1/spaces", "/v1/spaces has no DELETE"),
      ("GET", "/v1/spaces/a%2Fb/overview", nil),
      ("GET", "/v1/spaces//overview", "/v1/spaces//overview: no path of openapi.yaml is like it"),
      ("GET", "/v1/spaces/a/secrets", "/v1/spaces/a/secrets: no path of openapi.yaml is like it"),
      ("GET", "/v1/spaces/a/history?table=t&record=r&before=7", nil),
      (
        "GET", "/v1/spaces/a/history?table=t",
        "GET /v1/spaces/{space}/history needs the query parameter record"
      ),
      ("PUT", "/v1/spaces/a/missions/m?rollout=5", nil),
      (
        "DELETE", "/v1/spaces/a/missions/m?rollout=5",
        "DELETE /v1/spaces/{space}/missions/{mission} has no query parameter rollout"
      ),
      ("GET", "/console/", nil), ("GET", "/console/start.js", nil), ("GET", "/metrics", nil),
    ] as [(String, String, String?)])
  func requests(method: String, target: String, fault: String?) throws {
    #expect(try OpenAPIDescription().fault(method, target) == fault)
  }
}
