import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Which pending operations leave with a refused one (SPEC.md §12): the queue in, places out.
@Suite("Operations that leave with a refused one", .hangLimit)
struct RefusalSpreadTests {
  typealias Operation = RefusalSpread.Operation

  private static func key(_ record: Name) -> RecordKey { RecordKey(table: "t", record: record) }

  private static func operation(
    _ order: Int64, in group: Int64, _ kind: OperationKind, _ record: Name,
    refersTo parents: [Name] = [], referredTo former: [Name] = [], isReupload: Bool = false
  ) -> Operation {
    Operation(
      order: order, group: group, key: key(record), kind: kind, isReupload: isReupload,
      references: parents.map(key), formerReferences: former.map(key))
  }

  /// Returns the places leaving with the refused one, and the number of reads of the queue.
  private func leaving(
    _ refused: Int64, in queue: [Operation]
  ) -> (places: [Int64], passes: Int) {
    let (leaving, passes) = leaving(with: [[refused]], in: queue)
    return (leaving.keys.sorted(), passes)
  }

  private func leaving(
    with refused: [[Int64]], in queue: [Operation]
  ) -> (leaving: [Int64: Int], passes: Int) {
    var spread = RefusalSpread(refused: refused)
    var passes = 0
    spread.spread { body in
      passes += 1
      queue.forEach(body)
    }
    return (spread.leaving, passes)
  }

  @Test("an operation of a record of its own leaves alone")
  func alone() {
    let queue = [
      Self.operation(1, in: 1, .insert, "a"), Self.operation(2, in: 2, .insert, "b"),
      Self.operation(3, in: 3, .insert, "c"),
    ]
    #expect(leaving(2, in: queue).places == [2])
  }

  @Test("the whole transaction leaves")
  func transaction() {
    let queue = [
      Self.operation(1, in: 1, .insert, "a"), Self.operation(2, in: 1, .insert, "b"),
      Self.operation(3, in: 1, .insert, "c"), Self.operation(4, in: 2, .insert, "d"),
    ]
    #expect(leaving(2, in: queue).places == [1, 2, 3])
  }

  @Test("later operations of the record leave with their transactions, and so on")
  func laterOnTheRecord() {
    let queue = [
      Self.operation(1, in: 1, .insert, "a"), Self.operation(2, in: 2, .update, "a"),
      Self.operation(3, in: 3, .insert, "b"), Self.operation(4, in: 3, .update, "a"),
      Self.operation(5, in: 4, .update, "b"), Self.operation(6, in: 5, .update, "c"),
    ]
    #expect(leaving(2, in: queue).places == [2, 3, 4, 5])
  }

  @Test("a row leaves if it refers to a record whose insert leaves; other references do not matter")
  func references() {
    let child = Self.operation(3, in: 3, .insert, "child", refersTo: ["p"])
    let born = [Self.operation(1, in: 1, .insert, "p"), child]
    #expect(leaving(1, in: born).places == [1, 3])
    let known = [Self.operation(1, in: 1, .update, "p"), child]
    #expect(leaving(1, in: known).places == [1])
  }

  @Test("a later delete of a record leaves if a reference to it comes back")
  func referredAgain() {
    for removal in [OperationKind.delete, .update] {
      let queue = [
        Self.operation(1, in: 1, .delete, "q"),
        Self.operation(2, in: 2, removal, "child", referredTo: ["q", "p"]),
        Self.operation(3, in: 3, .update, "p"), Self.operation(4, in: 4, .delete, "p"),
      ]
      #expect(leaving(2, in: queue).places == [2, 4], "\(removal)")
    }
  }

  private static func batch(
    _ order: Int64, _ table: Name, deletes: Bool = true, formerParents: Set<Name> = []
  ) -> Operation {
    Operation(
      order: order, group: order, key: RecordKey(table: table, record: ""), kind: .batch,
      formerParents: formerParents, isBatchDelete: deletes)
  }

  @Test("a batch leaves alone: another one on its table is on other records")
  func batches() {
    let queue = [
      Self.batch(1, "t"), Self.batch(2, "t"), Self.operation(3, in: 3, .update, "a"),
    ]
    #expect(leaving(1, in: queue).places == [1])
  }

  @Test("deletes of parents leave with a batch that removed children before")
  func batchOfChildren() {
    let queue = [
      Self.operation(1, in: 1, .delete, "before"), Self.batch(2, "c", formerParents: ["t"]),
      Self.operation(3, in: 3, .update, "p"), Self.operation(4, in: 4, .delete, "p"),
      Self.batch(5, "t", deletes: false), Self.batch(6, "t"), Self.batch(7, "c"),
    ]
    #expect(leaving(2, in: queue).places == [2, 4, 6])
  }

  @Test("a batch that deletes leaves with an operation that removed a child of its table before")
  func batchOfParents() {
    let queue = [
      Self.batch(1, "t"), Self.operation(2, in: 2, .delete, "child", referredTo: ["p"]),
      Self.batch(3, "t", deletes: false), Self.batch(4, "t"), Self.batch(5, "u"),
    ]
    #expect(leaving(2, in: queue).places == [2, 4])
  }

  @Test("a child that never reaches the server keeps no parent")
  func unbornChild() {
    let queue = [
      Self.operation(1, in: 1, .insert, "child", refersTo: ["p"]),
      Self.operation(2, in: 2, .delete, "child", referredTo: ["p"]),
      Self.operation(3, in: 3, .delete, "p"),
    ]
    #expect(leaving(1, in: queue).places == [1, 2])
  }

  @Test("a re-uploaded row leaves alone, although all of them are in one transaction")
  func reuploads() {
    let queue = [
      Self.operation(1, in: 1, .insert, "a", isReupload: true),
      Self.operation(2, in: 1, .insert, "b", isReupload: true),
      Self.operation(3, in: 1, .insert, "c", isReupload: true),
    ]
    #expect(leaving(2, in: queue).places == [2])
  }

  @Test("the queue is read until a pass finds nothing")
  func passes() {
    let queue = (1...2_000).map { order in
      Self.operation(
        Int64(order), in: Int64(order), .insert, Name(stringLiteral: "r\(order)"),
        refersTo: order > 1 ? [Name(stringLiteral: "r\(order - 1)")] : [])
    }
    let (places, passes) = leaving(1_000, in: queue)
    #expect(places == Array(1_000...2_000))
    #expect(passes == 2)
  }

  @Test("an operation leaves with the first of several refusals")
  func several() {
    let queue = [
      Self.operation(1, in: 1, .insert, "a"), Self.operation(2, in: 2, .insert, "b"),
      Self.operation(3, in: 3, .insert, "c"), Self.operation(4, in: 3, .update, "a"),
      Self.operation(5, in: 4, .update, "b"), Self.operation(6, in: 5, .update, "c"),
    ]
    let refused: [[Int64]] = [[2], [3], [1], [6]]
    #expect(
      leaving(with: refused, in: queue).leaving == [2: 0, 5: 0, 3: 1, 4: 1, 6: 1, 1: 2])
  }

  @Test("without a refused operation the queue is not read")
  func nothing() {
    let queue = [Self.operation(1, in: 1, .insert, "a")]
    #expect(leaving(with: [[]], in: queue).passes == 0)
  }
}
