import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Differences between a row and a record, and values that only look different.
@Suite("Comparing rows with records", .hangLimit)
struct RowComparisonTests {
  private static let stamp = Stamp(time: .zero, device: DeviceID(UniqueID(high: 1, low: 1)))

  private static func state(_ columns: [Column]) -> [ColumnState] {
    columns.sorted { $0.name < $1.name }.map {
      ColumnState(name: $0.name, value: $0.value, stamp: stamp, sequence: 1)
    }
  }

  private func differing(
    _ here: [Column], _ there: [Column], affinity: ColumnAffinity = .none,
    default value: ColumnDefault = .null, table: Set<Name>? = nil
  ) -> [Name] {
    let names = table ?? Set((here + there).map(\.name))
    let rule = RowComparison.ColumnRule(affinity: affinity, defaultValue: value)
    let comparison = RowComparison(
      rules: Dictionary(uniqueKeysWithValues: names.map { ($0, rule) }))
    return comparison.differing(here: here, there: Self.state(there)).map(\.column)
  }

  @Test("values of another class or other bits are differences; NULL and absent are not")
  func values() {
    #expect(differing([Column("a", 1)], [Column("a", 1)]) == [])
    #expect(differing([Column("a", 1)], [Column("a", 2)]) == ["a"])
    #expect(differing([Column("a", 1)], [Column("a", 1.0)]) == ["a"])
    #expect(differing([Column("a", .real(0))], [Column("a", .real(-0.0))]) == ["a"])
    #expect(differing([Column("a", .null)], []) == [])
    #expect(differing([Column("a", .null)], [Column("a", .null)]) == [])
    #expect(differing([], [Column("a", .null)]) == [])
    #expect(differing([], [Column("b", 1)]) == ["b"])
    #expect(differing([Column("a", 1), Column("b", 2)], [Column("b", 3)]) == ["a", "b"])
  }

  @Test("the largest and infinite reals are no differences from their texts in a text column")
  func largeReals() {
    func isSame(_ real: Double, _ text: String) -> Bool {
      differing(
        [Column("a", .text(text))], [Column("a", .real(real))], affinity: .text) == []
    }
    let largest = Double.greatestFiniteMagnitude
    #expect(isSame(.infinity, "Inf") && isSame(-.infinity, "-Inf"))
    #expect(isSame(largest, "1.79769313486232e+308") && isSame(-largest, "-1.79769313486232e+308"))
    #expect(!isSame(.infinity, "-Inf") && !isSame(1e308, "Inf") && !isSame(.infinity, "1.0"))
  }

  @Test("a record is missing here or there, or differs, or is the same")
  func records() {
    let comparison = RowComparison(rules: [:])
    let (row, deletion) = ([Column("a", 1), Column("b", .null)], RecordState())
    let alive = RecordState(
      inserted: SequencedStamp(stamp: Self.stamp, sequence: 1),
      columns: Self.state([Column("a", 2)]))
    #expect(comparison.difference(here: nil, there: deletion) == nil)
    #expect(comparison.difference(here: nil, there: alive) == .missingHere)
    #expect(comparison.difference(here: row, there: deletion) == .missingThere(row))
    #expect(
      comparison.difference(here: row, there: alive)
        == .different([ColumnDifference(column: "a", here: 1, there: 2)]))
    #expect(comparison.difference(here: [Column("a", 2)], there: alive) == nil)
  }

  @Test("a repair loses the values that only this device has")
  func lost() {
    typealias Kind = RecordDifference.Kind
    let row = [Column("a", 1), Column("b", .null)]
    #expect(Kind.missingHere.lost.isEmpty && !Kind.missingHere.losesRow)
    #expect(Kind.missingThere(row).lost == [Column("a", 1)] && Kind.missingThere(row).losesRow)
    let kind = Kind.different([
      ColumnDifference(column: "a", here: 1, there: 2),
      ColumnDifference(column: "b", here: .null, there: 2),
    ])
    #expect(kind.lost == [Column("a", 1)] && !kind.losesRow)
  }

  @Test("a column that the local table does not have is not a difference")
  func unknownColumns() {
    #expect(differing([Column("a", 1)], [Column("a", 1), Column("x", 2)], table: ["a"]) == [])
    #expect(
      differing([Column("a", 1)], [Column("a", 1), Column("x", 2)], table: ["a", "x"]) == ["x"])
  }

  @Test("a local default is not a difference if the server has no value of the column")
  func defaults() {
    let five = ColumnDefault.constant(5)
    #expect(differing([Column("a", 5)], [], default: five) == [])
    #expect(differing([Column("a", 6)], [], default: five) == ["a"])
    #expect(differing([Column("a", .null)], [], default: five) == [])
    #expect(differing([Column("a", 5)], [Column("a", .null)], default: five) == ["a"])
    #expect(differing([Column("a", "now")], [], default: .varying) == [])
    #expect(differing([Column("a", 5.0)], [], affinity: .real, default: five) == [])
  }

  @Test(
    "a conversion by the column's declared type is not a difference",
    arguments: [
      ("TEXT", Value.integer(5), Value.text("5")), ("VARCHAR(10)", .real(2.5), "2.5"),
      ("REAL", .integer(2), .real(2)), ("REAL", .real(-0.0), .real(0)),
      ("DOUBLE", "1.5", .real(1.5)),
      ("INTEGER", .real(3), .integer(3)), ("NUMERIC", "12", .integer(12)),
      ("DECIMAL(10,2)", "1.25", .real(1.25)),
    ])
  func affinity(type: String, there: Value, here: Value) {
    let affinity = ColumnAffinity(declared: type)
    #expect(differing([Column("a", here)], [Column("a", there)], affinity: affinity) == [])
    #expect(differing([Column("a", here)], [Column("a", there)], affinity: .none) == ["a"])
    #expect(differing([Column("a", here)], [Column("a", 99)], affinity: affinity) == ["a"])
  }

  @Test("deferred columns of a record count as received")
  func kept() {
    let row = [Column("a", 1), Column("b", 2)]
    let stamp = SequencedStamp(stamp: Self.stamp, sequence: 1)
    let part = RecordState(columns: Self.state([Column("b", 3), Column("c", 4)]))
    let whole = RecordState(inserted: stamp, columns: Self.state([Column("c", 5)]))
    let gone = RecordState(deleted: stamp)
    #expect(KeptOverlay.received(row: row, kept: nil) == row)
    #expect(KeptOverlay.received(row: nil, kept: nil) == nil)
    #expect(
      KeptOverlay.received(row: row, kept: part) == [
        Column("a", 1), Column("b", 3), Column("c", 4),
      ]
    )
    #expect(KeptOverlay.received(row: nil, kept: part) == nil)
    #expect(KeptOverlay.received(row: row, kept: whole) == [Column("c", 5)])
    #expect(KeptOverlay.received(row: nil, kept: whole) == [Column("c", 5)])
    #expect(KeptOverlay.received(row: row, kept: gone) == nil)
  }
}
