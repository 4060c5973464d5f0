import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryShell

@Suite("Services as values", .hangLimit)
struct ServiceTests {
  @Test(
    "a schema accepts values of its form only",
    arguments: [
      (.nothing, .null, true), (.nothing, 1, false), (.bool, true, true), (.bool, 1, false),
      (.integer(1...3), 3, true), (.integer(1...3), 4, false), (.integer(1...3), 1.5, false),
      (.number, 1, true), (.number, 1.5, true), (.number, "1", false),
      (.text(max: 2), "ab", true), (.text(max: 2), "é!", false),
      (.choice(["a"]), "a", true), (.choice(["a"]), "b", false),
      (.list(of: .bool, max: 1), [true], true), (.list(of: .bool, max: 1), [true, true], false),
      (.list(of: .bool, max: 1), [1], false),
      (.map(of: .bool, max: 1), ["x": true], true), (.map(of: .bool, max: 1), ["x": 1], false),
      (.map(of: .bool, max: 1), ["x": true, "y": true], false),
      (.object([.required("a", .bool)]), ["a": true], true),
      (.object([.required("a", .bool)]), [:], false),
      (.object([.required("a", .bool)]), ["a": true, "b": 1], false),
      (.object([.optional("a", .bool)]), ["a": nil], true),
      (.object([.optional("a", .bool)]), [:], true),
      (.object([.optional("a", .bool)]), ["a": 1], false),
      (.either([.bool, .text(max: 1)]), "a", true), (.either([.bool, .text(max: 1)]), 1, false),
    ] as [(ValueSchema, ServiceValue, Bool)])
  func schemas(schema: ValueSchema, value: ServiceValue, fits: Bool) {
    #expect((schema.fault(in: value) == nil) == fits, "\(value)")
  }

  @Test("values survive JSON, and hostile JSON is refused")
  func json() throws {
    let value: ServiceValue = [
      "a": [nil, true, false, 1, -9_223_372_036_854_775_807, 1.5, "é\u{0}\"\\"], "b": ["c": []],
    ]
    #expect(try ServiceValue(json: value.json) == value)
    for bad in [
      "", "{", "[1,]", "nul", "{\"a\":1,\"a\":2}", "1 2", "\"\u{1}\"", "1e999", "'a'",
      String(repeating: "[", count: 40) + String(repeating: "]", count: 40),
    ] {
      #expect(throws: (any Error).self, "\(bad)") { try ServiceValue(json: Array(bad.utf8)) }
    }
  }

  private func registry(_ granted: [ServicePattern]) -> ServiceRegistry {
    let services = [
      ("tasks.list", "1"), ("tasks.list", "2.1"), ("tasks.list", "2.4"), ("tasks.add", "1"),
      ("data.query", "1"),
    ]
    return ServiceRegistry(
      services.map { name, version in
        Service(
          ServiceName(stringLiteral: name), version: BundleVersion(version) ?? .first,
          permission: "does", argument: .any,
          result: .any
        ) { _ in .null }
      }, granting: granted)
  }

