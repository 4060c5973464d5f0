import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Numbers of records whose own ones are taken", .hangLimit)
struct WishedNumbersTests {
  private let maker = PageMaker()

  /// A list of records by the numbers in their identifiers, and the numbers that they get.
  struct Case: Sendable {
    var own: [Int64] = []
    let list: [UInt32]
    let numbers: [Int64]
  }

  @Test(
    "a record whose number is taken leaves the other records of the list theirs",
    arguments: [
      Case(
        own: [10_250], list: [10_249, 10_250, 10_251, 10_252],
        numbers: [10_249, 10_253, 10_251, 10_252]),
      Case(own: [1], list: [1, 2, 3], numbers: [4, 2, 3]),
      Case(own: [1, 2], list: [1, 2], numbers: [3, 4]),
      Case(own: [7, 90], list: [7, 8], numbers: [91, 8]),
      // Two other devices have counted alike.
      Case(list: [1, 1, 2, 2, 3], numbers: [1, 4, 2, 5, 3]),
      Case(own: [1], list: [1, 4_294_967_295], numbers: [4_294_967_296, 4_294_967_295]),
    ])
  func list(_ sample: Case) throws {
    for isStaged in [true, false] {
      let replica = try ReplicaFixture()
      try replica.run("CREATE TABLE orders(id INTEGER PRIMARY KEY, place INT)")
      for number in sample.own {
        try replica.run("INSERT INTO orders VALUES (?, -1)", [.integer(number)])
      }
      try replica.file.track(["orders"])
      let changes = changes(sample.list)
      if isStaged {
        let first = maker.page(Array(changes.prefix(1)), head: changes.last?.sequence, more: true)
        try replica.file.incoming.stage(first.body, first.head, changes: 1)
        try replica.apply(Array(changes.dropFirst()))
      } else {
        try replica.apply(changes)
      }
      let numbers = try replica.rows("SELECT id FROM orders WHERE place >= 0 ORDER BY place")
      #expect(numbers == sample.numbers.map { [.integer($0)] })
    }
  }

  @Test("records that came before their table leave each other their numbers, too")
  func deferred() throws {
    let replica = try ReplicaFixture()
    try replica.apply(changes([1, 1, 2]))
    try replica.run("CREATE TABLE orders(id INTEGER PRIMARY KEY, place INT)")
    try replica.file.track(["orders"])
    let numbers = try replica.rows("SELECT id FROM orders ORDER BY place")
    #expect(numbers == [[1], [3], [2]])
  }

  /// Returns how often pages are read again while a list of four records is applied.
  private func readsAgain(own: [Int64]) throws -> Int {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE orders(id INTEGER PRIMARY KEY, place INT)")
    for number in own { try replica.run("INSERT INTO orders VALUES (?, -1)", [.integer(number)]) }
    try replica.file.track(["orders"])
    let changes = changes([1, 2, 3, 4])
    let first = maker.page(Array(changes.prefix(2)), head: 4, more: true)
    try replica.file.incoming.stage(first.body, first.head, changes: 2)
    let statement = try replica.file.connection.statement(StagedPageCursor.selection)
    let before = statement.runCount
    try replica.apply(Array(changes.dropFirst(2)))
    return statement.runCount - before
  }

  @Test("pages are decoded once, and again only for the first record whose number is taken")
  func reads() throws {
    #expect(try readsAgain(own: []) == 0)
    #expect(try readsAgain(own: [9]) == 0)
    let once = try readsAgain(own: [1])
    #expect(once > 0)
    #expect(try readsAgain(own: [1, 2, 4]) == once)
  }

  @Test("the integers of a list are read for the first caller, and again after a failure")
  func source() throws {
    var reads = 0
    let source = WishedNumbersSource {
      reads += 1
      if reads == 1 { throw CaptureRefusal("busy") }
      return WishedNumbers(of: ["orders"])
    }
    #expect(throws: CaptureRefusal.self) { _ = try source.numbers() }
    for _ in 0..<2 { #expect(try source.numbers() == WishedNumbers(of: ["orders"])) }
    #expect(reads == 2)
    #expect(try WishedNumbersSource().numbers().isEmpty)
  }

  private func changes(_ list: [UInt32]) -> [Change] {
    list.enumerated().map { place, number in
      let id = UniqueID(milliseconds: 1_700_000_000_000, random: UInt64(place), number: number)
      return maker.change(
        Int64(place + 1), "orders", Name("\(id)"), [Column("place", .integer(Int64(place)))])
    }
  }
}