  @Test("a page gets a service that is declared, granted and there")
  func access() {
    func code(_ name: String, _ declared: [ServicePattern], _ granted: [ServicePattern]) -> String?
    {
      do {
        let service = try registry(granted).service(name, declared: declared)
        return "\(service.name)@\(service.version)"
      } catch {
        return error.code
      }
    }
    #expect(code("tasks.list", ["tasks"], ["tasks.list"]) == "tasks.list@1")
    // The first number is the same, and the service is not older.
    for (declared, granted, found) in [
      ("2", "2", "tasks.list@2.4"), ("2.1", "2", "tasks.list@2.4"), ("2.4", "2", "tasks.list@2.4"),
      ("2.5", "2", "unknown_service"), ("2.5", "2.5", "unknown_service"),
      ("1.1", "1", "unknown_service"),
      ("2", "2.5", "not_granted"), ("2", "1", "not_granted"), ("3", "3", "unknown_service"),
    ] as [(String, String, String)] {
      let patterns = ["tasks.list@\(declared)", "tasks@\(granted)"].compactMap {
        ServicePattern($0)
      }
      #expect(code("tasks.list", [patterns[0]], [patterns[1]]) == found, "\(declared) \(granted)")
    }
    for bad in ["tasks@", "tasks@0", "tasks@1.", "tasks@01", "tasks@x", "tasks@1@2"] {
      #expect(ServicePattern(bad) == nil, "\(bad)")
    }
    #expect(code("tasks.list", ["tasks.list@2"], ["tasks"]) == "not_granted")
    #expect(code("tasks.list", ["tasks.add"], ["tasks"]) == "not_declared")
    #expect(code("tasks.list", [], ["tasks"]) == "not_declared")
    #expect(code("tasks.list", ["tasks"], []) == "not_granted")
    #expect(code("tasks.list", ["tasks"], ["data"]) == "not_granted")
    #expect(code("tasks.gone", ["tasks"], ["tasks"]) == "unknown_service")
    #expect(code("tasks.list@1", ["tasks"], ["tasks"]) == "unknown_service")
    #expect(code("*.*", ["tasks"], ["tasks"]) == "unknown_service")
  }

  @Test("declared services that the app does not grant are listed")
  func withheld() {
    let declared: [ServicePattern] = ["tasks", "data.query", "net.request"]
    let withheld = registry(["tasks.list", "data"]).withheld(from: declared)
    #expect(withheld == ["tasks", "net.request"])
  }

  @Test(
    "a range is the part that it names",
    arguments: [
      (nil, .all), ("bytes=0-", .part(0..<10)), ("bytes=2-3", .part(2..<4)),
      ("bytes=5-99", .part(5..<10)), ("bytes=-3", .part(7..<10)), ("bytes=-99", .part(0..<10)),
      ("bytes=10-", .unsatisfiable), ("bytes=-0", .unsatisfiable), ("bytes=3-2", .all),
      ("bytes=0-1,3-4", .all), ("items=0-1", .all), ("bytes=a-b", .all), ("bytes=-", .all),
      ("bytes=0-99999999999999999999", .part(0..<10)),
    ] as [(String?, ByteRange)])
  func ranges(field: String?, expected: ByteRange) {
    #expect(ByteRange(field, size: 10) == expected)
  }

  @Test("a slow page gets the newest result of a live query, and its end last")
  func lines() {
    let channel = LineChannel()
    channel.send([1], ofWatch: 7)
    channel.send([2], ofWatch: 8)
    channel.send([3], ofWatch: 7)
    channel.send([4], ofWatch: 7, isLast: true)
    let taken = channel.drain()
    #expect(taken.lines == [[2], [3], [4]])
    #expect(taken.isOver == false)
    channel.send([5], ofWatch: 8)
    channel.drop(watch: 8)
    channel.finish()
    channel.send([6])
    let rest = channel.drain()
    #expect(rest.lines.isEmpty)
    #expect(rest.isOver)
  }

  @Test("a page's files have one address for equal bytes, and none after the page")
  func files() async throws {
    let files = PageFiles(prefix: "/t/1/-/files/")
    let one = files.add([1, 2, 3], mediaType: "image/png")
    #expect(files.add([1, 2, 3], mediaType: "image/png") == one)
    #expect(files.add([1, 2, 3], mediaType: "image/gif") != one)
    #expect(try await files.content(at: one)?.readAll() == [1, 2, 3])
    #expect(files.content(at: "/t/2" + one.dropFirst(4)) == nil)
    let block = [UInt8](repeating: 0, count: PageFiles.memoryBytesMax)
    _ = files.add(block, mediaType: "image/png")
    #expect(files.content(at: one) == nil)
    files.close()
    #expect(files.content(at: files.add([1], mediaType: "image/png")) == nil)
  }
}
